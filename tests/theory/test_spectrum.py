import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ellipack.errors import DomainError, MetricError, NonFiniteError, ShapeError
from ellipack.theory import (
    burn_in,
    check_semidefinite_spectrum,
    effective_rank,
    eigenvalue_gaps,
    kappa,
    perturbed_effective_rank,
    perturbed_kappa,
    phase_end,
    phase_length,
    printed_burn_in,
    rank_starts,
    regularization,
    separated,
    truncated_determinant,
)
from ellipack.theory.spectrum import NEVER
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import spectra

times = st.integers(1, 10**6)


@given(spectra(), st.integers(1, 8), times)
def test_kappa_equals_the_papers_definition(eigenvalues: Floats, r: int, t: int) -> None:
    assert int(kappa(eigenvalues, r, t)) == oracles.kappa(eigenvalues.tolist(), r, t)


def test_kappa_is_zero_where_no_eigenvalue_is_large_enough() -> None:
    assert int(kappa([0.1], 1, 2)) == 0


@given(spectra(max_d=10), st.lists(times, min_size=1, max_size=20))
def test_effective_rank_equals_the_papers_definition(eigenvalues: Floats, t: list[int]) -> None:
    expected = [oracles.effective_rank(eigenvalues.tolist(), each) for each in t]
    assert effective_rank(eigenvalues, t).tolist() == expected


@given(spectra(max_d=10))
def test_rank_starts_are_where_the_papers_rank_increases(eigenvalues: Floats) -> None:
    for r, start in enumerate(rank_starts(eigenvalues).tolist(), start=1):
        if start != NEVER:
            assert oracles.effective_rank(eigenvalues.tolist(), start) > r
        if 1 < start < 2**40:
            assert oracles.effective_rank(eigenvalues.tolist(), start - 1) <= r


@given(spectra(max_d=10))
def test_effective_rank_never_decreases_and_is_at_most_d(eigenvalues: Floats) -> None:
    ranks = effective_rank(eigenvalues, np.arange(1, 3000))
    assert np.all(np.diff(ranks) >= 0)
    assert ranks[0] >= 1
    assert ranks[-1] <= len(eigenvalues)


@given(st.integers(1, 30), times)
def test_effective_rank_of_the_identity_is_d(d: int, t: int) -> None:
    assert int(effective_rank(np.ones(d), t)) == d


@pytest.mark.parametrize(
    ("eigenvalues", "t", "rank"),
    [
        # kappa(1, t) counts eigenvalues >= 1/t, kappa(2, t) those >= t^(-2/3), kappa(3, t) those >= t^(-1/2).
        ([1.0, 0.25], 3, 1),  # 0.25 < 1/3
        ([1.0, 0.25], 4, 2),  # 0.25 >= 1/4
        ([1.0, 0.5, 0.5], 2, 2),  # kappa(1) = 3 > 1; kappa(2): 0.5 < 2^(-2/3) = 0.63, so 1 <= 2
        ([1.0, 0.5, 0.5], 3, 3),  # kappa(2): 0.5 >= 3^(-2/3) = 0.48, so 3 > 2
        ([1.0, 1e-3, 1e-3, 1e-3], 999, 1),
        ([1.0, 1e-3, 1e-3, 1e-3], 1000, 2),  # kappa(2): 1e-3 < 1000^(-2/3) = 0.01
        ([1.0, 1e-300], 10**15, 1),
    ],
)
def test_effective_rank_worked_by_hand(eigenvalues: list[float], t: int, rank: int) -> None:
    assert int(effective_rank(eigenvalues, t)) == rank


@given(spectra(), times)
def test_perturbed_rank_without_perturbation_is_the_rank(eigenvalues: Floats, t: int) -> None:
    assert perturbed_effective_rank(eigenvalues, t, 0.0) == int(effective_rank(eigenvalues, t))


@given(spectra(), times, st.floats(0, 1))
def test_perturbation_never_lowers_the_rank(eigenvalues: Floats, t: int, gamma: float) -> None:
    assert perturbed_effective_rank(eigenvalues, t, gamma) >= int(effective_rank(eigenvalues, t))


@given(spectra(), st.integers(1, 12), st.floats(0.1, 2), st.data())
def test_no_estimate_within_gamma_has_a_rank_above_that_of_its_phase(
    mu: Floats, phase: int, alpha: float, data: st.DataObject
) -> None:
    gamma = regularization(phase_end(phase), alpha)
    errors = data.draw(st.lists(st.floats(-1, 1), min_size=len(mu), max_size=len(mu)))
    # A margin for rounding errors at equality.
    estimated = np.sort(mu + gamma * (1 + (1 - 1e-9) * np.array(errors)))[::-1]
    for t in (1, phase_length(phase + 1) // 3 + 1, phase_length(phase + 1)):
        assert int(effective_rank(estimated / estimated[0], t)) <= perturbed_effective_rank(
            mu, phase_length(phase + 1), gamma
        )


def test_the_rank_of_a_phase_can_be_above_that_of_the_horizon() -> None:
    # Erratum 9: the proof of Theorem 2 has rho-hat_t <= rho-tilde_T for every t <= T past its condition.
    mu, i = np.array([0.92] + [0.3929] * 9), 3
    assert printed_burn_in(mu[-1], d=10, alpha=1) <= phase_end(i) < burn_in(mu[-1], d=10, alpha=1)
    gamma = regularization(phase_end(i), alpha=1)
    estimated = mu + gamma * np.array([-1] + [1] * 9) + gamma
    assert int(effective_rank(estimated / estimated[0], phase_length(4))) == 10
    assert perturbed_effective_rank(mu, phase_end(4), regularization(phase_end(4), alpha=1)) == 9
    assert perturbed_effective_rank(mu, phase_length(4), gamma) == 10


@given(spectra(max_d=10), st.integers(1, 20), st.floats(0.1, 3), st.floats(0, 1), st.integers(0, 10**7))
def test_past_the_burn_in_no_phase_has_a_rank_above_that_of_a_later_horizon(
    mu: Floats, first: int, alpha: float, share: float, later: int
) -> None:
    condition = burn_in(mu[-1], len(mu), alpha)
    i = next((i for i in range(first, 61) if phase_end(i) >= condition), None)
    assume(i is not None)
    assert i is not None  # for the type checker
    t = max(1, round(share * phase_length(i + 1)))
    horizon = phase_end(i) + t + later
    ranks = [
        perturbed_effective_rank(mu, t, regularization(phase_end(i), alpha)),
        perturbed_effective_rank(mu, horizon, regularization(horizon, alpha)),
    ]
    assert ranks[0] <= ranks[1]


def test_a_gradient_outer_product_may_have_zeros() -> None:
    assert check_semidefinite_spectrum([0.5, 0.0, 0.0]).tolist() == [0.5, 0.0, 0.0]
    assert eigenvalue_gaps([0.5, 0.0, 0.0]).tolist() == [0.5, 0.0, 0.0]
    assert separated([0.5, 0.0], 0.5).tolist() == [True, True]
    assert perturbed_kappa([0.5, 0.0, 0.0], r=1, t=10, regularization=0.0) == 1
    assert perturbed_kappa([0.5, 0.0, 0.0], r=1, t=10, regularization=0.025) == 3  # 2 * 0.025 >= 0.5 / 10
    assert perturbed_effective_rank([0.5, 0.0, 0.0], t=10**9, regularization=0.0) == 1


@pytest.mark.parametrize("eigenvalues", [[0.0], [0.0, 0.0], [1.0, -1e-3], [0.5, 1.0]])
def test_invalid_spectra_of_a_gradient_outer_product_are_refused(eigenvalues: list[float]) -> None:
    with pytest.raises(MetricError, match="eigenvalues must be >= 0, the first > 0, and in descending order, got"):
        check_semidefinite_spectrum(eigenvalues)


@pytest.mark.parametrize(
    ("r", "t", "gamma", "message"),
    [
        (0, 1, 0.0, "r must be an integer >= 1, got 0"),
        (1, 0, 0.0, "t must be an integer >= 1, got 0"),
        (1, 1.5, 0.0, r"t must be an integer >= 1, got 1\.5"),
        (1, 1, -0.5, r"regularization must be >= 0, got -0\.5"),
        (1, 1, np.nan, "regularization must be finite and >= 0, got nan"),
        (1, 1, np.inf, "regularization must be finite and >= 0, got inf"),
    ],
)
def test_invalid_arguments_of_perturbed_kappa_are_refused(r: int, t: int, gamma: float, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        perturbed_kappa([1.0, 0.5], r, t, gamma)
    if r >= 1:
        with pytest.raises(DomainError, match=message):
            perturbed_effective_rank([1.0, 0.5], t, gamma)


def test_a_gap_must_be_positive() -> None:
    with pytest.raises(DomainError, match="delta must be > 0, got 0"):
        separated([1.0, 0.5], 0.0)


def test_truncated_determinant_is_a_product() -> None:
    assert [truncated_determinant([1.0, 0.5, 0.5], k) for k in range(4)] == [1.0, 1.0, 0.5, 0.25]
    with pytest.raises(DomainError, match=r"k must be at most the number of eigenvalues, 2, got 3"):
        truncated_determinant([1.0, 0.5], 3)


@given(spectra())
def test_gaps_are_the_distance_to_the_nearest_other(eigenvalues: Floats) -> None:
    values = eigenvalues.tolist()
    others = [[abs(a - b) for k, b in enumerate(values) if k != j] for j, a in enumerate(values)]
    assert eigenvalue_gaps(eigenvalues).tolist() == [min(each, default=np.inf) for each in others]


def test_separated_eigenvalues_have_a_gap() -> None:
    assert separated([1.0, 0.5, 0.25], 0.25).tolist() == [True, True, True]
    assert separated([1.0, 0.5, 0.375], 0.25).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("eigenvalues", "error", "message"),
    [
        ([], ShapeError, r"eigenvalues must be one-dimensional and not empty, got shape \(0,\)"),
        ([[1.0]], ShapeError, r"got shape \(1, 1\)"),
        ([1.0, np.nan], NonFiniteError, "eigenvalues must be finite, got NaN at row 1"),
        ([1.0, 0.0], MetricError, "eigenvalues must be > 0 and in descending order"),
        ([0.5, 1.0], MetricError, "eigenvalues must be > 0 and in descending order"),
        ([0.5, 0.1], MetricError, r"eigenvalues must be normalized \(largest 1\), got 0.5"),
        ([2.0, 0.1], MetricError, r"eigenvalues must be normalized \(largest 1\), got 2"),
    ],
)
def test_invalid_spectra_are_refused(eigenvalues: list[float], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        effective_rank(eigenvalues, 1)


def test_rounds_start_at_one() -> None:
    with pytest.raises(DomainError, match="t must be >= 1, got 0"):
        effective_rank([1.0], 0)
