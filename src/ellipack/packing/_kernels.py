"""Compiled loops of the packing layer: nearest points by scan."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack._kernels import kernel
from ellipack.validation import Floats

Ints = NDArray[np.int64]

BLOCK = 64
"""Points in a block. Within one, points lie side by side and coordinates apart, so that loops vectorise."""


class Points(NamedTuple):
    """Points that keep being appended, in blocks of shape (d, BLOCK), and how many there are."""

    blocks: Floats
    size: Ints


@kernel
def append(points: Points, point: Floats) -> None:
    """Add a point; there must be room."""
    block, slot = divmod(points.size[0], BLOCK)
    for k in range(len(point)):
        points.blocks[block, k, slot] = point[k]
    points.size[0] += 1


@kernel
def nearest(points: Points, query: Floats) -> tuple[int, float]:
    """Return the position of the point nearest to `query`, the earliest of equals, and its squared distance.

    Squares are added up coordinate by coordinate, in order. With no points: -1 and infinity.
    """
    best, closest = np.inf, -1
    squared = np.empty(BLOCK)
    for block in range((points.size[0] + BLOCK - 1) // BLOCK):
        if not block_distances(points, block, query, best, squared):
            continue
        for slot in range(min(BLOCK, points.size[0] - block * BLOCK)):
            if squared[slot] < best:
                best, closest = squared[slot], block * BLOCK + slot
    return closest, best


@kernel
def k_nearest(points: Points, query: Floats, positions: Ints, distances: Floats) -> int:
    """Fill in positions and squared distances of the nearest points, closest first, equals by age; say how many."""
    wanted, found = len(positions), 0
    squared = np.empty(BLOCK)
    for block in range((points.size[0] + BLOCK - 1) // BLOCK):
        worst = distances[wanted - 1] if found == wanted else np.inf
        if not block_distances(points, block, query, worst, squared):
            continue
        for slot in range(min(BLOCK, points.size[0] - block * BLOCK)):
            if found == wanted and squared[slot] >= distances[wanted - 1]:
                continue
            found = min(found + 1, wanted)
            place = found - 1
            while place > 0 and distances[place - 1] > squared[slot]:
                distances[place], positions[place] = distances[place - 1], positions[place - 1]
                place -= 1
            distances[place], positions[place] = squared[slot], block * BLOCK + slot
    return found


@kernel
def block_distances(points: Points, block: int, query: Floats, best: float, squared: Floats) -> bool:
    """Fill `squared` for a block's points; stop and say False as soon as none can be below `best`."""
    squared[:] = 0.0
    for k in range(len(query)):
        value = query[k]
        for slot in range(BLOCK):
            difference = points.blocks[block, k, slot] - value
            squared[slot] += difference * difference
        if k % 4 == 3:
            below = np.int32(0)  # counting in 32 bits vectorises, a minimum of floats does not
            for slot in range(BLOCK):
                below += np.int32(squared[slot] < best)
            if below == 0:
                return False
    return True
