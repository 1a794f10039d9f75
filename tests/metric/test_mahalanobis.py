import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, InputError, MetricError, NonFiniteError, ShapeError
from ellipack.metric import UNSEEN_EIGENVALUE, Metric
from tests import oracles
from tests.strategies import ball, cuts, metrics, seeds


@given(metrics(), seeds)
def test_distance_equals_the_papers_definition(metric: Metric, seed: int) -> None:
    left, right = ball(np.random.default_rng(seed), 2 * 3, metric.dimension).reshape(2, 3, -1)
    expected = [oracles.mahalanobis(x, z, metric.matrix.tolist()) for x, z in zip(left, right, strict=True)]
    np.testing.assert_allclose(metric.distance(left, right), expected, rtol=1e-6, atol=1e-7)


@given(metrics(), seeds, st.data())
def test_whitening_makes_the_metric_euclidean_in_any_batch(metric: Metric, seed: int, data: st.DataObject) -> None:
    X = ball(np.random.default_rng(seed), 7, metric.dimension)
    coordinates = metric.whiten(X)
    np.testing.assert_allclose(coordinates @ coordinates.T, X @ metric.matrix @ X.T, atol=1e-12)
    parts = [metric.whiten(X[part]) for part in data.draw(cuts(len(X)))]
    np.testing.assert_array_equal(np.vstack(parts), coordinates)


@given(metrics())
def test_eigenvalues_are_normalized_and_in_order(metric: Metric) -> None:
    assert metric.eigenvalues[0] == 1
    assert np.all(np.diff(metric.eigenvalues) <= 0)
    np.testing.assert_allclose(metric.eigenvectors.T @ metric.eigenvectors, np.eye(metric.dimension), atol=1e-12)
    again = Metric.from_matrix(metric.matrix)
    np.testing.assert_allclose(again.matrix, metric.matrix, atol=1e-12)


@given(metrics(), seeds)
def test_slopes_are_pulled_back_by_the_chain_rule(metric: Metric, seed: int) -> None:
    # f(x) = s . whiten(x) has the slope s in coordinates.
    slope = np.random.default_rng(seed).normal(size=(1, metric.dimension))
    X = ball(np.random.default_rng(seed + 1), 3, metric.dimension)
    np.testing.assert_allclose(X @ metric.pull_back(slope)[0], metric.whiten(X) @ slope[0], atol=1e-12)


def test_the_norm_is_kept() -> None:
    metric = Metric.from_matrix([[4.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(metric.norm * metric.matrix, [[4.0, 0.0], [0.0, 2.0]])


@pytest.mark.parametrize("ridge", [1.0, 1e-3, 1e-30, 5e-324])
def test_a_regularized_gop_is_a_metric_for_any_ridge(ridge: float) -> None:
    gradient = np.array([[3.0, 4.0, 0.0]])
    metric = Metric.from_gop(gradient.T @ gradient, ridge)
    assert metric.eigenvalues[-1] > 0
    assert metric.eigenvalues[1] == pytest.approx(max(ridge / (25 + ridge), np.finfo(float).tiny), rel=1e-9, abs=1e-15)
    np.testing.assert_allclose(np.abs(metric.eigenvectors[:, 0]), [0.6, 0.8, 0.0], atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        ([[1.0, 0.5], [0.4, 1.0]], MetricError, r"matrix must be symmetric, got 0\.5 at \[0, 1\], 0\.4 across"),
        ([[1.0, 2.0], [2.0, 1.0]], MetricError, "matrix must be positive definite, got the eigenvalue -1"),
        ([[1.0, 1.0], [1.0, 1.0]], MetricError, "matrix must be positive definite"),
        ([[0.0]], MetricError, "matrix must be positive definite"),
        ([[1.0, 0.0]], ShapeError, r"matrix must be square and not empty, got shape \(1, 2\)"),
        (np.empty((0, 0)), ShapeError, "matrix must be square and not empty"),
        ([[np.inf]], NonFiniteError, "matrix must be finite, got inf at row 0, column 0"),
        ([["a"]], InputError, "matrix must hold real numbers"),
        ([[1j]], InputError, "matrix must hold real numbers, got complex128"),
    ],
)
def test_matrices_that_define_no_metric_are_refused(matrix: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Metric.from_matrix(matrix)  # type: ignore[arg-type]


def test_other_constructors_and_methods_refuse_invalid_input() -> None:
    with pytest.raises(MetricError, match=r"diagonal must be > 0, got 0 at 1"):
        Metric.from_diagonal([1.0, 0.0])
    with pytest.raises(MetricError, match="diagonal must span less than 1e308"):
        Metric.from_diagonal([1e200, 1e-200])
    with pytest.raises(ShapeError, match=r"diagonal must be one-dimensional and not empty, got shape \(0,\)"):
        Metric.from_diagonal([])
    with pytest.raises(DomainError, match="d must be an integer >= 1, got 0"):
        Metric.identity(0)
    with pytest.raises(MetricError, match="gop must be positive semidefinite, got the eigenvalue -2"):
        Metric.from_gop([[1.0, 0.0], [0.0, -2.0]], 0.1)
    with pytest.raises(DomainError, match="regularization must be > 0, got 0"):
        Metric.from_gop([[1.0]], 0.0)
    with pytest.raises(ShapeError, match="X must have 2 columns, got 3"):
        Metric.identity(2).whiten([[1.0, 2.0, 3.0]])
    with pytest.raises(ShapeError, match="X and Z must have the same number of rows, got 1 and 2"):
        Metric.identity(1).distance([[1.0]], [[1.0], [2.0]])


@given(metrics(), st.integers(1, 3), st.sampled_from([1.0, 0.3, UNSEEN_EIGENVALUE]), seeds)
def test_added_features_keep_old_distances_and_have_the_given_weight(
    metric: Metric, count: int, weight: float, seed: int
) -> None:
    d, wide = metric.dimension, metric.with_added_features(count, weight)
    X = ball(np.random.default_rng(seed), 6, d + count)
    old = X * np.append(np.ones(d), np.zeros(count))
    np.testing.assert_allclose(wide.distance(old[:3], old[3:]), metric.distance(X[:3, :d], X[3:, :d]), atol=1e-12)
    new = X - old
    expected = np.sqrt(weight) * np.linalg.norm(new[:3] - new[3:], axis=1)
    np.testing.assert_allclose(wide.distance(new[:3], new[3:]), expected, rtol=1e-6)  # squares are nearly subnormal
    assert np.all(np.diff(wide.eigenvalues) <= 0)
    assert wide.eigenvalues[0] == 1
    with pytest.raises(DomainError, match=r"weight must be from .* to 1, got 2"):
        metric.with_added_features(1, 2.0)
