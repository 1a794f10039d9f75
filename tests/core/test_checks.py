import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from ellipack._core import all_between
from ellipack.validation import Floats

FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, -1.0, np.finfo(np.float64).max])


@given(
    arrays(np.float64, array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4), elements=FLOATS), FLOATS, FLOATS
)
def test_all_between_compares_every_entry(array: Floats, least: float, most: float) -> None:
    literal = all(math.isfinite(value) and least <= value <= most for value in array.flat)
    assert all_between(array, least, most) == literal


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 500, 999])
def test_no_entry_may_be_nan_or_infinite(value: float, place: int) -> None:
    array = np.zeros(1000)
    assert all_between(array, -math.inf, math.inf)
    array[place] = value
    assert not all_between(array, -math.inf, math.inf)
