import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import InputError, NonFiniteError, ShapeError
from ellipack.metric import Metric
from ellipack.theory import directional_lipschitz, lipschitz_constant, subspace_lipschitz
from tests.strategies import ball, metrics, seeds


@given(metrics(), seeds)
def test_lemma_3_holds_on_random_functions(metric: Metric, seed: int) -> None:
    # f(x) = sum_k a_k sin(w_k . x): the derivative along u is at most sum_k |a_k w_k . u|.
    rng = np.random.default_rng(seed)
    amplitudes, frequencies = rng.normal(size=4), 3 * rng.normal(size=(4, metric.dimension))
    largest = np.abs(frequencies @ metric.eigenvectors).T @ np.abs(amplitudes)
    constant = lipschitz_constant(metric.eigenvalues, largest)
    left, right = ball(rng, 50, metric.dimension), ball(rng, 50, metric.dimension)
    rise = np.abs(np.sin(left @ frequencies.T) @ amplitudes - np.sin(right @ frequencies.T) @ amplitudes)
    assert np.all(rise <= constant * metric.distance(left, right) * (1 + 1e-9) + 1e-12)


def test_lemma_3_is_attained_by_a_linear_function() -> None:
    metric = Metric.from_matrix([[2.0, 0.5], [0.5, 1.0]])
    gradient = np.array([[0.3, -0.7]])
    constant = lipschitz_constant(metric.eigenvalues, directional_lipschitz(gradient, metric.eigenvectors))
    steepest = np.linalg.solve(metric.matrix, gradient[0])[None]
    rise = float(gradient[0] @ steepest[0])
    assert rise == pytest.approx(constant * float(metric.distance(steepest, [[0.0, 0.0]])[0]))


def test_the_number_of_slopes_must_match_the_eigenvalues() -> None:
    with pytest.raises(ShapeError, match=r"directional must have shape \(2,\), got \(3,\)"):
        lipschitz_constant([1.0, 0.5], [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("directions", "error", "message"),
    [
        ([[1.0, 0.0]], ShapeError, "directions must have 2 rows, one per column of gradients, got 1"),
        ([1.0, 0.0], ShapeError, r"directions must be two-dimensional \(rows, columns\), got shape \(2,\)"),
        ([[1.0], [np.nan]], NonFiniteError, "directions must be finite, got NaN at row 1, column 0"),
        ([["a"], ["b"]], InputError, "directions must hold real numbers"),
    ],
)
def test_invalid_directions_are_refused(directions: list[list[float]], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        directional_lipschitz([[1.0, 2.0]], directions)


@given(st.integers(1, 5), seeds)
def test_the_derivative_in_a_subspace_is_the_largest_along_its_directions(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gradients, basis = rng.normal(size=(7, d)), np.linalg.qr(rng.normal(size=(d, d)))[0]
    part = basis[:, : int(rng.integers(1, d + 1))]
    largest = subspace_lipschitz(gradients, part)
    inside = part @ rng.normal(size=(part.shape[1], 50))
    inside /= np.linalg.norm(inside, axis=0)
    assert np.all(directional_lipschitz(gradients, inside) <= largest * (1 + 1e-12))
    projected = gradients @ part @ part.T
    steepest = projected[np.linalg.norm(projected, axis=1).argmax()]
    along = directional_lipschitz(gradients, steepest[:, None] / np.linalg.norm(steepest))[0]
    assert along == pytest.approx(largest)
    assert subspace_lipschitz(gradients, basis[:, :0]) == 0.0


def test_the_proof_of_lemma_3_needs_absolute_values() -> None:
    # Erratum 15: the proof replaces grad f(z)'u by its supremum, times u'(x - y), which may be negative. For f(x) =
    # x**2 / 2 on [0, 1] and x < y, the supremum is 1 and the bound on f(x) - f(y) too small.
    x, y = 0.2, 0.4
    assert (x**2 - y**2) / 2 > 1.0 * (x - y)
    assert abs(x**2 - y**2) / 2 <= 1.0 * abs(x - y)
