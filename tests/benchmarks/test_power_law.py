import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.power_law import FittedExponent, fit_exponent

PLACES = np.array([1.0, 3.0, 10.0, 40.0, 100.0])


@given(st.floats(-3, 3), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_the_exponent_does_not_depend_on_units(exponent: float, scale: float, unit: float) -> None:
    found = fit_exponent(PLACES * unit, scale * PLACES**exponent)
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-5)
    assert found.error == pytest.approx(0, abs=1e-5)


def test_the_error_is_the_deviation_of_fitted_exponents() -> None:
    rng = np.random.default_rng(0)
    fits = [fit_exponent(PLACES, PLACES**0.5 * np.exp(rng.normal(0, 0.1, 5))) for _ in range(2000)]
    exponents, errors = np.array([each for each in fits if each]).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(exponents.std(), rel=0.1)


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [1, 2]), ([1, 2, 3], [0, 1, 2]), ([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, np.nan])]
)
def test_too_few_points_have_no_exponent(x: list[float], y: list[float]) -> None:
    assert fit_exponent(x, y) is None


def test_an_exponent_is_printed_with_its_error() -> None:
    assert str(FittedExponent(-0.256, 0.011)) == "-0.26 ± 0.01"
