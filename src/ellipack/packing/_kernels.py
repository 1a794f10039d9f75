"""Distances to a block of points, and the best K of them.

A block holds `LANES` points coordinate by coordinate, so that one instruction works on several points at once.
Callers ignore lanes that hold no point. The squared distance of a point is always the same sum: coordinate
by coordinate in order, each product rounded, then added; whatever computes it gets the same bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack._kernels import subkernel
from ellipack.validation import Floats, Ints

Names = NDArray[np.int32]

LANES = 64
"""Points in a block."""

SHORT = 64
"""The most neighbours that are kept as a sorted list: a heap is slower until then."""

NOBODY = 2**62
"""A position later than every point's: what stands in while nothing has been found."""


class Within(NamedTuple):
    """The neighbours of query `i` are entries `offsets[i]` to `offsets[i + 1]`, nearest first."""

    offsets: Ints
    positions: Ints
    distances: Floats
    """Squared."""


@subkernel
def block_distances(blocks: Floats, block: int, size: int, query: Floats, limit: float, lanes: Floats) -> int:
    """Put the squared distances of the `size` points of a block into `lanes`; return how many are at most `limit`.

    Returns 0 as soon as no lane can be: then `lanes` holds partial sums, which are of no use.
    """
    d = query.shape[0]
    width = (size + 7) & -8  # to the end of a cache line: lanes beyond it are not even fetched
    fours = d - d % 4
    alive = np.int32(0)
    for lane in range(width):
        lanes[lane] = 0.0
    # Four coordinates a pass load and store each sum once for four products. Counting in int32 vectorises, a
    # minimum of floats does not.
    for j in range(0, fours, 4):
        q0, q1, q2, q3 = query[j], query[j + 1], query[j + 2], query[j + 3]
        alive = np.int32(0)
        for lane in range(width):
            gap0, gap1 = q0 - blocks[block, j, lane], q1 - blocks[block, j + 1, lane]
            gap2, gap3 = q2 - blocks[block, j + 2, lane], q3 - blocks[block, j + 3, lane]
            total = lanes[lane] + gap0 * gap0 + gap1 * gap1 + gap2 * gap2 + gap3 * gap3
            lanes[lane] = total
            if total <= limit:
                alive = np.int32(alive + 1)
        if alive == 0:
            return 0
    for j in range(fours, d):
        q0 = query[j]
        alive = np.int32(0)
        for lane in range(width):
            gap0 = q0 - blocks[block, j, lane]
            total = lanes[lane] + gap0 * gap0
            lanes[lane] = total
            if total <= limit:
                alive = np.int32(alive + 1)
    return int(alive)


@subkernel
def before(distance: float, position: int, other_distance: float, other_position: int) -> bool:
    """Whether a point comes before another: nearer, or as near and inserted earlier."""
    return distance < other_distance or (distance == other_distance and position < other_position)


@subkernel
def slide(positions: Ints, distances: Floats, count: int, position: int, distance: float) -> None:
    """Put a point where it belongs in a sorted list; a full list loses its last for it."""
    hole = min(count, positions.shape[0] - 1)
    while hole > 0 and before(distance, position, distances[hole - 1], positions[hole - 1]):
        distances[hole], positions[hole] = distances[hole - 1], positions[hole - 1]
        hole -= 1
    distances[hole], positions[hole] = distance, position


@subkernel
def rise(positions: Ints, distances: Floats, count: int, position: int, distance: float) -> None:
    """Put a point at the bottom of a heap of `count` points, and let it rise to where it belongs."""
    hole, above = count, (count - 1) >> 1
    while hole > 0 and before(distances[above], positions[above], distance, position):
        distances[hole], positions[hole] = distances[above], positions[above]
        hole, above = above, (above - 1) >> 1
    distances[hole], positions[hole] = distance, position


@subkernel
def sink(positions: Ints, distances: Floats, count: int, position: int, distance: float) -> None:
    """Put a point in the place of the top of a heap, and let it sink to where it belongs."""
    hole, child = 0, 1
    while child < count:
        other = child + 1
        if other < count and before(distances[child], positions[child], distances[other], positions[other]):
            child = other
        if before(distance, position, distances[child], positions[child]):
            distances[hole], positions[hole] = distances[child], positions[child]
            hole, child = child, 2 * child + 1
        else:
            child = count
    distances[hole], positions[hole] = distance, position


@subkernel
def offer(positions: Ints, distances: Floats, count: int, position: int, distance: float) -> int:
    """Add a point to the best so far, of which there are `count`; return how many there are now.

    At most `SHORT` of them are a sorted list; more, a heap with the last of them on top. If they are `len(positions)`
    already, the point must come before the last of them, which drops out.
    """
    if positions.shape[0] <= SHORT:
        slide(positions, distances, count, position, distance)
    elif count < positions.shape[0]:
        rise(positions, distances, count, position, distance)
    else:
        sink(positions, distances, count, position, distance)
    # With both arrays in use to the end the compiler sees that it need not count references to them.
    return int(min(count + 1, positions.shape[0], distances.shape[0]))


@subkernel
def last_of(size: int) -> int:
    """Return where the last of the best is, once there are `size` of them."""
    return size - 1 if size <= SHORT else 0


@subkernel
def settle(positions: Ints, distances: Floats, count: int) -> None:
    """Bring the best, of which there are `count`, into rising order of (squared distance, position)."""
    if positions.shape[0] > SHORT:
        for end in range(count - 1, 0, -1):
            distance, position = distances[end], positions[end]
            distances[end], positions[end] = distances[0], positions[0]
            sink(positions, distances, end, position, distance)
