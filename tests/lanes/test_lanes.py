import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.lanes._kernels import FOUR, alike, at_least, load, no_more_than, roots, store, transposed
from ellipack.validation import Floats
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted


@kernel
def compute(left: Floats, right: Floats, number: float, out: Floats) -> None:
    a, b = load(left, 1), load(right, 2)
    store(out, 0, a + b)
    store(out, 4, a - b)
    store(out, 8, a * b)
    store(out, 12, a / b)
    store(out, 16, number + a)
    store(out, 20, a - number)
    store(out, 24, number * a)
    store(out, 28, number / b)
    store(out, 32, roots(a * a))
    store(out, 36, at_least(a, number))
    store(out, 40, alike(number))
    store(out, 44, no_more_than(a, number))


@kernel
def transpose(table: Floats) -> None:
    columns = transposed(load(table, 0), load(table, 4), load(table, 8), load(table, 12))
    for k in range(4):
        store(table, 4 * k, columns[k])


def numbers(seed: int) -> Floats:
    """Return numbers of all sizes, neither 0."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.normal(size=8) * 10.0 ** rng.integers(-20, 20, size=8))


@given(seeds, seeds, st.floats(-1e20, 1e20))
def test_four_numbers_are_computed_as_each_would_be_alone(first: int, second: int, number: float) -> None:
    left, right, out = numbers(first), numbers(second), np.zeros(49)
    a, b = left[1:5], right[2:6]
    compute(left, right, number, out)
    parts = [a + b, a - b, a * b, a / b, number + a, a - number, number * a, number / b]
    bounded = [np.maximum(a, number), np.full(FOUR, number), np.minimum(a, number)]
    expected = np.concatenate([*parts, np.sqrt(a * a), *bounded, [0.0]])
    assert out.tolist() == expected.tolist()


def test_what_is_no_number_has_no_bound() -> None:
    out = np.zeros(49)
    compute(np.array([0.0, np.nan, 1.0, 2.0, 3.0]), np.ones(6), 2.5, out)
    np.testing.assert_array_equal(out[36:40], [np.nan, 2.5, 2.5, 3.0])
    np.testing.assert_array_equal(out[44:48], [np.nan, 1.0, 2.0, 2.5])


def test_rows_become_columns() -> None:
    table = np.arange(16.0)
    transpose(table)
    assert table.reshape(4, 4).tolist() == np.arange(16.0).reshape(4, 4).T.tolist()
