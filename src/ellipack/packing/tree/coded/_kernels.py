"""Looking through leaves in small whole numbers, for what may be near.

Every leaf has a ruler along each axis, of up to 256 steps of one length, and its points have codes: on which step they
are. An eighth of the memory, and 64 points in a few instructions; what *may* be near enough by its codes is then
measured in full. Let w be the steps in a unit of length, q the query and p a point. Along an axis, the true distance
in steps, ``w |q_k - p_k|``, and the distance of the codes, ``|Q_k - C_k|``, differ by less than 1, because both codes
are rounded down, and by what the arithmetic of doubles adds, which is far less than a billionth of a step. So along m
axes the lengths of both differ by less than ``sqrt(m) (1 + 1e-9)``: a point within the root r of the limit has codes
within ``w r + sqrt(m) (1 + 1e-9)`` of the query's. That gaps are cut off, and tallies stay at what is full, only makes
the sum of squares smaller.

A limit is itself the computed square of a distance, off by some units of rounding, or by all there is to it where
squares are below the range of doubles; `root_of` allows for both.
"""

import math

from ellipack._kernels import inlined, subkernel
from ellipack.lanes._kernels import FULL_TALLY, MANY, Codes, Tallies, least, lowest, no_tallies, tallied, which
from ellipack.validation import Floats

STEP = 4
"""Axes that are looked along before it is asked again whether anything can be near enough."""

_LONGEST, _STEPS = 255.0, 1000.0  # of a ruler, and of that over the root of their number, lest all tallies be full
_ROOM = 1.125  # how much longer a ruler is than a leaf's points take, so that others may come
_FINEST = 1e140  # steps in a unit of length
_WIDEST = 1e150  # leaves wider than that have no rulers: differences could overflow
_BEYOND = 500.0  # steps: a query as far out as that is as far as it counts


@subkernel
def rule(rulers: Floats, leaf: int, boxes: Floats, node: int) -> None:
    """Lay the rulers of a leaf along its box: how many steps there are in 1, and then where each ruler begins.

    No steps at all stand for a leaf without rulers, whose points are all measured in full.
    """
    d, width = boxes.shape[1], 0.0
    for k in range(d):
        width = max(width, boxes[node, k, 1] - boxes[node, k, 0])
    wide = width >= _WIDEST
    longest = min(_LONGEST, _STEPS / math.sqrt(d))
    steps = 0.0 if wide else min(longest / (_ROOM * width), _FINEST) if width > 0.0 else _FINEST
    rulers[leaf, 0] = steps
    for k in range(d):
        middle = 0.5 * boxes[node, k, 0] + 0.5 * boxes[node, k, 1]
        rulers[leaf, 1 + k] = 0.0 if wide else middle - 128.0 / steps


@subkernel
def encode(rulers: Floats, codes: Codes, leaf: int, lane: int, points: Floats) -> bool:
    """Write the codes of a leaf's point; return False if it lies beyond the ends of a ruler."""
    inside, steps = True, rulers[leaf, 0]
    for k in range(points.shape[2]):
        at = (points[leaf, lane, k] - rulers[leaf, 1 + k]) * steps
        within = 0.0 <= at < 256.0
        codes[leaf, k, lane] = int(at) if within else 0
        inside &= within
    return inside


@subkernel
def encode_all(rulers: Floats, codes: Codes, leaf: int, size: int, points: Floats, boxes: Floats) -> None:
    """Lay a leaf's rulers anew, and write the codes of its points, of which there are so many.

    Lanes without a point get the codes of the first.
    """
    rule(rulers, leaf, boxes, 2 * leaf)
    inside = True
    for lane in range(size):
        inside &= encode(rulers, codes, leaf, lane, points)
    if not inside:  # so far from the origin that there are not enough numbers to lay rulers by
        rulers[leaf, 0] = 0.0
    for k in range(points.shape[2]):
        for lane in range(size, MANY):
            codes[leaf, k, lane] = codes[leaf, k, 0]


@subkernel
def root_of(limit: float) -> float:
    """Return how far away a point is at most whose computed squared distance is at most `limit`."""
    return math.sqrt(limit) * (1.0 + 1e-9) + 1e-150


@subkernel
def all_of(size: int) -> int:
    """Return the bits of the first `size` lanes, of which there is at least one."""
    return 2 * ((1 << (int(size) - 1)) - 1) + 1


@inlined
def gathered(
    rulers: Floats, codes: Codes, leaf: int, query: Floats, start: int, stop: int, tallies: Tallies
) -> Tallies:
    """Return tallies with those along some axes added."""
    for k in range(start, stop):
        at = (query[k] - rulers[leaf, 1 + k]) * rulers[leaf, 0]
        at = min(max(at, -_BEYOND), _BEYOND)
        # Rounded down: what is below 0 too.
        tallies = tallied(tallies, codes, leaf, k, int(at + _BEYOND) - int(_BEYOND))
    return tallies


@subkernel
def largest_tally(steps: float, root: float, axes: int) -> int:
    """Return the largest tally along so many axes of a point that may be near enough; a full one if none is too far."""
    if steps == 0.0:
        return FULL_TALLY
    far = steps * root + math.sqrt(axes) * (1.0 + 1e-9)
    return int(far * far) if far * far < FULL_TALLY else FULL_TALLY


@inlined
def narrowed(
    rulers: Floats, codes: Codes, leaf: int, query: Floats, root: float, bits: int, tallies: Tallies
) -> tuple[int, Tallies]:
    """Return which of some lanes may be near enough, a bit each; `tallies` are along the first `STEP` axes."""
    d, k = query.shape[0], STEP
    while k < d and bits & (bits - 1) != 0:  # a single one is measured sooner than looked at again
        stop = min(d, k + STEP)
        tallies = gathered(rulers, codes, leaf, query, k, stop, tallies)
        most = largest_tally(rulers[leaf, 0], root, stop)
        bits = bits & which(tallies, most) if most < FULL_TALLY else bits
        k = stop
    return bits, tallies


@inlined
def near_lanes(rulers: Floats, codes: Codes, leaf: int, size: int, query: Floats, root: float) -> int:
    """Return which of the points of a leaf may be no farther than `root`: a bit each."""
    axes, bits = min(STEP, query.shape[0]), all_of(size)
    most = largest_tally(rulers[leaf, 0], root, axes)
    if most == FULL_TALLY:
        return bits
    tallies = gathered(rulers, codes, leaf, query, 0, axes, no_tallies())
    bits, tallies = narrowed(rulers, codes, leaf, query, root, bits & which(tallies, most), tallies)
    return bits


@subkernel
def squared_distance(points: Floats, leaf: int, lane: int, query: Floats) -> float:
    """Return the squared distance of a point in full."""
    total = 0.0
    for k in range(query.shape[0]):
        gap = query[k] - points[leaf, lane, k]
        total += gap * gap
    return total


@subkernel
def least_lane(tallies: Tallies) -> int:
    """Return the first lane with the least tally: one with a point, as those without have the codes of the first."""
    return lowest(which(tallies, least(tallies)))


@inlined
def first_look(
    points: Floats, rulers: Floats, codes: Codes, leaf: int, size: int, query: Floats
) -> tuple[float, int, int]:
    """Return a first guess at the nearest point of a leaf, of its distance and lane, and which others may be nearer.

    It is the nearest by the codes along the first axes, which in most metrics weigh the most, or along all.
    """
    axes, bits = min(STEP, query.shape[0]), all_of(size)
    if rulers[leaf, 0] == 0.0:
        return squared_distance(points, leaf, 0, query), 0, bits
    tallies = gathered(rulers, codes, leaf, query, 0, axes, no_tallies())
    lane = least_lane(tallies)
    best = squared_distance(points, leaf, lane, query)
    root, bits = root_of(best), bits & ~(1 << lane)
    most = largest_tally(rulers[leaf, 0], root, axes)
    if most == FULL_TALLY:
        return best, lane, bits
    bits, tallies = narrowed(rulers, codes, leaf, query, root, bits & which(tallies, most), tallies)
    others = bits & (bits - 1)
    if others & (others - 1) != 0:  # three or more, which takes all axes: there may be a better guess
        other = least_lane(tallies)
        distance = squared_distance(points, leaf, other, query)
        if distance < best:
            best, lane = distance, other
            bits &= which(tallies, largest_tally(rulers[leaf, 0], root_of(best), query.shape[0])) & ~(1 << lane)
    return best, lane, bits
