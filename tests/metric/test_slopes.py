from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import KdTree, local_slopes
from ellipack.errors import DomainError
from ellipack.metric import GopEstimator, LocalSlopes, Metric, mean_outer_product, slopes
from ellipack.validation import Floats
from tests.strategies import ball, metrics, seeds


def literal(estimator: LocalSlopes, X: Floats, y: Floats, x: Floats) -> Floats:
    """Return the slope by the normal equations of weighted least squares, with NumPy's solver."""
    metric = estimator.metric or Metric.identity(X.shape[1])
    k = min(estimator.neighbors or 3 * X.shape[1] + 20, len(X))
    offsets = metric.whiten(X) - metric.whiten(x[None])
    squared = (offsets**2).sum(axis=1)
    near = np.argsort(squared, kind="stable")[:k]
    if squared[near[-1]] == 0:
        return np.zeros(len(x))
    w = 1 - squared[near] / squared[near[-1]]
    if w.sum() == 0:
        return np.zeros(len(x))
    centered = offsets[near] - np.average(offsets[near], axis=0, weights=w)
    gram = (centered * w[:, None]).T @ centered
    right = (centered * w[:, None]).T @ (y[near] - np.average(y[near], weights=w))
    if np.trace(gram) <= 1e-290:
        return np.zeros(len(x))
    slope = np.linalg.solve(gram + estimator.ridge * np.trace(gram) / len(gram) * np.eye(len(gram)), right)
    return np.asarray(metric.directions @ slope)


@given(metrics(max_d=4), st.integers(1, 40), st.sampled_from([None, 2, 5, 12]), st.sampled_from([0.01, 1.0]), seeds)
def test_slopes_are_weighted_ridge_regressions(
    metric: Metric, n: int, neighbors: int | None, ridge: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, y, anchors = ball(rng, n, metric.dimension), rng.random(n), ball(rng, 3, metric.dimension)
    estimator = LocalSlopes(neighbors, ridge, metric)
    expected = [literal(estimator, X, y, x) for x in anchors]
    np.testing.assert_allclose(estimator.gradients(X, y, anchors), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("neighbors", [None, 6])
def test_slopes_of_fewer_rows_than_features_are_computed_in_few_coordinates(
    neighbors: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    X, y, anchors = rng.normal(size=(12, 40)), rng.normal(size=12), rng.normal(size=(5, 40))
    anchors[0] = X[3]
    metric = Metric.from_diagonal(rng.uniform(0.1, 1.0, size=40))
    estimator, widths = LocalSlopes(neighbors, 0.1, metric), []

    def record(tree: KdTree, labels: Floats, queries: Floats, count: int, ridge: float) -> Floats:
        widths.append(queries.shape[1])
        return local_slopes(tree, labels, queries, count, ridge)

    monkeypatch.setattr(slopes, "local_slopes", record)
    expected = [literal(estimator, X, y, x) for x in anchors]
    np.testing.assert_allclose(estimator.gradients(X, y, anchors), expected, rtol=1e-9, atol=1e-11)
    assert set(widths) == {13}


@pytest.mark.parametrize("d", [3, 40])
def test_slopes_do_not_depend_on_the_order_of_the_rows(d: int) -> None:
    rng = np.random.default_rng(0)
    X, y, order = rng.normal(size=(12, d)), rng.normal(size=12), rng.permutation(12)
    assert LocalSlopes(9).gradients(X[order], y[order]).tobytes() == LocalSlopes(9).gradients(X, y)[order].tobytes()


@given(seeds, st.integers(2, 4))
def test_results_do_not_depend_on_the_number_of_threads(seed: int, n_jobs: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = ball(rng, 40, 3), rng.random(40)
    estimator = LocalSlopes(10)
    assert replace(estimator, n_jobs=n_jobs).gradients(X, y).tobytes() == estimator.gradients(X, y).tobytes()


def test_the_slope_of_a_linear_function_is_exact() -> None:
    X = ball(np.random.default_rng(0), 500, 3)
    slopes = LocalSlopes(ridge=1e-8).gradients(X, X @ [1.0, -2.0, 0.5])
    np.testing.assert_allclose(slopes, np.tile([1.0, -2.0, 0.5], (500, 1)), atol=1e-6)


def test_equal_rows_give_slope_0() -> None:
    X = np.full((30, 2), 0.3)
    assert not LocalSlopes().gradients(X, np.arange(30.0)).any()
    X[:, 0] += 1e-160 * np.arange(30)
    assert np.isfinite(LocalSlopes().gradients(X, np.arange(30.0))).all()


def test_the_estimate_converges_to_the_gradient_outer_product() -> None:
    rng = np.random.default_rng(1)
    gop = mean_outer_product(0.9 * np.cos(3 * ball(rng, 50_000, 2)) * [1.0, 0.5])

    def error(n: int) -> float:
        X = ball(rng, n, 2)
        y = np.sin(3 * X) @ [0.3, 0.15] + 0.05 * rng.normal(size=n)
        # More neighbors for more rows: bias and noise both vanish.
        slopes = LocalSlopes(neighbors=int(n**0.7), ridge=1e-4, n_jobs=2)
        return float(np.linalg.norm(GopEstimator(slopes, anchors=1000).estimate(X, y) - gop, 2))

    assert error(4000) < 0.5 * error(500)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neighbors": 1}, "neighbors must be an integer >= 2, got 1"),
        ({"ridge": 0.0}, "ridge must be from 1e-08 to inf, got 0"),
        ({"n_jobs": -2}, "n_jobs must be >= 1, or -1 for one per core, got -2"),
    ],
)
def test_invalid_parameters_are_refused(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        LocalSlopes(**parameters)  # type: ignore[arg-type]
