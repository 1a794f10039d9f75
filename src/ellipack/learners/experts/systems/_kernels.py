"""Four positive definite systems of one size, factored at once, each with the bits that it would have alone.

The systems stand side by side in a flat array: entry e of system s is number ``4 e + s``. Of each row only what is on
and right of the diagonal is there, one row after the other, and with it columns beside the matrix that are carried
along. So all that is done to an entry is done to `Four` numbers, and no loop is so short that it does not pay. Of
single precision there are eight, and all the same holds.
"""

from ellipack._kernels import subkernel
from ellipack.lanes._kernels import Several, at_least, lanes, load, roots, store

_LEAST_PIVOT = 1e-12
_ROWS = 4  # that are taken from those below at once


def entries(size: int, beside: int) -> int:
    """Return how many entries a system of this size has, with so many columns beside it."""
    return size * (size + 1) // 2 + size * beside


@subkernel
def row_start(row: int, width: int) -> int:
    """Return at which entry a row starts, with its diagonal; the width is that of the first row."""
    return row * width - row * (row - 1) // 2


@subkernel
def subtract(systems: Several, row: int, above: int, length: int) -> None:
    """Take from a row what one above it accounts for, from where that is over the row's diagonal."""
    n = lanes(systems)
    part = load(systems, n * above)
    for e in range(length):
        value = load(systems, n * (row + e)) - part * load(systems, n * (above + e))
        store(systems, n * (row + e), value)


@subkernel
def divide(systems: Several, row: int, length: int) -> None:
    """Divide a row by the root of its pivot."""
    n = lanes(systems)
    inverse = 1.0 / roots(at_least(load(systems, n * row), _LEAST_PIVOT))
    for e in range(row, row + length):
        store(systems, n * e, load(systems, n * e) * inverse)


@subkernel
def subtract_four(systems: Several, first: int, size: int, width: int) -> None:
    """Take from all rows below what four rows, from the first on, account for."""
    n = lanes(systems)
    # Where the rows would start if each had the entries left of its diagonal from the first one's on.
    at, below = row_start(first, width), row_start(first + 1, width) - 1
    third, fourth = row_start(first + 2, width) - 2, row_start(first + 3, width) - 3
    e = row_start(first + _ROWS, width)
    for row in range(_ROWS, size - first):
        a, b = load(systems, n * (at + row)), load(systems, n * (below + row))
        c, d = load(systems, n * (third + row)), load(systems, n * (fourth + row))
        for j in range(row, width - first):
            near = a * load(systems, n * (at + j)) + b * load(systems, n * (below + j))
            far = c * load(systems, n * (third + j)) + d * load(systems, n * (fourth + j))
            store(systems, n * e, load(systems, n * e) - (near + far))
            e += 1


@subkernel
def factor(systems: Several, size: int, width: int) -> None:
    """Factor positive definite matrices in place, and carry the columns beside them along.

    Four rows at a time, so that what is loaded is used four times.
    """
    for first in range(0, size, _ROWS):
        for row in range(first, min(first + _ROWS, size)):
            start = row_start(row, width)
            for above in range(first, row):
                subtract(systems, start, row_start(above, width) + row - above, width - row)
            divide(systems, start, width - row)
        if first + _ROWS < size:
            subtract_four(systems, first, size, width)
