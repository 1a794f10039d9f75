from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, NonFiniteError, ShapeError
from ellipack.metric import KERNELS, GopEstimator, KernelDifferences, mean_outer_product
from ellipack.theory import bandwidth, step
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import ball, seeds


@st.composite
def cases(draw: st.DrawFn) -> tuple[KernelDifferences, Floats, Floats]:
    n, d = draw(st.integers(1, 25)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(seeds))
    estimator = KernelDifferences(
        kernel=draw(st.sampled_from(sorted(KERNELS))),
        bandwidth_scale=draw(st.sampled_from([0.1, 0.5, 1.0, 3.0])),
        step_scale=draw(st.sampled_from([0.1, 0.5, 1.0])),
        # With 0 every ball has enough mass, also empty ones, which predict the mean label.
        mass_scale=draw(st.sampled_from([0.0, 0.02, 0.2, 1.0])),
    )
    return estimator, ball(rng, n, d), rng.random(n)


def literal(estimator: KernelDifferences, X: Floats, y: Floats, anchors: Floats) -> list[list[float]]:
    reach = bandwidth(len(X), X.shape[1], estimator.bandwidth_scale)
    shift = step(reach, estimator.step_scale)
    mass, name = estimator.mass_scale, estimator.kernel
    return [oracles.difference_gradient(x, X.tolist(), y.tolist(), reach, shift, mass, name) for x in anchors.tolist()]


@given(cases())
def test_gradients_equal_appendix_a(case: tuple[KernelDifferences, Floats, Floats]) -> None:
    estimator, X, y = case
    np.testing.assert_allclose(estimator.gradients(X, y), literal(estimator, X, y, X), rtol=1e-8, atol=1e-9)


@given(cases())
def test_enough_mass_equals_appendix_a(case: tuple[KernelDifferences, Floats, Floats]) -> None:
    estimator, X, _ = case
    reach = bandwidth(len(X), X.shape[1], estimator.bandwidth_scale)
    shift = step(reach, estimator.step_scale)
    expected = [oracles.enough_mass(x, X.tolist(), reach, shift, estimator.mass_scale) for x in X.tolist()]
    assert estimator.enough_mass(X).tolist() == expected


@given(cases(), seeds)
def test_anchors_may_differ_from_the_rows(case: tuple[KernelDifferences, Floats, Floats], seed: int) -> None:
    estimator, X, y = case
    anchors = ball(np.random.default_rng(seed), 4, X.shape[1])
    expected = literal(estimator, X, y, anchors)
    np.testing.assert_allclose(estimator.gradients(X, y, anchors), expected, rtol=1e-8, atol=1e-9)


@given(cases(), st.integers(2, 5))
def test_results_do_not_depend_on_the_number_of_threads(
    case: tuple[KernelDifferences, Floats, Floats], n_jobs: int
) -> None:
    estimator, X, y = case
    shared = replace(estimator, n_jobs=n_jobs).gradients(X, y)
    assert shared.tobytes() == estimator.gradients(X, y).tobytes()


def test_no_ball_has_enough_mass_in_three_dimensions_with_the_papers_scales() -> None:
    X = ball(np.random.default_rng(0), 2000, 3)
    assert not KernelDifferences().gradients(X, X[:, 0], X[:50]).any()


def test_the_estimate_converges_to_the_gradient_outer_product() -> None:
    rng = np.random.default_rng(0)

    def truth(X: Floats) -> Floats:
        return np.column_stack([0.9 * np.cos(3 * X[:, 0]) + 0.2, -0.3 * np.sin(2 * X[:, 1])])

    gop = mean_outer_product(truth(ball(rng, 50_000, 2)))
    estimator = GopEstimator(KernelDifferences(bandwidth_scale=0.5, step_scale=0.2, mass_scale=0.25, n_jobs=2))

    def error(n: int) -> float:
        X = ball(rng, n, 2)
        y = 0.3 * np.sin(3 * X[:, 0]) + 0.2 * X[:, 0] + 0.15 * np.cos(2 * X[:, 1]) + 0.05 * rng.normal(size=n)
        return float(np.linalg.norm(replace(estimator, anchors=1000).estimate(X, y) - gop, 2))

    assert error(16_000) < 0.5 * error(2000)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gaussian"}, "kernel must be one of triangular, .*, got 'gaussian'"),
        ({"bandwidth_scale": 0.0}, "bandwidth_scale must be from 1e-100 to 1e[+]100, got 0"),
        ({"step_scale": -1.0}, "step_scale must be from 1e-100 to 1e[+]100, got -1"),
        ({"mass_scale": np.nan}, "mass_scale must be from 0 to 1e[+]100, got nan"),
        ({"n_jobs": 0}, "n_jobs must be >= 1, or -1 for one per core, got 0"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        KernelDifferences(**parameters)  # type: ignore[arg-type]


def test_invalid_rows_are_refused() -> None:
    estimator = KernelDifferences()
    with pytest.raises(NonFiniteError, match="X must be finite, got NaN at row 1, column 0"):
        estimator.gradients([[0.0], [np.nan]], [0.0, 1.0])
    with pytest.raises(ShapeError, match="y must hold one label per row: 2 rows, got 1 labels"):
        estimator.gradients([[0.0], [0.1]], [0.0])
    with pytest.raises(ShapeError, match="anchors must have 1 columns, got 2"):
        estimator.gradients([[0.0], [0.1]], [0.0, 1.0], [[0.0, 0.0]])
