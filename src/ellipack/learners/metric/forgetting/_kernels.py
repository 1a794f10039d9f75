"""Which centres another one could stand for."""

import numpy as np

from ellipack._kernels import kernel
from ellipack.packing._kernels import LANES, before, block_distances
from ellipack.packing.tree.state import LEAVES, SIZE, Tree
from ellipack.validation import Floats, Ints


@kernel
def closest_later(tree: Tree, points: Floats, nearest_of: Ints, apart: Floats) -> None:
    """Fill in, for each point, the nearest later point of the same leaf and the squared distance to it.

    A point that is the last of its leaf keeps what was there.
    """
    block, lanes = np.empty((1, points.shape[1], LANES)), np.empty(LANES)
    for leaf in range(tree.counters[LEAVES]):
        held = tree.positions[leaf, : tree.links[2 * leaf, SIZE]]
        for lane in range(len(held)):
            for k in range(points.shape[1]):
                block[0, k, lane] = points[held[lane], k]
        for at in held:
            block_distances(block, 0, len(held), points[at], np.inf, lanes)
            for lane in range(len(held)):
                other = held[lane]
                if other > at and before(lanes[lane], other, apart[at], nearest_of[at]):
                    apart[at], nearest_of[at] = lanes[lane], other
