"""Looking through leaves and their boxes in single precision, for what may be near.

Half the memory and twice the speed, at the price of rounding: the few points that *may* be near enough are then
measured in full. Let u = 2^-24 be the unit of rounding, q the query and p a point. In coordinate k, what is computed
for ``q_k - p_k`` is off by at most ``u (|q_k| + |p_k|)``, because both were rounded, and ``|p_k|`` is at most
``|q_k| + |q_k - p_k|``. So the root of a sum of squares is off by at most ``u (2 |q| + |q - p|)``, and squares and sums
of d of them by a factor of at most ``(1 + u)^(d + 3)``. `reach` allows for more than all of that, and for what is lost
where numbers are too small to be rounded so well: no point within the limit is ever missed. The same holds for boxes:
as rounding never turns an order around, what is computed for a box does not exceed what is for a point in it.
"""

import math

import numpy as np

from ellipack._kernels import inlined, subkernel
from ellipack.lanes._kernels import Many, Singles, greater, least, load_many, lowest, many_alike, which
from ellipack.validation import Floats

STEP = 4
"""Coordinates that are looked at before it is asked again whether anything can be near enough."""

_UNIT = 2.0**-24
_FAR = 1e15  # a query so far out, or farther, could overflow; it looks at every point in full
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
def all_of(size: int) -> int:
    """Return the bits of the first `size` lanes, of which there is at least one."""
    return 2 * ((1 << (int(size) - 1)) - 1) + 1


@subkernel
def gather(blocks: Singles, leaf: int, query: Floats, start: int, stop: int, total: Many) -> Many:
    """Return squared distances to the points of a leaf, with those in some coordinates added."""
    for k in range(start, stop):
        gap = np.float32(query[k]) - load_many(blocks, leaf, k)
        total = total + gap * gap
    return total


@subkernel
def narrowed(blocks: Singles, leaf: int, query: Floats, total: Many, most: np.float32) -> int:
    """Return which points of a leaf may be near enough: a bit each; `total` is for the first `STEP` coordinates."""
    d, k = query.shape[0], STEP
    bits = which(total, most)
    while k < d and bits & (bits - 1) != 0:  # a single one is measured sooner than looked at again
        total = gather(blocks, leaf, query, k, min(d, k + STEP), total)
        bits = which(total, most)
        k += STEP
    return bits


@inlined
def near_lanes(blocks: Singles, leaf: int, size: int, query: Floats, most: np.float32) -> int:
    """Return which of the points of a leaf may be near enough: a bit each."""
    if most == np.inf or blocks.shape[1] == 0:
        return all_of(size)
    total = gather(blocks, leaf, query, 0, min(STEP, query.shape[0]), many_alike(np.float32(0.0)))
    return narrowed(blocks, leaf, query, total, most)


@subkernel
def squared_distance(points: Floats, leaf: int, lane: int, query: Floats) -> float:
    """Return the squared distance of a point in full."""
    total = 0.0
    for k in range(query.shape[0]):
        gap = query[k] - points[leaf, lane, k]
        total += gap * gap
    return total


@inlined
def first_look(
    points: Floats, blocks: Singles, leaf: int, held: int, query: Floats, size: float
) -> tuple[float, int, int]:
    """Return a first guess at the nearest point of a leaf, of its distance and lane, and which others may be nearer.

    It is the nearest in the first coordinates, which in most metrics weigh the most; without rounded copies, any.
    """
    if size >= _FAR or blocks.shape[1] == 0:
        return squared_distance(points, leaf, 0, query), 0, all_of(held)
    total = gather(blocks, leaf, query, 0, min(STEP, query.shape[0]), many_alike(np.float32(0.0)))
    lane = lowest(which(total, least(total)))
    best = squared_distance(points, leaf, lane, query)
    most = reach(best, size, query.shape[0])
    return best, lane, all_of(held) if most == np.inf else narrowed(blocks, leaf, query, total, most)


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
