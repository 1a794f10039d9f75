import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError
from ellipack.theory import (
    bandwidth,
    bandwidth_limits,
    burn_in,
    mass_threshold,
    phase_end,
    phase_length,
    phase_of,
    printed_burn_in,
    radius,
    regularization,
    smallest_radius,
    step,
)
from ellipack.validation import Floats
from tests import oracles
from tests.strategies import spectra


@given(spectra(), st.integers(1, 10**6))
def test_radius_equals_the_papers_definition(eigenvalues: Floats, t: int) -> None:
    expected = float(t) ** (-1 / (1 + oracles.effective_rank(eigenvalues.tolist(), t)))
    assert float(radius(eigenvalues, t)) == pytest.approx(expected, rel=1e-15)


@given(spectra(), st.integers(1, 2000))
def test_smallest_radius_is_the_minimum_over_all_rounds(eigenvalues: Floats, t: int) -> None:
    assert smallest_radius(eigenvalues, t) == radius(eigenvalues, np.arange(1, t + 1)).min()


def test_radius_can_grow_where_the_rank_increases() -> None:
    before, after = radius([1.0, 0.25], [3, 4])
    assert after > before
    assert smallest_radius([1.0, 0.25], 4) == before


def test_phases_are_consecutive() -> None:
    rounds = np.concatenate([np.full(phase_length(i), i) for i in range(1, 10)])
    assert [phase_of(t) for t in range(1, len(rounds) + 1)] == rounds.tolist()
    assert [phase_end(i) for i in range(1, 10)] == np.cumsum([phase_length(i) for i in range(1, 10)]).tolist()


def test_regularization_starts_at_one_and_decreases() -> None:
    values = [regularization(t, alpha=0.3) for t in range(50)]
    assert values[0] == 1.0
    assert np.all(np.diff(values) <= 0)
    assert values[32] == pytest.approx(32**-0.3)
    assert regularization(10**6, alpha=200.0) > 0


def test_burn_in_is_the_condition_of_theorem_2() -> None:
    assert printed_burn_in(0.05, d=4, alpha=0.5) == pytest.approx((5 / 0.1) ** 2)
    assert burn_in(0.05, d=4, alpha=0.5) == pytest.approx((5 / (0.05 * np.log(1.5))) ** 2)
    for condition in (burn_in, printed_burn_in):
        assert condition(1e-300, d=4, alpha=0.1) == np.inf
        assert condition(0.0, d=4, alpha=1.0) == np.inf
        with pytest.raises(DomainError, match="smallest_eigenvalue must be >= 0, got -1"):
            condition(-1.0, d=4, alpha=1.0)


@given(st.integers(2, 10**6), st.integers(1, 50), st.floats(0.1, 10))
def test_the_estimators_scales(n: int, d: int, scale: float) -> None:
    assert bandwidth(n, d, scale) == pytest.approx(scale * n ** (-1 / (2 * (d + 1))))
    assert bandwidth(n, d) == bandwidth_limits(n, d)[1]
    assert bandwidth_limits(n, d)[0] == pytest.approx(np.log(n) ** (2 / d) * n ** (-1 / d))
    assert step(bandwidth(n, d), scale) == pytest.approx(scale * bandwidth(n, d) ** 0.25)
    assert mass_threshold(n, d, scale) == pytest.approx(scale * 2 * d * np.log(2 * n))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_scales_must_be_positive(value: float) -> None:
    rule = "> 0" if np.isfinite(value) else "finite and > 0"
    with pytest.raises(DomainError, match=f"scale must be {rule}, got {value}"):
        bandwidth(10, 2, value)
    with pytest.raises(DomainError, match=f"bandwidth must be {rule}, got {value}"):
        step(value)
    with pytest.raises(DomainError, match=f"alpha must be {rule}, got {value}"):
        regularization(3, value)


def test_phases_and_rounds_must_be_integers() -> None:
    with pytest.raises(DomainError, match="phase must be an integer >= 1, got 0"):
        phase_length(0)
    with pytest.raises(DomainError, match=r"t must be an integer >= 1, got 2\.5"):
        phase_of(2.5)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="scale must be >= 0, got -1"):
        mass_threshold(10, 2, -1)


def test_phases_beyond_int64_are_refused() -> None:
    assert phase_end(62) == 2 * phase_length(62) - 2 == np.iinfo(np.int64).max - 1
    for of_phase in (phase_length, phase_end):
        with pytest.raises(DomainError, match="phase must be at most 62, got 63"):
            of_phase(63)
