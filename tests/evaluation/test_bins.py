"""Bins that merge in pairs, compared with sums that are taken of all rows at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.evaluation.bins import FIRST_BIN_WIDTH, MAX_BINS, add_to_bins, bin_ends


@given(st.lists(st.integers(1, 6000), max_size=6), st.sampled_from([(), (3,), (2, 4)]))
def test_sums_are_those_of_all_rows_however_they_are_batched(sizes: list[int], shape: tuple[int, ...]) -> None:
    terms = np.random.default_rng(0).integers(0, 9, (sum(sizes), *shape)).astype(float)
    sums, width, rows = np.zeros((0, *shape)), FIRST_BIN_WIDTH, 0
    for size in sizes:
        sums, width = add_to_bins(sums, width, rows, terms[rows : rows + size])
        rows += size

    expected = FIRST_BIN_WIDTH
    while expected * MAX_BINS < rows:
        expected *= 2
    assert width == expected
    starts = range(0, rows, width)
    assert sums.tolist() == [terms[start : start + width].sum(axis=0).tolist() for start in starts]
    assert bin_ends(len(sums), width, rows).tolist() == [min(start + width, rows) for start in starts]


@pytest.mark.parametrize("pieces", [1, 7, 300])
def test_bits_do_not_depend_on_batches(pieces: int) -> None:
    terms = np.random.default_rng(1).normal(size=(9000, 2))
    whole = add_to_bins(np.zeros((0, 2)), FIRST_BIN_WIDTH, 0, terms)
    sums, width, rows = np.zeros((0, 2)), FIRST_BIN_WIDTH, 0
    for part in np.array_split(terms, pieces):
        sums, width = add_to_bins(sums, width, rows, part)
        rows += len(part)
    assert (sums.tobytes(), width) == (whole[0].tobytes(), whole[1])


def test_arrays_stay_as_they_are() -> None:
    before = np.ones((1, 2))
    add_to_bins(before, FIRST_BIN_WIDTH, 10, np.ones((5, 2)))
    assert before.tolist() == [[1.0, 1.0]]
