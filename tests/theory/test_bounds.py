from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError
from ellipack.metric import Metric
from ellipack.theory import (
    directional_lipschitz,
    ellipsoid_packing_bound,
    fixed_metric_regret_bound,
    learned_metric_regret_bound,
    lipschitz_constant,
    perturbed_effective_rank,
    phase_length,
    phase_regret_bound,
    phased_regret_bound,
    printed_ellipsoid_packing_bound,
    printed_fixed_metric_regret_bound,
    printed_phase_regret_bound,
    radius,
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
    assert size <= volumetric_packing_bound(metric.eigenvalues, radius) * (1 + 1e-9)


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


@given(st.integers(1, 10), st.floats(0.01, 2))
def test_lemma_1_is_exact_for_the_identity(d: int, radius: float) -> None:
    assert volumetric_packing_bound(np.ones(d), radius) == pytest.approx((1 + 2 / radius) ** d)


@given(spectra(), st.floats(0.01, 2))
def test_lemma_1_lies_between_an_inner_ellipsoid_and_the_bound_of_the_identity(
    eigenvalues: Floats, radius: float
) -> None:
    bound = volumetric_packing_bound(eigenvalues, radius)
    assert bound >= np.prod(1 + 2 * np.sqrt(eigenvalues) / radius) * (1 - 1e-9)
    assert bound <= (1 + 2 / radius) ** len(eigenvalues) * (1 + 1e-9)


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


def test_theorem_1_worked_by_hand() -> None:
    # The identity in 2 dimensions at T = 8: rho = kappa = 2, the last radius 1/2 is the smallest, the rate 4.
    per_center = 8 * (1 + np.log(8))
    assert fixed_metric_regret_bound([1.0, 1.0], 8, 3.0) == pytest.approx(
        per_center * (16 * np.sqrt(2)) ** 2 + 4 * 3.0 * 4
    )
    assert printed_fixed_metric_regret_bound([1.0, 1.0], 8, 3.0) == pytest.approx((per_center * 128 + 12) * 4)


@given(spectra(), st.integers(1, 10**6), st.floats(0, 100))
def test_theorem_1_keeps_its_rate_with_a_constant_that_allows_for_errata_6_and_7(
    eigenvalues: Floats, rounds: int, lipschitz: float
) -> None:
    per_rate = 8 * np.log(np.e * rounds) * (8 * 2**0.5) ** len(eigenvalues) + 4 * lipschitz
    rate = rounds * float(radius(eigenvalues, rounds))
    assert fixed_metric_regret_bound(eigenvalues, rounds, lipschitz) <= per_rate * rate * (1 + 1e-9)


def test_the_bound_of_a_phase_worked_by_hand() -> None:
    per_center = 8 * (1 + np.log(8))
    proved = per_center * (16 * np.sqrt(2)) ** 2 + 4 * 3.0 * 4
    assert phase_regret_bound([1.0, 1.0], 3, 3.0) == pytest.approx(proved)
    assert printed_phase_regret_bound([1.0, 1.0], 3, 3.0) == pytest.approx((per_center * 128 + 12) * 4)


@given(spectra(), st.integers(1, 20), st.floats(0, 100))
def test_the_bound_of_a_phase_is_that_of_its_rounds(eigenvalues: Floats, phase: int, lipschitz: float) -> None:
    expected = fixed_metric_regret_bound(eigenvalues, phase_length(phase), lipschitz)
    assert phase_regret_bound(eigenvalues, phase, lipschitz) == expected


def test_the_bound_of_a_phase_allows_for_erratum_6() -> None:
    # The squared radius is 1/2: 0.3 is below it but above its eighth, so one axis counts as printed, eight as proved.
    eigenvalues = [1.0] + [0.3] * 7
    assert phase_regret_bound(eigenvalues, 1, 0.0) > printed_phase_regret_bound(eigenvalues, 1, 0.0)


def test_the_last_phase_has_a_bound_and_the_one_after_it_is_refused() -> None:
    for bound in (phase_regret_bound, printed_phase_regret_bound):
        assert np.isfinite(bound([1.0, 0.5], 62, 1.0))
        with pytest.raises(DomainError, match="phase must be at most 62, got 2000"):
            bound([1.0, 0.5], 2000, 1.0)


@given(spectra(max_d=4), st.integers(1, 6), st.floats(0, 100))
def test_phases_add_up(eigenvalues: Floats, phases: int, lipschitz: float) -> None:
    single = [phase_regret_bound(eigenvalues, i, lipschitz) for i in range(1, phases + 1)]
    assert phased_regret_bound([eigenvalues] * phases, [lipschitz] * phases) == pytest.approx(sum(single))


def theorem_2(rounds: int = 10**6, delta: float = 0.1, mu: tuple[float, ...] = (1.0, 0.5), alpha: float = 0.5) -> float:
    gradients = np.array([[1.0, 0.0], [0.0, 0.5], [0.3, 0.3]])
    return learned_metric_regret_bound(mu, rounds, alpha=alpha, delta=delta, directions=np.eye(2), gradients=gradients)


def theorem_2_of_one(mu: list[float], rounds: int, slope: float) -> float:
    return learned_metric_regret_bound(mu, rounds, alpha=1.0, delta=1.0, directions=[[1.0]], gradients=[[slope]])


def test_theorem_2_worked_by_hand() -> None:
    # burn_in = (3 / 1)^2 = 9, so phases up to the third (T = 14) cost a round each; T = 20 lies in the fourth.
    gamma = 14**-0.5
    rank = 2  # kappa-tilde(1, 20): 0.5 + 2 * 20^-0.5 >= 1/20, so 2 > 1
    rotation = np.sqrt(2) * (2 * gamma / 0.1 * 1.0 + 2 * 0.0)
    spread = np.sqrt((1 + 2 * gamma) * ((1 + rotation) ** 2 / 1 + (0.5 + rotation) ** 2 / 0.5))
    expected = 14 + (8 * np.log(np.e * 16) * 12**2 + 4 * spread) * 16 ** (rank / (1 + rank))
    assert theorem_2(rounds=20) == pytest.approx(expected)


def test_theorem_2_has_a_constant_to_the_power_of_the_dimension() -> None:
    # Phase 4, in the metric of round 14: 0.4 + 2/14 is at least 16^(-2/9), which is r = 8's, but below 16^(-2/10).
    mu = np.array([1.0] + [0.4] * 9)
    zero = np.zeros((1, 10))
    bound = learned_metric_regret_bound(mu, 30, alpha=1.0, delta=1.0, directions=np.eye(10), gradients=zero)
    assert perturbed_effective_rank(mu, 16, 1 / 14) == 9
    assert bound == pytest.approx(14 + 8 * np.log(np.e * 16) * 12.0**10 * 16 ** (9 / 10))


def test_theorem_2_takes_the_rank_of_each_phase() -> None:
    # Erratum 10: at the horizon, 30, the rank is 9, but that of phase 4 in the metric of round 14 can be 10.
    mu = np.array([0.92] + [0.3929] * 9)
    zero = np.zeros((1, 10))
    bound = learned_metric_regret_bound(mu, 30, alpha=1.0, delta=1.0, directions=np.eye(10), gradients=zero)
    assert bound == pytest.approx(14 + 8 * np.log(np.e * 16) * 12.0**10 * 16 ** (10 / 11))


def test_theorem_2_is_trivial_for_a_function_that_is_constant_in_some_direction() -> None:
    assert theorem_2(rounds=10**6, mu=(1.0, 0.0)) == 10**6


def test_theorem_2_needs_a_square_matrix_of_directions() -> None:
    needed = {"alpha": 0.5, "delta": 0.1, "gradients": [[1.0, 0.0]]}
    for directions, message in (
        (np.eye(2)[:, :1], "directions must have 2 columns, got 1"),
        (np.eye(3)[:, :2], "directions must have 2 rows, one per column of gradients, got 3"),
    ):
        with pytest.raises(ShapeError, match=message):
            learned_metric_regret_bound([1.0, 0.5], 20, directions=directions, **needed)  # type: ignore[arg-type]


def test_theorem_2_grows_with_directions_that_are_not_identifiable() -> None:
    # With delta above the only gap both are unidentifiable; just below it both are known.
    assert theorem_2(delta=0.51) > theorem_2(delta=0.49)


def test_theorem_2_costs_no_more_than_a_round_each_before_its_condition_holds() -> None:
    assert theorem_2(rounds=1000, mu=(1.0, 1e-9)) == 1000


@pytest.mark.parametrize(
    "bound",
    [
        fixed_metric_regret_bound,
        printed_fixed_metric_regret_bound,
        phase_regret_bound,
        printed_phase_regret_bound,
    ],
)
def test_a_negative_lipschitz_constant_is_refused(bound: Callable[[list[float], int, float], float]) -> None:
    with pytest.raises(DomainError, match="lipschitz must be >= 0, got -1"):
        bound([1.0], 2, -1.0)


def test_the_number_of_slopes_must_match_the_eigenvalues() -> None:
    with pytest.raises(ShapeError, match=r"directional must have shape \(2,\), got \(3,\)"):
        lipschitz_constant([1.0, 0.5], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("bound", [volumetric_packing_bound, ellipsoid_packing_bound, printed_ellipsoid_packing_bound])
def test_the_radius_must_be_positive(bound: Callable[[list[float], float], float]) -> None:
    for value in (0.0, -1.0):
        with pytest.raises(DomainError, match=f"radius must be > 0, got {value}"):
            bound([1.0], value)


@pytest.mark.parametrize("bound", [fixed_metric_regret_bound, printed_fixed_metric_regret_bound, theorem_2_of_one])
def test_rounds_must_be_integers(bound: Callable[[list[float], float, float], float]) -> None:
    with pytest.raises(DomainError, match=r"rounds must be an integer >= 1, got 2\.5"):
        bound([1.0], 2.5, 1.0)


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
