"""Looking through the boxes of leaves in single precision, for those that may hold points near enough.

Half the memory and twice the speed, at the price of rounding. Let u = 2^-24 be the unit of rounding, q the query and p
a point. In coordinate k, what is computed for ``q_k - p_k`` is off by at most ``u (|q_k| + |p_k|)``, because both were
rounded, and ``|p_k|`` is at most ``|q_k| + |q_k - p_k|``. So the root of a sum of squares is off by at most
``u (2 |q| + |q - p|)``, and squares and sums of d of them by a factor of at most ``(1 + u)^(d + 3)``. `reach` allows
for more than all of that, and for what is lost where numbers are too small to be rounded so well: no point within the
limit would be missed. As rounding never turns an order around, what is computed for a box does not exceed what would be
for a point in it, and no box is missed that holds one.
"""

import math

import numpy as np

from ellipack._kernels import subkernel
from ellipack.lanes._kernels import Singles, greater, load_many, many_alike, which
from ellipack.packing.tree.coded._kernels import STEP, all_of
from ellipack.validation import Floats

_UNIT = 2.0**-24
_FAR = 1e15  # a query so far out, or farther, could overflow; it looks into every leaf
_LARGEST, _SMALLEST = 3e38, 1e-37  # of numbers of single precision, a little within


@subkernel
def reach(limit: float, size: float, d: int) -> np.float32:
    """Return what a squared distance comes to at most in single precision, if it is at most `limit` in truth.

    `size` is the length of the query, d its number of coordinates.
    """
    root = math.sqrt(limit) * (1.0 + 8.0 * _UNIT) + 4.0 * _UNIT * size
    most = root * root * (1.0 + (2.0 * d + 16.0) * _UNIT) + _SMALLEST
    return np.float32(most if most < _LARGEST and size < _FAR else np.inf)


@subkernel
def length(query: Floats) -> float:
    """Return the length of a query."""
    total = 0.0
    for k in range(query.shape[0]):
        total += query[k] * query[k]
    return math.sqrt(total)


@subkernel
def near_leaves(fences: Singles, group: int, size: int, query: Floats, most: np.float32) -> int:
    """Return which leaves of a group, that has so many, may hold points near enough: a bit each."""
    if most == np.inf:
        return all_of(size)
    d, k, bits = query.shape[0], 0, 1
    nothing = many_alike(np.float32(0.0))
    total = nothing
    while k < d and bits != 0:
        stop = min(d, k + STEP)
        while k < stop:
            at = np.float32(query[k])
            below, above = load_many(fences, group, 2 * k) - at, at - load_many(fences, group, 2 * k + 1)
            gap = greater(greater(below, above), nothing)
            total = total + gap * gap
            k += 1
        bits = which(total, most)
    return bits
