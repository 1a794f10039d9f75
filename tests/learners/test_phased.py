import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from ellipack.learners import phased
from ellipack.metric import GopEstimator, KernelDifferences, LocalSlopes, Metric
from ellipack.theory import (
    bandwidth,
    directional_lipschitz,
    effective_rank,
    lipschitz_constant,
    phase_end,
    phase_length,
    phased_regret_bound,
    radius,
    regularization,
    step,
)
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, seeds, streams


def appendix_a(X: oracles.Matrix, y: oracles.Vector, scale: float, mass: float) -> list[list[float]]:
    reach = bandwidth(len(X), len(X[0]), scale)
    shift = step(reach, scale)
    return oracles.mean_outer_product(
        [oracles.difference_gradient(x, X, y, reach, shift, mass, "epanechnikov") for x in X]
    )


def normalized(matrix: oracles.Matrix) -> tuple[list[float], list[list[float]]]:
    array = np.array(matrix)
    values = np.linalg.eigvalsh(array)[::-1]
    return (values / values[0]).tolist(), (array / values[0]).tolist()


@pytest.mark.parametrize("keep", [True, False])
@settings(max_examples=25)
@given(st.data())
def test_learner_equals_literal_section_4(keep: bool, data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 3))
    X, y = data.draw(streams(d, max_rows=32))
    alpha, scale, mass = data.draw(
        st.tuples(st.sampled_from([0.2, 0.5, 1.0]), st.sampled_from([0.5, 1.0]), st.just(0.05))
    )
    expected = oracles.phased(
        X.tolist(), y.tolist(), alpha, lambda A, b: appendix_a(A, b, scale, mass), normalized, keep
    )
    state = phased.init(d)
    estimator = GopEstimator(KernelDifferences(bandwidth_scale=scale, step_scale=scale, mass_scale=mass))
    made = phased.learn(state, X, y, alpha=alpha, estimator=estimator, keep_founding_label=keep)
    assert made.tolist() == expected


def test_each_phase_has_a_summary() -> None:
    X = ball(np.random.default_rng(0), 100, 2)
    y = 0.5 + 0.4 * np.sin(3 * X[:, 0])
    state, estimator = phased.init(2), GopEstimator(LocalSlopes())
    phased.learn(state, X, y, alpha=0.5, estimator=estimator)
    assert [phase.number for phase in state.phases] == [1, 2, 3, 4, 5]
    assert [phase.rounds for phase in state.phases] == [phase_length(i) for i in range(1, 6)]
    metric = Metric.identity(2)
    for phase in state.phases:
        end = phase_end(phase.number)
        np.testing.assert_array_equal(phase.metric.matrix, metric.matrix)
        np.testing.assert_array_equal(phase.gop, estimator.estimate(X[:end], y[:end]))
        assert phase.effective_rank == int(effective_rank(metric.eigenvalues, phase.rounds))
        assert 1 <= phase.n_centers == len(phase.creation_rounds) <= phase.rounds
        metric = Metric.from_gop(phase.gop, regularization(end, 0.5))
    np.testing.assert_array_equal(state.packing.metric.matrix, metric.matrix)
    assert state.packing.clock == 100 - phase_end(5)


def test_learned_metric_finds_the_true_direction() -> None:
    X = ball(np.random.default_rng(0), 1000, 5)
    direction = np.array([3.0, 4.0, 0.0, 0.0, 0.0]) / 5
    y = 0.5 + 0.4 * np.sin(4 * X @ direction)
    state = phased.init(5)
    phased.learn(state, X, y, alpha=1.0, estimator=GopEstimator(LocalSlopes()))
    assert abs(state.packing.metric.eigenvectors[:, 0] @ direction) > np.cos(np.radians(5))


def test_history_joins_the_phases() -> None:
    X = ball(np.random.default_rng(0), 50, 2)
    y = 0.5 + 0.4 * np.sin(3 * X[:, 0])
    state, sizes, estimator = phased.init(2), [], GopEstimator(LocalSlopes())
    for x, label in zip(X, y, strict=True):
        phased.learn(state, x[None], [label], alpha=0.5, estimator=estimator)
        sizes.append(state.packing.core.size or state.phases[-1].n_centers)  # a new phase has no centers yet
    past = phased.history(state)
    assert past.t.tolist() == list(range(1, 51))
    assert past.n_centers.tolist() == sizes
    ends = [phase_end(i) - 1 for i in range(1, 5)]
    assert past.radius[ends].tolist() == [phase.radius for phase in state.phases]
    assert past.effective_rank[ends].tolist() == [phase.effective_rank for phase in state.phases]


@given(seeds)
def test_phased_regret_bound_exceeds_the_sums_of_its_proof(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, frequency = ball(rng, 62, 2), 4 * rng.normal(size=2)
    best = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(best + 0.2 * rng.normal(size=len(X)), 0, 1)
    state = phased.init(2)
    made = phased.learn(state, X, y, alpha=0.5, estimator=GopEstimator(LocalSlopes()))
    along = [directional_lipschitz(0.5 * frequency[None], phase.metric.eigenvectors) for phase in state.phases]
    constants = [lipschitz_constant(p.metric.eigenvalues, each) for p, each in zip(state.phases, along, strict=True)]
    # Before packings are bounded by lemmas: 8 ln(e T) a center, and 2 L times the radii.
    summed = sum(
        8 * np.log(np.e * p.rounds) * p.n_centers
        + 2 * L * radius(p.metric.eigenvalues, np.arange(1, p.rounds + 1)).sum()
        for p, L in zip(state.phases, constants, strict=True)
    )
    assert np.sum((made - y) ** 2) - np.sum((best - y) ** 2) <= summed
    assert summed <= phased_regret_bound([phase.metric.eigenvalues for phase in state.phases], constants)


class FailsOnThirdCall:
    """An estimator of gradients that gives up in the third phase."""

    def __init__(self) -> None:
        self.calls = 0

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        self.calls += 1
        if self.calls == 3:
            raise MemoryError("no room for gradients")
        return np.ones_like(np.asarray(X))


def test_failing_estimator_leaves_the_state_unchanged() -> None:
    X = ball(np.random.default_rng(0), 40, 2)
    y = np.linspace(0, 1, 40)
    state = phased.init(2)
    estimator = GopEstimator(FailsOnThirdCall())
    phased.learn(state, X[:5], y[:5], alpha=0.5, estimator=estimator)
    with pytest.raises(MemoryError):
        phased.learn(state, X[5:], y[5:], alpha=0.5, estimator=estimator)
    assert (state.clock, state.packing.clock, len(state.phases)) == (5, 3, 1)
    # Going on from there is as if nothing had happened.
    fresh, steady = phased.init(2), GopEstimator(LocalSlopes())
    phased.learn(fresh, X[:5], y[:5], alpha=0.5, estimator=GopEstimator(FailsOnThirdCall()))
    expected = phased.learn(fresh, X[5:], y[5:], alpha=0.5, estimator=steady)
    assert phased.learn(state, X[5:], y[5:], alpha=0.5, estimator=steady).tolist() == expected.tolist()
