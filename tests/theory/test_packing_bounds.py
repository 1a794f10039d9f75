from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ellipe

from ellipack.errors import DomainError, MetricError, ShapeError
from ellipack.metric import Metric
from ellipack.theory import (
    center_bound,
    determinant_center_bound,
    ellipsoid_packing_bound,
    packing_bound,
    packing_number,
    pairwise_distances,
    printed_ellipsoid_packing_bound,
    relative_spectrum,
    smallest_radius,
    volumetric_packing_bound,
)
from ellipack.validation import Floats
from tests.strategies import ball, metrics, seeds, spectra


def greedy_packing(points: Floats, metric: Metric, radius: float) -> int:
    """Return the size of a greedy packing: points pairwise farther than `radius`."""
    kept: list[Floats] = []
    for point in metric.whiten(points):
        if not kept or np.linalg.norm(np.array(kept) - point, axis=1).min() > radius:
            kept.append(point)
    return len(kept)


@given(metrics(max_d=5), st.floats(0.05, 3), seeds)
def test_no_packing_exceeds_lemmas_1_and_2(metric: Metric, radius: float, seed: int) -> None:
    d = metric.dimension
    # The sphere and the axes pack better than the inside.
    inside = ball(np.random.default_rng(seed), 300, d)
    points = np.vstack([np.eye(d), -np.eye(d), inside / np.linalg.norm(inside, axis=1, keepdims=True), inside])
    size = greedy_packing(points, metric, radius)
    assert size <= ellipsoid_packing_bound(metric.eigenvalues, radius) * (1 + 1e-9)
    assert size <= packing_bound(metric.eigenvalues, radius)


def test_lemma_2_as_printed_is_exceeded_and_as_proved_is_not() -> None:
    weights, radius = np.array([1.0] + [0.79] * 7), 0.9
    size = greedy_packing(np.vstack([np.eye(8), -np.eye(8)]), Metric.from_diagonal(weights), radius)
    assert size == 16
    assert printed_ellipsoid_packing_bound(weights, radius) < size <= ellipsoid_packing_bound(weights, radius)


def test_lemma_2_worked_by_hand() -> None:
    # sqrt(lambda) are 1, 0.5, 0.1; a radius of 0.4 counts those >= 0.4 as printed, those >= 0.1414 as proved.
    assert printed_ellipsoid_packing_bound([1.0, 0.25, 0.01], 0.4) == pytest.approx((8 * 2**0.5 / 0.4) ** 2 * 0.5)
    assert ellipsoid_packing_bound([1.0, 0.25, 0.01], 0.4) == pytest.approx((8 * 2**0.5 / 0.4) ** 2 * 0.5)
    assert ellipsoid_packing_bound([1.0, 0.25, 0.01], 0.28) == pytest.approx((8 * 2**0.5 / 0.28) ** 3 * 0.5 * 0.1)
    assert ellipsoid_packing_bound([1.0], 2.9) == 1.0
    assert ellipsoid_packing_bound(np.ones(400), 1e-3) == np.inf


def test_the_inequality_in_the_proof_of_lemma_2_fails_from_two_axes_on() -> None:
    # Erratum 12: the sum of eps**2 / lambda_i over the long axes is printed to be at most 1. It need not be, but the
    # conclusion holds: points of the ball of radius eps are in the ellipsoid.
    eps, eigenvalues = 0.5, np.array([1.0, 0.25])
    assert np.all(np.sqrt(eigenvalues) >= eps)
    assert np.sum(eps**2 / eigenvalues) > 1
    inside = eps * ball(np.random.default_rng(0), 1000, 2)
    assert np.all(np.sum(inside**2 / eigenvalues, axis=1) <= 1)


@given(st.integers(1, 10), st.floats(0.01, 2))
def test_lemma_1_is_a_power_for_the_identity(d: int, radius: float) -> None:
    assert volumetric_packing_bound(np.ones(d), radius) == pytest.approx((1 + 2 / radius) ** d, rel=1e-12)


@given(st.floats(-12, 0), st.floats(0.01, 2))
def test_lemma_1_in_the_plane_is_the_area_around_an_ellipse(logarithm: float, radius: float) -> None:
    # The area of the points within h of an ellipse: its own area, h times its perimeter, and a disk.
    minor, h = np.exp(logarithm / 2), radius / 2
    perimeter = 4 * float(ellipe(1 - minor**2))
    area = np.pi * minor + h * perimeter + np.pi * h**2
    assert volumetric_packing_bound([1.0, minor**2], radius) == pytest.approx(area / (np.pi * h**2), rel=1e-11)


def test_lemma_1_in_space_is_the_volume_around_an_ellipsoid_of_revolution() -> None:
    # Volume + surface h + mean curvature h**2 + ball, for semi-axes a, a, c with c < a (an oblate spheroid).
    a, c, h = 1.0, 0.5, 0.2
    e = np.sqrt(1 - c**2 / a**2)
    surface = 2 * np.pi * a**2 * (1 + (1 - e**2) / e * np.arctanh(e))
    curvature = 2 * np.pi * a * (c / a + np.arcsin(e) / e)
    volume = 4 / 3 * np.pi * (a * a * c + h**3) + surface * h + curvature * h**2
    assert volumetric_packing_bound([1.0, 1.0, 0.25], 2 * h) == pytest.approx(
        volume / (4 / 3 * np.pi * h**3), rel=1e-11
    )


def distance_to_ellipsoid(points: Floats, axes: Floats) -> Floats:
    """Return the distance of points to a solid ellipsoid, by bisection of the multiplier of the nearest point."""
    low, high = np.zeros(len(points)), np.full(len(points), 10.0)
    for _ in range(45):
        middle = (low + high) / 2
        outside = np.sum((points * axes / (axes**2 + middle[:, None])) ** 2, axis=1) > 1
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    nearest = points * axes**2 / (axes**2 + high[:, None])
    return np.asarray(np.linalg.norm(points - nearest, axis=1))


@pytest.mark.parametrize("eigenvalues", [[1.0, 0.3, 0.05], [1.0, 0.6, 0.2, 0.01]])
def test_lemma_1_is_a_ratio_of_volumes(eigenvalues: list[float]) -> None:
    axes, h, n = np.sqrt(eigenvalues), 0.3, 60_000
    box = axes + h
    points = np.random.default_rng(0).uniform(-box, box, size=(n, len(axes)))
    share = float(np.mean(distance_to_ellipsoid(points, axes) <= h))
    ball_volume = {3: 4 / 3 * np.pi, 4: np.pi**2 / 2}[len(axes)] * h ** len(axes)
    ratio = share * np.prod(2 * box) / ball_volume
    error = ratio * np.sqrt((1 - share) / share / n)
    assert volumetric_packing_bound(eigenvalues, 2 * h) == pytest.approx(ratio, abs=4 * error)


@given(spectra(), st.floats(0.01, 2))
def test_lemma_1_lies_between_an_inner_ellipsoid_and_the_bound_of_the_identity(
    eigenvalues: Floats, radius: float
) -> None:
    bound = volumetric_packing_bound(eigenvalues, radius)
    assert bound >= np.prod(1 + 2 * np.sqrt(eigenvalues) / radius) * (1 - 1e-9)
    assert bound <= (1 + 2 / radius) ** len(eigenvalues) * (1 + 1e-9)


@settings(max_examples=20)
@given(metrics(max_d=3), metrics(max_d=3), st.floats(0.3, 1.5), seeds)
def test_lemma_1_bounds_packings_of_any_norms(body: Metric, norm: Metric, radius: float, seed: int) -> None:
    if body.dimension != norm.dimension:
        norm = Metric.identity(body.dimension)
    inside = ball(np.random.default_rng(seed), 20, body.dimension)
    points = inside / np.sqrt(np.einsum("ij,jk,ik->i", inside, body.matrix, inside))[:, None]  # on the unit sphere
    size = packing_number(pairwise_distances(points, norm.matrix), radius)
    assert size <= packing_bound(relative_spectrum(body.matrix, norm.matrix), radius)


def test_relative_spectrum_is_that_of_a_change_of_variables() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(2, 4, 4))
    body, norm = (each @ each.T + 0.1 * np.eye(4) for each in roots)
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(body, norm)).real)[::-1]
    np.testing.assert_allclose(relative_spectrum(body, norm), expected, rtol=1e-9)
    assert relative_spectrum(np.eye(2), np.diag([4.0, 9.0])).tolist() == pytest.approx([9.0, 4.0])


@pytest.mark.parametrize(
    ("body", "norm", "error", "message"),
    [
        ([[1.0, 0.0]], np.eye(2), ShapeError, r"body must be square, got shape \(1, 2\)"),
        (np.eye(2), np.eye(3), ShapeError, r"norm must have shape \(2, 2\), got \(3, 3\)"),
        (np.eye(2), -np.eye(2), MetricError, "norm must be positive definite, got the eigenvalue -1"),
        ([[1.0, 0.5], [0.0, 1.0]], np.eye(2), MetricError, "body must be symmetric, got"),
    ],
)
def test_norms_must_be_positive_definite(body: Floats, norm: Floats, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        relative_spectrum(body, norm)


@given(spectra(), st.integers(1, 10**6))
def test_the_determinant_bounds_the_centers_in_spite_of_errata_5_and_6(eigenvalues: Floats, rounds: int) -> None:
    proved = ellipsoid_packing_bound(eigenvalues, smallest_radius(eigenvalues, rounds))
    assert proved <= determinant_center_bound(eigenvalues, rounds) * (1 + 1e-9)
    assert center_bound(eigenvalues, rounds) <= min(proved, rounds)


def test_the_determinant_makes_a_difference() -> None:
    # At T = 10**6, the rank is 3 and all of the eigenvalues are at least T**(-2/4) = 0.001: det = 1e-4.
    bound = determinant_center_bound([1.0, 0.01, 0.01], 10**6)
    assert bound == pytest.approx((8 * 2**0.5) ** 3 * 0.01 * 10 ** (6 * 0.75))
    with pytest.raises(MetricError, match="eigenvalues must be normalized"):
        determinant_center_bound([2.0, 1.0], 10)


def test_centers_are_at_most_the_rounds() -> None:
    assert center_bound(np.ones(5), 100) == 100
    assert center_bound([1.0], 100) == 21  # an interval of length 2, and a radius of 1/10


@pytest.mark.parametrize("bound", [volumetric_packing_bound, ellipsoid_packing_bound, printed_ellipsoid_packing_bound])
def test_the_radius_must_be_positive(bound: Callable[[list[float], float], float]) -> None:
    for value in (0.0, -1.0):
        with pytest.raises(DomainError, match=f"radius must be > 0, got {value}"):
            bound([1.0], value)
