from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import DomainError, ShapeError
from ellipack.theory import (
    burn_in,
    center_bound,
    effective_rank,
    learned_metric_regret_bound,
    packing_bound,
    perturbed_effective_rank,
    phase_end,
    phase_length,
    phase_of,
    printed_learned_metric_rate,
    printed_learned_metric_regret_bound,
    printed_learned_phase_bound,
    regularization,
    rotated_lipschitz,
    sharp_fixed_metric_regret_bound,
    sharp_learned_metric_regret_bound,
    smallest_radius,
)
from ellipack.validation import Floats
from tests.strategies import spectra

GRADIENTS = np.array([[1.0, 0.0], [0.0, 0.5], [0.3, 0.3]])
ALL = [
    learned_metric_regret_bound,
    sharp_learned_metric_regret_bound,
    printed_learned_metric_regret_bound,
    printed_learned_metric_rate,
]
Bound = Callable[..., float]


def known(delta: float = 0.1, alpha: float = 0.5, gradients: Floats = GRADIENTS) -> dict[str, Any]:
    d = gradients.shape[1]
    return {"alpha": alpha, "delta": delta, "directions": np.eye(d), "gradients": gradients}


def test_theorem_2_worked_by_hand() -> None:
    # The burn-in is (3 / (0.9 ln 1.5))**2 = 67.6, so phases up to the sixth (T = 126) cost a round each; T = 150 is
    # round 24 of the seventh.
    assert burn_in(0.9, 2, 0.5) == pytest.approx(67.58, abs=0.01)
    gamma = 126**-0.5
    sine = 2 * gamma / 0.5
    along = np.array([1.0, 0.5]) + sine * 1.0  # the largest gradient is 1, and both directions are known
    spread = np.sqrt((1.5 + 2 * gamma) * (min(along[0], 1.0) ** 2 / 1.5 + along[1] ** 2 / 0.9))
    # rho-tilde is 2: 0.9 + 2 gamma is at least 1.5 / 24.
    expected = 126 + (8 * np.log(np.e * 24) * 12**2 + 4 * spread) * 24 ** (2 / 3)
    assert learned_metric_regret_bound([1.5, 0.9], 150, **known(delta=0.5)) == pytest.approx(expected)


def test_theorem_2_with_unidentifiable_directions_worked_by_hand() -> None:
    # Only the first of three eigenvalues is separated by 0.5. The largest projections are 3 on it, and 5 (not 4, the
    # largest coordinate) on the others; no gradient is larger than 13.
    mu, gradients = np.array([2.0, 1.0, 0.9]), np.array([[3.0, 3.0, 4.0], [0.0, 0.0, -1.0], [12.0, 3.0, 4.0]])
    gamma = regularization(phase_end(5), 1.0)  # 1/62; the burn-in is 4 / (0.9 ln 1.5) = 11, of phase 3
    assert [phase_end(3) >= burn_in(0.9, 3, 1.0) > phase_end(2), phase_of(70)] == [True, 6]
    total = 14.0
    for i, length in ((3, 16), (4, 32), (5, 8)):
        gamma = regularization(phase_end(i), 1.0)
        sine = 2 * gamma / 0.5
        along = np.minimum([12 + sine * (12 + 5), sine * 12 + 5, sine * 12 + 5], 13.0)
        spread = np.sqrt((2 + 2 * gamma) * np.sum(along**2 / mu))
        rank = perturbed_effective_rank(mu, length, gamma)
        total += (8 * np.log(np.e * length) * 12**3 + 4 * spread) * length ** (rank / (1 + rank))
    assert learned_metric_regret_bound(mu, 70, **known(0.5, 1.0, gradients)) == pytest.approx(total)


def test_the_printed_bound_of_a_phase_worked_by_hand() -> None:
    # Eq. newPhase for phase 4, i = 3: gamma-bar(3) = 14**-0.5. At T = 30 rho-tilde is 2.
    gamma = 14**-0.5
    expected = (8 * np.log(np.e * 16) * 144 + 4 * np.sqrt((1 + 2 * gamma) * (9 + 16 / 0.5))) * 16 ** (2 / 3)
    found = printed_learned_phase_bound([1.0, 0.5], 4, 30, alpha=0.5, directional=[3.0, 4.0])
    assert found == pytest.approx(expected)


def test_the_printed_theorem_2_worked_by_hand() -> None:
    # The printed burn-in is (3 / 1)**2 = 9, met by phase 3. Only phase 4 follows: T = 20 is in it.
    mu, gradients, gamma = [1.0, 0.5], np.array([[1.0, 0.0], [0.0, 0.5], [0.3, 0.3]]), 14**-0.5
    rotation = np.sqrt(2) * 2 * gamma / 0.1 * 1.0
    phase = printed_learned_phase_bound(mu, 4, 20, alpha=0.5, directional=[1 + rotation, 0.5 + rotation])
    assert printed_learned_metric_regret_bound(mu, 20, **known(0.1)) == pytest.approx(9 + phase)
    # With a delta above the gap nothing is known: twice the root of d times the largest gradient, 1.
    rotation = np.sqrt(2) * 2 * 1.0
    phase = printed_learned_phase_bound(mu, 4, 20, alpha=0.5, directional=[1 + rotation, 0.5 + rotation])
    assert printed_learned_metric_regret_bound(mu, 20, **known(0.6)) == pytest.approx(9 + phase)
    # The projection on unknown directions is a norm, not a coordinate.
    oblique = np.array([[0.6, 0.8]])
    rotation = np.sqrt(2) * 2 * 1.0
    phase = printed_learned_phase_bound(mu, 4, 20, alpha=0.5, directional=[0.6 + rotation, 0.8 + rotation])
    assert printed_learned_metric_regret_bound(mu, 20, **known(0.6, gradients=oblique)) == pytest.approx(9 + phase)
    assert gradients.tolist() == GRADIENTS.tolist()


def test_the_statement_of_theorem_2_worked_by_hand() -> None:
    # Nothing is identifiable: (3 + 5)**2 / 1 + (4 + 5)**2 / 0.5, under the root that the last display lacks.
    gradients = np.array([[3.0, 4.0]])
    expected = (1 + np.sqrt(64 + 162)) * 1000 ** (2 / 3)
    assert printed_learned_metric_rate([2.0, 1.0], 1000, **known(1.5, 0.5, gradients)) == pytest.approx(expected)
    known_ones = (1 + np.sqrt(9 + 32)) * 1000 ** (2 / 3)
    assert printed_learned_metric_rate([2.0, 1.0], 1000, **known(1.0, 0.5, gradients)) == pytest.approx(known_ones)


def test_theorem_2_takes_the_rank_of_each_phase() -> None:
    # The burn-in is 54, of phase 5 (T = 62). Phase 6 has the rank 10 in the metric of that round.
    mu = np.array([1.0] + [0.5] * 9)
    bound = learned_metric_regret_bound(mu, 126, **known(1.0, 1.0, np.zeros((1, 10))))
    rank = perturbed_effective_rank(mu, 64, 1 / 62)
    assert rank == 10
    assert burn_in(0.5, 10, 1.0) == pytest.approx(54.26, abs=0.01)
    assert bound == pytest.approx(62 + 8 * np.log(np.e * 64) * 12.0**10 * 64 ** (10 / 11))


@settings(max_examples=25)
@given(spectra(max_d=4), st.integers(1, 10**5), st.floats(0.2, 2), st.floats(0.01, 1))
def test_the_sharp_theorem_2_is_below_the_others_and_the_rounds(
    mu: Floats, rounds: int, alpha: float, delta: float
) -> None:
    arguments = known(delta, alpha, np.diag(np.sqrt(mu)))
    sharp = sharp_learned_metric_regret_bound(mu, rounds, **arguments)
    assert sharp <= rounds
    assert sharp <= learned_metric_regret_bound(mu, rounds, **arguments) * (1 + 1e-9)
    exact = sharp_learned_metric_regret_bound(mu, rounds, errors=np.zeros(40), **arguments)
    assert exact <= sharp


def test_the_sharp_theorem_2_worked_by_hand() -> None:
    # One feature: the metric is 1 whatever is estimated. Phases cost what the sharp Theorem 1 charges, at most 1 a
    # round; the Lipschitz constant is 0.1 times the root of (mu + gamma + ridge) / (mu - gamma + ridge).
    total = 2.0
    for i in range(1, 9):
        gamma, ridge = 0.25 / i, phase_end(i) ** -0.5
        lipschitz = 0.1 * np.sqrt((1 + gamma + ridge) / (1 - gamma + ridge))
        total += min(phase_length(i + 1), sharp_fixed_metric_regret_bound([1.0], phase_length(i + 1), lipschitz))
    arguments = known(0.1, 0.5, np.array([[0.1]]))
    found = sharp_learned_metric_regret_bound([1.0], phase_end(9), errors=[0.25 / i for i in range(1, 9)], **arguments)
    assert found == pytest.approx(total)
    assert total < phase_end(9) / 2


@pytest.mark.parametrize(("second", "error", "ridge", "low_rank"), [(0.25, 0.05, 0.1, 2), (0.0, 1e-5, 1e-7, 1)])
def test_a_phase_of_the_sharp_theorem_2_worked_by_hand(
    second: float, error: float, ridge: float, low_rank: int
) -> None:
    # Phase 21 in the metric of round T(20), whose second eigenvalue is from low[1] to high[1].
    mu, n, errors = np.array([1.0, second]), 2**21, np.full(20, error)
    alpha = float(-np.log(ridge) / np.log(phase_end(20)))
    arguments = known(0.5, alpha, np.array([[0.2, 0.0], [0.0, 0.4 * second]]))
    smallest = np.array([1 - error + ridge, max(second - error, 0) + ridge])
    low = np.array([1.0, smallest[1] / (1 + error + ridge)])
    high = np.array([1.0, (second + error + ridge) / smallest[0]])
    assert [effective_rank(each, n) for each in (low, high)] == [low_rank, 2]
    centers = packing_bound(high, smallest_radius(low, n))
    along = rotated_lipschitz(mu, error, delta=0.5, directions=np.eye(2), gradients=arguments["gradients"])
    lipschitz = np.sqrt(np.sum(along**2 / (smallest / (1 + error + ridge))))
    expected = centers * np.log(np.e * n / centers) + 2 * lipschitz * 1.5 * n ** (2 / 3)
    longer = sharp_learned_metric_regret_bound(mu, phase_end(21), errors=errors, **arguments)
    shorter = sharp_learned_metric_regret_bound(mu, phase_end(20), errors=errors, **arguments)
    assert longer - shorter == pytest.approx(expected)
    assert expected < n / 2
    assert centers < center_bound([1.0, 1.0], n)


def test_the_sharp_theorem_2_covers_functions_that_are_constant_in_some_direction() -> None:
    # The paper's own model: one relevant direction of two. Theorem 2 is trivial, as mu_d = 0.
    arguments = known(0.25, 0.4, np.array([[0.5, 0.0], [-0.3, 0.0]]))
    rounds = phase_end(24)
    assert learned_metric_regret_bound([0.2, 0.0], rounds, **arguments) == rounds
    assert sharp_learned_metric_regret_bound([0.2, 0.0], rounds, **arguments) < 0.5 * rounds


@pytest.mark.parametrize("bound", ALL[2:])
def test_the_printed_theorem_2_needs_a_positive_smallest_eigenvalue(bound: Bound) -> None:
    with pytest.raises(DomainError, match="eigenvalues must be > 0, as Theorem 2 assumes, got"):
        bound([1.0, 0.0], 20, **known())


def test_theorem_2_is_trivial_for_a_function_that_is_constant_in_some_direction() -> None:
    assert learned_metric_regret_bound([1.0, 0.0], 10**6, **known()) == 10**6


def test_theorem_2_costs_no_more_than_a_round_each_before_its_condition_holds() -> None:
    assert learned_metric_regret_bound([1.0, 1e-9], 1000, **known()) == 1000
    assert printed_learned_metric_regret_bound([1.0, 1e-9], 1000, **known()) == 1000


@pytest.mark.parametrize("bound", ALL[:3])
def test_theorem_2_grows_with_directions_that_are_not_identifiable(bound: Bound) -> None:
    # With delta above the only gap both are unidentifiable; just below it both are known.
    rounds = 2**30
    assert bound([1.0, 0.5], rounds, **known(0.51)) > bound([1.0, 0.5], rounds, **known(0.49))


@pytest.mark.parametrize("bound", ALL)
def test_theorem_2_needs_a_square_matrix_of_directions(bound: Bound) -> None:
    for directions in (np.eye(2)[:, :1], np.eye(3)[:, :2]):
        with pytest.raises(ShapeError, match="directions must have 2"):
            bound([1.0, 0.5], 2**12, **{**known(), "directions": directions})


@pytest.mark.parametrize("bound", ALL)
def test_rounds_of_theorem_2_must_be_integers(bound: Bound) -> None:
    with pytest.raises(DomainError, match=r"rounds must be an integer >= 1, got 2\.5"):
        bound([1.0, 0.5], 2.5, **known())


def test_measured_errors_are_one_for_each_finished_phase() -> None:
    for errors in ([0.1], [0.1, -0.1], [[0.1, 0.1]]):
        with pytest.raises(DomainError, match="errors must be >= 0, at least 2 of them, got"):
            sharp_learned_metric_regret_bound([1.0, 0.5], 14, errors=errors, **known())
