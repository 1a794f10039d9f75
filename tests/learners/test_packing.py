import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.learners import packing
from ellipack.metric import Metric
from ellipack.theory import (
    effective_rank,
    ellipsoid_packing_bound,
    fixed_metric_regret_bound,
    lipschitz_constant,
    printed_fixed_metric_regret_bound,
    radius,
    smallest_radius,
)
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, metrics, seeds, streams

readings = pytest.mark.parametrize("keep", [True, False])


def members(state: packing.PackingState) -> list[tuple[int, int]]:
    """Return the founding round and the number of labels of each centre."""
    size = state.centers.size
    return list(zip(state.centers.founded[:size].tolist(), state.centers.label_counts[:size].tolist(), strict=True))


@pytest.mark.interpreted
@readings
@given(st.data())
def test_it_is_algorithm_1(keep: bool, data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension))
    expected, T = oracles.algorithm_1(X.tolist(), y.tolist(), metric.matrix.tolist(), metric.eigenvalues.tolist(), keep)
    state = packing.init(metric)
    predictions = packing.learn(state, X, y, keep_founding_label=keep)
    assert predictions.tolist() == expected  # sums are taken in the same order: not only close, the same
    assert members(state) == [(s, len(labels)) for s, labels in T.items()]


@readings
@given(st.integers(1, 40), st.integers(1, 3), seeds)
def test_ties_go_to_the_first_centre(keep: bool, n: int, d: int, seed: int) -> None:
    # On a lattice distances are exact, and equal ones abound.
    X = np.random.default_rng(seed).integers(-2, 3, size=(n, d)) / 4
    y = np.random.default_rng(seed + 1).random(n)
    identity = np.eye(d).tolist()
    expected, _ = oracles.algorithm_1(X.tolist(), y.tolist(), identity, [1.0] * d, keep)
    state = packing.init(Metric.identity(d))
    assert packing.learn(state, X, y, keep_founding_label=keep).tolist() == expected


def test_the_two_readings_of_erratum_3() -> None:
    # The second instance founds a centre; the third is nearest to it.
    X, y = [[-0.9], [0.9], [0.8]], [0.2, 0.6, 1.0]
    kept, dropped = packing.init(Metric.identity(1)), packing.init(Metric.identity(1))
    assert packing.learn(kept, X, y).tolist() == [0.5, 0.2, 0.6]
    assert packing.learn(dropped, X, y, keep_founding_label=False).tolist() == [0.5, 0.2, 0.5]


@given(st.data())
def test_centres_are_a_packing_under_lemma_2(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension, max_rows=200))
    state = packing.init(metric)
    packing.learn(state, X, y)
    founded = state.centers.founded[: state.centers.size]
    at = state.centers.coordinates
    apart = np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2))
    reach = radius(metric.eigenvalues, founded)
    for late in range(len(at)):
        # Erratum 7: farther than the radius at the later one's founding; the last radius of all may be larger.
        assert np.all(apart[late, :late] > reach[late])
    smallest = smallest_radius(metric.eigenvalues, len(X))
    assert np.all(apart[np.triu_indices(len(at), 1)] > smallest)
    assert len(at) <= ellipsoid_packing_bound(metric.eigenvalues, smallest)


def test_where_the_rank_steps_up_centres_can_be_closer_than_the_last_radius() -> None:
    state = packing.init(Metric.from_diagonal([1.0, 0.25]))
    packing.learn(state, [[0.0, 0.0], [0.0, 0.0], [0.6, 0.0], [0.0, 0.0]], [0.5] * 4)
    assert state.centers.size == 2  # 0.6 apart, and the third radius was 0.577
    assert float(radius([1.0, 0.25], 4)) > 0.6


def regret(predictions: Floats, y: Floats, best: Floats) -> float:
    return float(np.sum((predictions - y) ** 2) - np.sum((best - y) ** 2))


@given(st.data())
def test_regret_is_under_theorem_1(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, noise = data.draw(streams(metric.dimension, max_rows=200))
    frequency = np.random.default_rng(data.draw(seeds)).normal(size=metric.dimension) * 4
    best = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(best + data.draw(st.sampled_from([0.0, 0.5, 2.0])) * (noise - 0.5), 0, 1)
    lipschitz = lipschitz_constant(metric.eigenvalues, 0.5 * np.abs(metric.eigenvectors.T @ frequency))
    state = packing.init(metric)
    incurred = regret(packing.learn(state, X, y), y, best)
    assert incurred <= fixed_metric_regret_bound(metric.eigenvalues, len(X), lipschitz)
    assert incurred <= printed_fixed_metric_regret_bound(metric.eigenvalues, len(X), lipschitz)


def test_regret_is_under_theorem_1_where_the_bound_says_something() -> None:
    # The constants are such that the bound is below the trivial one, a round each, only from millions of rounds on.
    rounds = 4_000_000
    X = np.random.default_rng(0).uniform(-1, 1, size=(rounds, 1))
    y = 0.5 + 0.5 * np.sin(9 * X[:, 0])
    bound = fixed_metric_regret_bound([1.0], rounds, lipschitz_constant([1.0], [4.5]))
    state = packing.init(Metric.identity(1))
    incurred = regret(packing.learn(state, X, y), y, y)
    assert bound < 0.8 * rounds
    assert 0 < incurred <= bound


@given(st.data())
def test_history_is_what_a_look_after_every_round_would_have_seen(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension, max_rows=30))
    state, sizes = packing.init(metric), []
    for x, label in zip(X, y, strict=True):
        packing.learn(state, x[None], [label])
        sizes.append(state.centers.size)
    past = packing.history(state)
    t = np.arange(1, len(X) + 1)
    assert past.t.tolist() == t.tolist()
    assert past.n_centers.tolist() == sizes
    assert past.radius.tolist() == radius(metric.eigenvalues, t).tolist()
    assert past.effective_rank.tolist() == effective_rank(metric.eigenvalues, t).tolist()
    assert packing.history(state, [1]).n_centers.tolist() == [1]


def test_many_more_centres_than_there_was_room_for_at_first() -> None:
    X = ball(np.random.default_rng(0), 2000, 12)
    state = packing.init(Metric.identity(12))
    packing.learn(state, X, np.linspace(0, 1, 2000))
    assert state.centers.size > 1000
    assert state.centers.capacity < 2 * state.centers.size
    founders = X[state.centers.founded[: state.centers.size] - 1]
    np.testing.assert_array_equal(state.centers.coordinates, state.metric.whiten(founders))
