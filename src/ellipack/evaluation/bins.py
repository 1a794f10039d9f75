"""Sums over rows in bins of equal width, whose number is bounded: if there are too many, neighboring bins are merged.

Sums are accumulated in row order, so that they do not depend on how rows are batched or on a resume.
"""

from typing import Final

import numpy as np

from ellipack.validation import Floats, Ints

MAX_BINS: Final = 256
"""Largest number of bins."""

FIRST_BIN_WIDTH: Final = 16
"""Number of rows in a bin before bins are merged."""


def add_to_bins(bin_sums: Floats, bin_width: int, n_rows: int, terms: Floats) -> tuple[Floats, int]:
    """Return the sums and the width of bins after more rows.

    Parameters
    ----------
    bin_sums : array of shape (n_bins, ...)
        Sums over the rows in each bin.
    bin_width : int
        Number of rows in a bin.
    n_rows : int
        Number of rows in all bins.
    terms : array of shape (n, ...)
        What the next rows add.

    Returns
    -------
    bin_sums : array of shape (n_bins, ...)
        A new array.
    bin_width : int
        The width, twice as large for each time that pairs of bins were merged.

    Examples
    --------
    >>> sums, width = add_to_bins(np.zeros(0), FIRST_BIN_WIDTH, 0, np.ones(20))
    >>> sums.tolist(), width
    ([16.0, 4.0], 16)
    >>> sums, width = add_to_bins(sums, width, 20, np.ones(MAX_BINS * FIRST_BIN_WIDTH))
    >>> len(sums), width
    (129, 32)
    """
    sums, done = bin_sums.copy(), 0
    while done < len(terms):
        at = n_rows + done
        number = at // bin_width
        if number == MAX_BINS:
            bin_width *= 2
            sums = sums[::2] + sums[1::2]
            continue
        if number == len(sums):
            sums = np.concatenate([sums, np.zeros((1, *sums.shape[1:]))])
        part = terms[done : done + (number + 1) * bin_width - at]
        sums[number] = np.add.accumulate(np.concatenate([sums[[number]], part]))[-1]
        done += len(part)
    return sums, bin_width


def bin_ends(n_bins: int, bin_width: int, n_rows: int) -> Ints:
    """Return the number of the last row in each bin."""
    return np.minimum(bin_width * np.arange(1, n_bins + 1), n_rows)
