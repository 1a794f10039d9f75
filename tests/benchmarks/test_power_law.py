import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.power_law import Power, fit

PLACES = np.array([1.0, 3.0, 10.0, 40.0, 100.0])


@given(st.floats(-3, 3), st.floats(1e-3, 1e3), st.floats(0.1, 10))
def test_a_power_is_found_whatever_the_units(exponent: float, scale: float, unit: float) -> None:
    found = fit(PLACES * unit, scale * PLACES**exponent)
    assert found is not None
    assert found.exponent == pytest.approx(exponent, abs=1e-5)
    assert found.error == pytest.approx(0, abs=1e-5)


def test_the_error_is_the_scatter_of_fitted_exponents() -> None:
    rng = np.random.default_rng(0)
    fits = [fit(PLACES, PLACES**0.5 * np.exp(rng.normal(0, 0.1, 5))) for _ in range(2000)]
    exponents, errors = np.array([each for each in fits if each]).T
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(exponents.std(), rel=0.1)


@pytest.mark.parametrize(
    ("x", "y"), [([1, 2], [1, 2]), ([1, 2, 3], [0, 1, 2]), ([2, 2, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, np.nan])]
)
def test_of_too_few_points_there_is_no_power(x: list[float], y: list[float]) -> None:
    assert fit(x, y) is None


def test_a_power_is_written_with_its_error() -> None:
    assert str(Power(-0.256, 0.011)) == "-0.26 ± 0.01"
