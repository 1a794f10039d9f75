import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ellipack.errors import DomainError, MetricError, ShapeError
from ellipack.metric.mahalanobis import eigensystem
from ellipack.theory import (
    directional_lipschitz,
    eigenvalue_errors,
    first_order_rotation,
    outer_product_error,
    printed_burn_in,
    rotated_lipschitz,
    rotation_bound,
    rotation_sines,
    scaled_eigenvalue,
    scaled_eigenvalue_slope,
    separated,
    subspace_lipschitz,
)
from ellipack.validation import Floats
from tests.strategies import seeds, spectra


def perturbed(mu: Floats, size: float, seed: int) -> tuple[Floats, Floats, Floats]:
    """Return eigenvectors, the matrix of a spectrum, and a symmetric perturbation of norm `size`."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(len(mu), len(mu))))[0]
    noise = rng.normal(size=(len(mu), len(mu)))
    noise = noise + noise.T
    truth = (basis * mu) @ basis.T
    return basis, (truth + truth.T) / 2, noise * (size / np.abs(np.linalg.eigvalsh(noise)).max())


@given(spectra(), st.floats(1e-6, 2), seeds)
def test_no_eigenvalue_is_off_by_more_than_the_error(mu: Floats, size: float, seed: int) -> None:
    _, truth, noise = perturbed(mu, size, seed)
    error = outer_product_error(truth + noise, truth)
    assert error == pytest.approx(size)
    assert np.all(eigenvalue_errors(truth + noise, truth) <= error * (1 + 1e-9) + 1e-12)
    # The concentration is attained by a multiple of the identity.
    shifted = truth + size * np.eye(len(mu))
    assert eigenvalue_errors(shifted, truth) == pytest.approx([size] * len(mu))


@given(spectra(), st.floats(1e-6, 2), seeds)
def test_no_eigenvector_turns_farther_than_its_bound(mu: Floats, size: float, seed: int) -> None:
    basis, truth, noise = perturbed(mu, size, seed)
    estimated = eigensystem(truth + noise)[1]
    assert np.all(rotation_sines(estimated, basis) <= rotation_bound(mu, size) * (1 + 1e-9) + 1e-7)


def test_the_bound_on_rotations_cannot_be_halved() -> None:
    # A perturbation that is half the gap can exchange two eigenvectors.
    mu, error = np.array([1.0, 0.5]), 0.25 + 1e-9
    estimate = np.diag(mu) + error * np.diag([-1.0, 1.0])
    assert rotation_sines(eigensystem(estimate)[1], np.eye(2)).tolist() == pytest.approx([1.0, 1.0])
    assert rotation_bound(mu, error).tolist() == pytest.approx([1.0, 1.0])
    assert rotation_bound(mu, 0.1).tolist() == pytest.approx([0.4, 0.4])
    assert rotation_bound([1.0, 0.5, 0.5], 0.0).tolist() == [0.0, 0.0, 0.0]


@given(st.integers(2, 5), seeds)
def test_first_order_rotation_leaves_a_rest_of_second_order(d: int, seed: int) -> None:
    mu = np.sort(np.random.default_rng(seed).random(d))[::-1] + np.arange(d)[::-1] / 2  # gaps of at least 1/2
    basis, truth, noise = perturbed(mu, 1.0, seed)
    rests = []
    for size in (1e-3, 1e-4):
        vectors = eigensystem(truth + size * noise)[1]
        for j in range(d):
            turned = basis.T @ vectors[:, j]
            turned *= np.sign(turned[j])
            turned[j] -= 1
            rests.append(np.linalg.norm(turned - first_order_rotation(mu, basis, size * noise, j)) / size**2)
    # O, not o (erratum 16): the rest over the square of the norm has a limit, which is not 0.
    large, small = np.array(rests[:d]), np.array(rests[d:])
    assert small == pytest.approx(large, rel=0.05, abs=0.05)
    assert small.max() > 1e-3


def test_first_order_rotation_needs_simple_eigenvalues() -> None:
    # Erratum 16: the printed step divides by 0 where eigenvalues are equal.
    with pytest.raises(DomainError, match="eigenvalue 1 must differ from the others"):
        first_order_rotation([1.0, 0.5, 0.5], np.eye(3), np.eye(3), j=1)
    assert first_order_rotation([1.0, 0.5, 0.5], np.eye(3), np.ones((3, 3)), j=0).tolist() == [0.0, 2.0, 2.0]


@given(spectra(max_d=5), st.floats(1e-6, 0.5), st.floats(0.01, 0.5), seeds)
def test_derivatives_along_estimated_eigenvectors_are_bounded(mu: Floats, size: float, delta: float, seed: int) -> None:
    basis, truth, noise = perturbed(mu, size, seed)
    gradients = np.random.default_rng(seed).normal(size=(20, len(mu))) * np.sqrt(mu)
    estimated = eigensystem(truth + noise)[1]
    known = {"delta": delta, "directions": basis, "gradients": gradients}
    bound = rotated_lipschitz(mu, size, **known)  # type: ignore[arg-type]
    assert np.all(directional_lipschitz(gradients, estimated) <= bound * (1 + 1e-6) + 1e-6)
    # The printed first-order expression is larger, so that it needs no further terms.
    inside = separated(mu, delta)
    sups = [subspace_lipschitz(gradients, basis[:, each]) for each in (inside, ~inside)]
    rotation = np.sqrt(len(mu)) * (2 * size / delta * sups[0] + 2 * sups[1])
    assert np.all(bound <= directional_lipschitz(gradients, basis) + rotation + 1e-12)


def test_derivatives_along_estimated_eigenvectors_worked_by_hand() -> None:
    # The gap of the first is 0.6, that of the others 0.1. The sine is 2 * 0.05 / 0.5 = 0.2.
    gradients = [[0.5, 0.0, 0.0], [0.1, 0.3, 0.4], [5.0, 5.0, 5.0]]
    known = {"delta": 0.5, "directions": np.eye(3)}
    small = rotated_lipschitz([1.0, 0.4, 0.3], 0.05, gradients=gradients[:2], **known)  # type: ignore[arg-type]
    # Known: 0.5 along itself, and 0.2 times 0.5 + 0.5, capped by the largest gradient. Others: 0.2 * 0.5 + 0.5, too.
    assert small.tolist() == pytest.approx([np.sqrt(0.26)] * 3)
    large = rotated_lipschitz([1.0, 0.4, 0.3], 0.05, gradients=gradients, **known)  # type: ignore[arg-type]
    root = np.sqrt(50)
    assert large.tolist() == pytest.approx([5 + 0.2 * (5 + root), 0.2 * 5 + root, 0.2 * 5 + root])


parameters = st.tuples(st.floats(1e-3, 1), st.floats(0.1, 3), st.integers(1, 8))


@given(parameters, st.floats(1, 1e6), st.integers(0, 10**4))
def test_the_slope_of_f_is_its_derivative(values: tuple[float, float, int], t: float, start: int) -> None:
    mu, alpha, rank = values
    known = {"start": start, "alpha": alpha, "rank": rank}
    h = 1e-4 * t
    ahead, behind = scaled_eigenvalue([t + h, max(t - h, 1.0)], mu, **known)  # type: ignore[arg-type]
    slope = float(scaled_eigenvalue_slope(t, mu, **known))  # type: ignore[arg-type]
    scale = float(scaled_eigenvalue(t, mu, **known)) / t  # type: ignore[arg-type]
    assert (ahead - behind) / (t + h - max(t - h, 1.0)) == pytest.approx(slope, abs=2e-3 * (1 + alpha) ** 2 * scale)


@given(parameters, st.integers(0, 10))
def test_f_rises_after_the_printed_burn_in(values: tuple[float, float, int], later: int) -> None:
    mu, alpha, d = values
    start = printed_burn_in(mu, d, alpha)
    assume(start < 1e12)
    t = np.geomspace(1, 1e15, 400)
    assert np.all(scaled_eigenvalue_slope(t, mu, start=int(np.ceil(start)) + later, alpha=alpha, rank=d) > 0)


def test_f_can_fall_without_a_burn_in() -> None:
    # The lemma says something: with T_0 = 0, mu = 0.001 and alpha = 1, (mu + 2/t) t**(2/9) falls at first.
    assert printed_burn_in(0.001, 8, 1.0) == pytest.approx(4500)
    slopes = scaled_eigenvalue_slope([1.0, 100.0, 1e6], 0.001, start=0, alpha=1.0, rank=8)
    assert (slopes > 0).tolist() == [False, False, True]


def test_f_worked_by_hand() -> None:
    # (0.5 + 2 / 4) sqrt(16): the start is 0, alpha 1/2 and the rank 3.
    assert float(scaled_eigenvalue(16.0, 0.5, start=0, alpha=0.5, rank=3)) == pytest.approx(4.0)
    assert float(scaled_eigenvalue_slope(16.0, 0.5, start=0, alpha=0.5, rank=3)) == pytest.approx(1 / 16)


@pytest.mark.parametrize(
    ("estimate", "error", "message"),
    [
        ([[1.0, 2.0], [0.0, 1.0]], MetricError, "estimate must be symmetric, got"),
        ([[1.0, 2.0]], ShapeError, r"estimate must be square, got shape \(1, 2\)"),
        ([[1.0]], ShapeError, r"matrices must have the same shape, got \(1, 1\) and \(2, 2\)"),
    ],
)
def test_invalid_matrices_are_refused(estimate: list[list[float]], error: type[Exception], message: str) -> None:
    for function in (outer_product_error, eigenvalue_errors):
        with pytest.raises(error, match=message):
            function(estimate, np.eye(2))


def test_directions_are_an_orthonormal_basis() -> None:
    with pytest.raises(MetricError, match="directions must be orthonormal columns"):
        rotation_sines(np.eye(2), [[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ShapeError, match="directions must have 2 columns, got 3"):
        rotated_lipschitz([1.0, 0.5], 0.1, delta=0.1, directions=np.eye(3), gradients=[[1.0, 0.0]])
