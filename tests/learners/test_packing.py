import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError
from ellipack.learners import packing
from ellipack.metric import Metric
from ellipack.theory import (
    ball_excess,
    center_bound,
    effective_rank,
    ellipsoid_packing_bound,
    estimation_bound,
    lipschitz_constant,
    radius,
    regret,
    sharp_fixed_metric_regret_bound,
    smallest_radius,
)
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, cuts, metrics, seeds, streams

both_readings = pytest.mark.parametrize("keep", [True, False])


def members(state: packing.PackingState) -> list[tuple[int, int]]:
    """Return the creation round and the number of labels of each center."""
    return list(zip(state.core.creation_rounds.tolist(), state.core.label_counts.tolist(), strict=True))


@both_readings
@given(st.data())
def test_learner_equals_literal_algorithm_1(keep: bool, data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension))
    expected, T = oracles.algorithm_1(X.tolist(), y.tolist(), metric.matrix.tolist(), metric.eigenvalues.tolist(), keep)
    state = packing.init(metric)
    parts = data.draw(cuts(len(X)))
    predictions = np.concatenate([packing.learn(state, X[p], y[p], keep_founding_label=keep) for p in parts])
    assert predictions.tolist() == expected  # exactly, because sums are in the same order
    assert members(state) == [(s, len(labels)) for s, labels in T.items()]


@both_readings
@given(st.integers(1, 40), st.integers(1, 3), seeds)
def test_ties_go_to_the_first_center(keep: bool, n: int, d: int, seed: int) -> None:
    # On a lattice distances are exact and often equal.
    X = np.random.default_rng(seed).integers(-2, 3, size=(n, d)) / 4
    y = np.random.default_rng(seed + 1).random(n)
    identity = np.eye(d).tolist()
    expected, _ = oracles.algorithm_1(X.tolist(), y.tolist(), identity, [1.0] * d, keep)
    state = packing.init(Metric.identity(d))
    assert packing.learn(state, X, y, keep_founding_label=keep).tolist() == expected


def test_both_readings_of_erratum_3() -> None:
    # The second instance becomes a center, which is the nearest one to the third instance.
    X, y = [[-0.9], [0.9], [0.8]], [0.2, 0.6, 1.0]
    kept, dropped = packing.init(Metric.identity(1)), packing.init(Metric.identity(1))
    assert packing.learn(kept, X, y).tolist() == [0.5, 0.2, 0.6]
    assert packing.learn(dropped, X, y, keep_founding_label=False).tolist() == [0.5, 0.2, 0.5]


@given(st.data())
def test_centers_are_a_packing_within_lemma_2(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension, max_rows=200))
    state = packing.init(metric)
    packing.learn(state, X, y)
    creation_rounds = state.core.creation_rounds
    at = state.core.coordinates
    apart = np.sqrt(((at[:, None] - at[None]) ** 2).sum(axis=2))
    radii = radius(metric.eigenvalues, creation_rounds)
    for late in range(len(at)):
        # Erratum 6: the distance exceeds the radius when the later center was added; the last radius may be larger.
        assert np.all(apart[late, :late] > radii[late])
    smallest = smallest_radius(metric.eigenvalues, len(X))
    assert np.all(apart[np.triu_indices(len(at), 1)] > smallest)
    assert len(at) <= ellipsoid_packing_bound(metric.eigenvalues, smallest)


def test_centers_can_be_closer_than_the_last_radius_after_the_rank_increases() -> None:
    state = packing.init(Metric.from_diagonal([1.0, 0.25]))
    packing.learn(state, [[0.0, 0.0], [0.0, 0.0], [0.6, 0.0], [0.0, 0.0]], [0.5] * 4)
    assert state.core.size == 2  # 0.6 apart, and the third radius was 0.577
    assert float(radius([1.0, 0.25], 4)) > 0.6


@dataclass
class PackingRun:
    """Predictions of Algorithm 1, and the rounds whose labels each center has."""

    predictions: Floats
    rounds_by_center: dict[int, list[int]]  # by the creation round of the center


def run_packing(metric: Metric, X: Floats, y: Floats) -> PackingRun:
    state, predictions = packing.init(metric), np.empty(len(X))
    rounds_by_center: dict[int, list[int]] = {}
    before = np.zeros(0, dtype=np.int64)
    for t in range(1, len(X) + 1):
        predictions[t - 1] = packing.learn(state, X[t - 1 : t], y[t - 1 : t])[0]
        counts = state.core.label_counts
        changed = np.flatnonzero(counts - np.append(before, np.zeros(len(counts) - len(before))))
        assert len(changed) == 1  # every label goes to one center
        rounds_by_center.setdefault(int(state.core.creation_rounds[changed[0]]), []).append(t)
        before = counts
    return PackingRun(predictions, rounds_by_center)


@given(st.data())
def test_each_step_of_the_proof_of_theorem_1_holds(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, noise = data.draw(streams(metric.dimension, max_rows=120))
    frequency = np.random.default_rng(data.draw(seeds)).normal(size=metric.dimension) * 4
    f = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(f + data.draw(st.sampled_from([0.0, 0.5, 2.0])) * (noise - 0.5), 0, 1)
    run, T = run_packing(metric, X, y), len(X)
    radii = radius(metric.eigenvalues, np.arange(1, T + 1))
    lipschitz = lipschitz_constant(metric.eigenvalues, 0.5 * np.abs(metric.eigenvectors.T @ frequency))
    estimation = approximation = 0.0
    for s, rounds in run.rounds_by_center.items():
        own = np.array(rounds) - 1
        apart = metric.distance(X[own], np.tile(X[s - 1], (len(own), 1)))
        assert np.all(apart <= radii[own] * (1 + 1e-12))
        # A ball predicts almost as well as the best constant on it: an identity, of which the proof has a bound.
        excess = np.sum((run.predictions[own] - y[own]) ** 2) - np.sum((y[own].mean() - y[own]) ** 2)
        assert ball_excess(run.predictions[own], y[own]) == pytest.approx(excess, abs=1e-9)
        assert excess <= np.log(np.e * len(own)) + 1e-9
        estimation += excess
        # The function at the center is almost as good as the function itself.
        approximation += np.sum((f[s - 1] - y[own]) ** 2 - (f[own] - y[own]) ** 2)
    assert approximation <= 2 * lipschitz * radii.sum() + 1e-9
    found = regret(run.predictions, f, y)[-1]
    assert found <= estimation + 2 * lipschitz * radii.sum() + 1e-9
    # The upper bounds of these sums in the proof hold.
    counts = [len(rounds) for rounds in run.rounds_by_center.values()]
    assert estimation <= estimation_bound(counts) + 1e-9
    assert len(counts) <= center_bound(metric.eigenvalues, T)
    assert estimation_bound(counts) <= len(counts) * np.log(np.e * T / len(counts)) + 1e-9
    rank = int(effective_rank(metric.eigenvalues, T))
    assert radii.sum() <= (1 + 1 / rank) * T ** (rank / (1 + rank))
    assert found <= sharp_fixed_metric_regret_bound(metric.eigenvalues, T, lipschitz) + 1e-9


def test_learner_that_ignores_labels_violates_a_step_of_the_proof() -> None:
    # This shows that the test above can fail: 6 equal labels in one ball, with wrong predictions.
    y, wrong = np.ones(6), np.zeros(6)
    assert np.sum((wrong - y) ** 2) - np.sum((y.mean() - y) ** 2) > estimation_bound([6])


@given(st.data())
def test_history_equals_values_recorded_after_each_round(data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, y = data.draw(streams(metric.dimension, max_rows=30))
    state, sizes = packing.init(metric), []
    for x, label in zip(X, y, strict=True):
        packing.learn(state, x[None], [label])
        sizes.append(state.core.size)
    past = packing.history(state)
    t = np.arange(1, len(X) + 1)
    assert past.t.tolist() == t.tolist()
    assert past.n_centers.tolist() == sizes
    ranks = [oracles.effective_rank(metric.eigenvalues.tolist(), each) for each in t.tolist()]
    assert past.effective_rank.tolist() == ranks
    np.testing.assert_allclose(past.radius, [float(each) ** (-1 / (1 + r)) for each, r in zip(t, ranks, strict=True)])
    assert packing.history(state, [1]).n_centers.tolist() == [1]
    for beyond in (0, len(X) + 1, 1.5):
        with pytest.raises(DomainError, match=f"t must be rounds from 1 to {len(X)}, got"):
            packing.history(state, [beyond])


def test_number_of_centers_grows_beyond_the_initial_capacity() -> None:
    X = ball(np.random.default_rng(0), 2000, 12)
    state = packing.init(Metric.identity(12))
    packing.learn(state, X, np.linspace(0, 1, 2000))
    assert state.core.size > 1000
    founders = X[state.core.creation_rounds - 1]
    np.testing.assert_array_equal(state.core.coordinates, state.metric.whiten(founders))


ROUNDS_PER_BOUND, BOUND_MARGIN = 256, 1e-9  # as in cpp/radius_schedule.hpp


@given(st.integers(1, 10**12), st.integers(1, 100), st.integers(0, ROUNDS_PER_BOUND), st.integers(0, 100))
def test_cached_bound_is_at_most_each_radius_that_it_replaces(t: int, rank: int, later: int, more: int) -> None:
    bound = math.pow(t + ROUNDS_PER_BOUND, -1 / (1 + rank)) * (1 - BOUND_MARGIN)
    assert bound <= math.pow(t + later, -1 / (1 + rank + more))
