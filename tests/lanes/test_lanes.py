import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.lanes._kernels import (
    EIGHT,
    FOUR,
    FULL_TALLY,
    MANY,
    Codes,
    Singles,
    alike,
    alike_in,
    at_least,
    greater,
    lanes,
    least,
    load,
    load_many,
    lowest,
    many_alike,
    no_more_than,
    no_tallies,
    roots,
    store,
    tallied,
    transposed,
    which,
)
from ellipack.validation import Floats, Ints
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


@kernel
def compute_eight(left: Singles, right: Singles, number: float, out: Singles) -> None:
    a, b = load(left, 1), load(right, 2)
    store(out, 0, a + b)
    store(out, 8, a - b)
    store(out, 16, a * b)
    store(out, 24, a / b)
    store(out, 32, number + a)
    store(out, 40, b * number)
    store(out, 48, roots(a * a))
    store(out, 56, at_least(a, number))
    store(out, 64, alike_in(out, number))
    out[72] = lanes(out)


@given(seeds, st.floats(-10, 10))
def test_eight_numbers_of_single_precision_are_computed_as_each_would_be_alone(seed: int, number: float) -> None:
    left, right = np.random.default_rng(seed).normal(size=(2, 10)).astype(np.float32)
    a, b, one, out = left[1:9], right[2:10], np.float32(number), np.zeros(73, dtype=np.float32)
    compute_eight(left, right, number, out)
    parts = [a + b, a - b, a * b, a / b, one + a, b * one, np.sqrt(a * a), np.maximum(a, one), np.full(EIGHT, one)]
    assert out.tolist() == [*np.concatenate(parts).tolist(), EIGHT]


def test_what_is_no_number_has_no_bound() -> None:
    out = np.zeros(49)
    compute(np.array([0.0, np.nan, 1.0, 2.0, 3.0]), np.ones(6), 2.5, out)
    np.testing.assert_array_equal(out[36:40], [np.nan, 2.5, 2.5, 3.0])
    np.testing.assert_array_equal(out[44:48], [np.nan, 1.0, 2.0, 2.5])


def test_rows_become_columns() -> None:
    table = np.arange(16.0)
    transpose(table)
    assert table.reshape(4, 4).tolist() == np.arange(16.0).reshape(4, 4).T.tolist()


@kernel
def compute_many(blocks: Singles, number: np.float32, most: np.float32, bits: Ints) -> None:
    a, b = load_many(blocks, 1, 0), load_many(blocks, 1, 2)
    bits[0] = which(a + b, most)
    bits[1] = which(number - a, most)
    bits[2] = which(a * b, most)
    bits[3] = which(greater(a, b), most)
    bits[4] = which(many_alike(number), most)


@kernel
def tally(codes: Codes, numbers: Ints, most: int, out: Ints) -> int:
    tallies = no_tallies()
    for row in range(numbers.shape[0]):
        tallies = tallied(tallies, codes, 1, row, numbers[row])
    out[0] = least(tallies)
    return which(tallies, most)


@given(seeds, st.lists(st.integers(-1000, 1000), max_size=3), st.integers(0, FULL_TALLY))
def test_tallies_are_sums_of_squares_that_may_be_full(seed: int, numbers: list[int], most: int) -> None:
    codes, out = np.random.default_rng(seed).integers(0, 256, size=(2, 3, MANY), dtype=np.uint8), np.zeros(1, dtype=int)
    gaps = [np.minimum(np.abs(codes[1, row].astype(int) - number), 255) for row, number in enumerate(numbers)]
    sums = np.minimum(sum((gap**2 for gap in gaps), np.zeros(MANY, dtype=int)), FULL_TALLY)
    assert tally(codes, np.array(numbers, dtype=int), most, out) % 2**MANY == as_bits(sums <= most) % 2**MANY
    assert out[0] == sums.min()


@kernel
def in_turn(bits: int, out: Ints) -> int:
    count = 0
    while bits != 0:
        out[count] = lowest(bits)
        count += 1
        bits &= bits - 1
    return count


def as_bits(passed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
    """Return what numba makes of as many bits: a whole number with a sign."""
    return int(np.packbits(passed, bitorder="little").view(np.int64)[0])


@given(seeds, st.floats(-3, 3, width=32), st.floats(-3, 3, width=32))
def test_many_numbers_are_computed_as_each_would_be_alone(seed: int, number: float, most: float) -> None:
    blocks = np.random.default_rng(seed).normal(size=(2, 3, MANY)).astype(np.float32)
    one, limit = np.float32(number), np.float32(most)
    a, b, bits = blocks[1, 0], blocks[1, 2], np.zeros(5, dtype=object)
    if not hasattr(compute_many, "py_func"):
        compute_many(blocks, one, limit, bits)
    else:
        signed = np.zeros(5, dtype=np.int64)
        compute_many(blocks, one, limit, signed)
        bits[:] = [int(each) % 2**MANY for each in signed]
    results = [a + b, one - a, a * b, np.maximum(a, b), np.full(MANY, one)]
    assert [int(each) for each in bits] == [as_bits(each <= limit) % 2**MANY for each in results]


@given(st.sets(st.integers(0, MANY - 1)))
def test_bits_are_taken_one_after_the_other(lanes: set[int]) -> None:
    passed, out = np.isin(np.arange(MANY), list(lanes)), np.zeros(MANY, dtype=np.int64)
    bits = as_bits(passed)
    count = in_turn(bits if hasattr(in_turn, "py_func") else bits % 2**MANY, out)
    assert out[:count].tolist() == sorted(lanes)
