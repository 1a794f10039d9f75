import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    regularization,
    step,
)
from tests import oracles
from tests.strategies import ball, seeds, streams


def appendix_a(X: oracles.Matrix, y: oracles.Vector, scale: float, mass: float) -> list[list[float]]:
    reach = bandwidth(len(X), len(X[0]), scale)
    shift = step(reach, scale)
    return oracles.mean_outer_product(
        [oracles.difference_gradient(x, X, y, reach, shift, mass, "epanechnikov") for x in X]
    )


def normalised(matrix: oracles.Matrix) -> tuple[list[float], list[list[float]]]:
    array = np.array(matrix)
    values = np.linalg.eigvalsh(array)[::-1]
    return (values / values[0]).tolist(), (array / values[0]).tolist()


@pytest.mark.interpreted
@pytest.mark.parametrize("keep", [True, False])
@settings(max_examples=25)
@given(st.data())
def test_it_is_section_4(keep: bool, data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 3))
    X, y = data.draw(streams(d, max_rows=32))
    alpha, scale, mass = data.draw(
        st.tuples(st.sampled_from([0.2, 0.5, 1.0]), st.sampled_from([0.5, 1.0]), st.just(0.05))
    )
    expected = oracles.phased(
        X.tolist(), y.tolist(), alpha, lambda A, b: appendix_a(A, b, scale, mass), normalised, keep
    )
    state = phased.init(d)
    estimator = GopEstimator(KernelDifferences(bandwidth_scale=scale, step_scale=scale, mass_scale=mass))
    made = phased.learn(state, X, y, alpha=alpha, estimator=estimator, keep_founding_label=keep)
    assert made.tolist() == expected


def test_each_phase_records_what_it_was_like() -> None:
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
        assert 1 <= phase.n_centers <= phase.rounds
        metric = Metric.from_gop(phase.gop, regularization(end, 0.5))
    np.testing.assert_array_equal(state.packing.metric.matrix, metric.matrix)
    assert state.packing.clock == 100 - phase_end(5)


def test_the_learned_metric_finds_the_direction_that_matters() -> None:
    X = ball(np.random.default_rng(0), 1000, 5)
    direction = np.array([3.0, 4.0, 0.0, 0.0, 0.0]) / 5
    y = 0.5 + 0.4 * np.sin(4 * X @ direction)
    state = phased.init(5)
    phased.learn(state, X, y, alpha=1.0, estimator=GopEstimator(LocalSlopes()))
    assert abs(state.packing.metric.eigenvectors[:, 0] @ direction) > np.cos(np.radians(5))


@given(seeds)
def test_regret_is_under_the_sum_of_the_phases_bounds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, frequency = ball(rng, 62, 2), 4 * rng.normal(size=2)
    best = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(best + 0.2 * rng.normal(size=len(X)), 0, 1)
    state = phased.init(2)
    made = phased.learn(state, X, y, alpha=0.5, estimator=GopEstimator(LocalSlopes()))
    constants = [
        lipschitz_constant(
            phase.metric.eigenvalues, directional_lipschitz(0.5 * frequency[None], phase.metric.eigenvectors)
        )
        for phase in state.phases
    ]
    regret = np.sum((made - y) ** 2) - np.sum((best - y) ** 2)
    assert regret <= phased_regret_bound([phase.metric.eigenvalues for phase in state.phases], constants)
