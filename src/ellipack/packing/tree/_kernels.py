"""Walking a tree in search of the nearest points.

A walk needs no stack: it climbs by the parents, and a child knows from the query whether it was the near one, seen
first, or the far one. What lies beyond a limit is left out by two lower bounds on the distance: to the plane that
parts two siblings, and to the box around a node's points. Both are summed as distances are, coordinate by
coordinate in order, of differences that are no greater; as rounding never turns an order around, neither bound
exceeds the computed distance of a point behind it, and no safety margin is needed.
"""

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.packing._kernels import (
    LANES,
    NOBODY,
    block_distances,
    last_of,
    offer,
    plain,
    settle,
)
from ellipack.packing.tree.state import (
    AXIS,
    FIRST,
    LEAVES,
    LEFT,
    PARENT,
    RIGHT,
    ROOT,
    SIZE,
    Tree,
)
from ellipack.validation import Floats, Ints


@subkernel
def box_distance(boxes: Floats, node: int, query: Floats, limit: float) -> float:
    """Return a lower bound on the squared distance to a node's points; it may stop adding once above `limit`."""
    total = 0.0
    j = 0
    while j < query.shape[0] and total <= limit:
        below, above = boxes[node, j, 0] - query[j], query[j] - boxes[node, j, 1]
        gap = below if below > above else above
        gap = gap if gap > 0.0 else 0.0
        total += gap * gap
        j += 1
    return total


@subkernel
def first_leaf(links: Ints, splits: Floats, root: int, query: Floats) -> int:
    """Return the leaf into which the query falls."""
    node = root
    while node & 1:
        side = RIGHT if query[links[node, AXIS]] >= splits[node >> 1] else LEFT
        node = links[node, side]
    return node


@subkernel
def next_leaf(links: Ints, splits: Floats, boxes: Floats, query: Floats, node: int, limit: float, last: int) -> int:
    """Return the leaf to visit after leaf `node`, or -1: the next that may hold a point before (`limit`, `last`)."""
    climbing, parent = True, node
    while node >= 0 and (climbing or node & 1):
        if climbing:
            parent = links[node, PARENT]
            looking = False
            if parent >= 0:
                gap = query[links[parent, AXIS]] - splits[parent >> 1]
                near = RIGHT if gap >= 0 else LEFT
                looking = node == links[parent, near] and gap * gap <= limit
                node = links[parent, LEFT + RIGHT - near] if looking else parent
            else:
                node = -1
        else:
            near = RIGHT if query[links[node, AXIS]] >= splits[node >> 1] else LEFT
            node = parent = links[node, near]
            looking = True
        if looking:
            total = box_distance(boxes, node, query, limit) if limit < np.inf else 0.0
            climbing = total > limit or (total == limit and links[node, FIRST] > last)
            node = parent if climbing else node
    return node


@subkernel
def patience(leaves: int) -> int:
    """Return how many leaves a query walks to before it considers to scan them all instead; 0 is for ever."""
    # What it has walked to, it scans once more: few of many, and in a small tree walking costs no more.
    return 1 + leaves // 64 if leaves >= 16 else 0


@subkernel
def crowded(boxes: Floats, leaves: int, query: Floats, limit: float) -> bool:
    """Whether so many leaves are within the limit that scanning all is faster, going by a sample spread over them."""
    sample = min(16, 2 + leaves // 32)
    near = 0
    for i in range(sample):
        if box_distance(boxes, 2 * (i * leaves // sample), query, limit) <= limit:
            near += 1
    return 3 * near > sample  # a walk jumps about in memory, a scan does not


@subkernel
def nearest(tree: Tree, query: Floats, lanes: Floats) -> tuple[int, float]:
    """Return position and squared distance of the nearest point: (-1, inf) if there is none.

    `lanes` is room for `LANES` numbers.
    """
    blocks, names, boxes, links, splits, counters = tree
    best, found = np.inf, plain(counters[ROOT], NOBODY)
    node, end = first_leaf(links, splits, counters[ROOT], query), 2 * counters[LEAVES]
    walking, left = True, patience(counters[LEAVES])
    while node >= 0:
        leaf = node >> 1
        if block_distances(blocks, leaf, links[node, SIZE], query, best, lanes) > 0:
            for lane in range(links[node, SIZE]):
                # A name is looked up only where it can matter: it may be far away in memory.
                if lanes[lane] <= best and (lanes[lane] < best or names[leaf, lane] < found):
                    best, found = lanes[lane], names[leaf, lane]
        left -= 1
        if left == 0 and crowded(boxes, counters[LEAVES], query, best):
            walking, node = False, -2
        if walking:
            node = next_leaf(links, splits, boxes, query, node, best, found)
        else:
            node = node + 2 if node + 2 < end else -1
    return (-1 if found == NOBODY else found), best


@subkernel
def k_nearest(tree: Tree, query: Floats, limit: float, positions: Ints, distances: Floats, lanes: Floats) -> int:
    """Fill in the `len(positions)` nearest at a squared distance of at most `limit`; return how many those are.

    They are sorted by (squared distance, position). A full answer may leave out others within the limit.
    """
    blocks, names, boxes, links, splits, counters = tree
    held, last = plain(counters[ROOT], 0), plain(counters[ROOT], NOBODY)
    node, end = first_leaf(links, splits, counters[ROOT], query), 2 * counters[LEAVES]
    walking, left = True, patience(counters[LEAVES])
    while node >= 0:
        leaf = node >> 1
        if block_distances(blocks, leaf, links[node, SIZE], query, limit, lanes) > 0:
            for lane in range(links[node, SIZE]):
                if lanes[lane] <= limit and (lanes[lane] < limit or names[leaf, lane] < last):
                    name = plain(counters[ROOT], names[leaf, lane])
                    held = offer(positions, distances, held, name, lanes[lane])
                    if held == positions.shape[0]:
                        limit, last = distances[last_of(held)], positions[last_of(held)]
        # As long as the answer is not full there may be no limit to judge by.
        bounded = limit < np.inf
        left -= bounded
        if bounded and left == 0 and crowded(boxes, counters[LEAVES], query, limit):
            # All are offered once more, the last of the best so far among them.
            walking, node, held, last = False, -2, 0, last + 1
        if walking:
            node = next_leaf(links, splits, boxes, query, node, limit, last)
        else:
            node = node + 2 if node + 2 < end else -1
    settle(positions, distances, held)
    return held


@kernel
def nearest_rows(tree: Tree, queries: Floats, positions: Ints, distances: Floats) -> None:
    """Answer `nearest` for each row of `queries`."""
    lanes = np.empty(LANES)
    for row in range(queries.shape[0]):
        positions[row], distances[row] = nearest(tree, queries[row], lanes)


@kernel
def k_nearest_rows(tree: Tree, queries: Floats, positions: Ints, distances: Floats) -> None:
    """Answer `k_nearest` for each row of `queries`; both answers are (row, rank)."""
    lanes = np.empty(LANES)
    for row in range(queries.shape[0]):
        k_nearest(tree, queries[row], np.inf, positions[row], distances[row], lanes)


@kernel
def within_rows(
    tree: Tree, queries: Floats, limit: float, positions: Ints, distances: Floats, offsets: Ints, start: int
) -> int:
    """Answer `k_nearest` for the rows from `start` on, one after the other; return the row that found no room.

    The answer for a row goes to offsets[row]:offsets[row + 1], of which the first must be there for `start`.
    """
    lanes = np.empty(LANES)
    row = start
    while row < queries.shape[0]:
        first = offsets[row]
        held = k_nearest(tree, queries[row], limit, positions[first:], distances[first:], lanes)
        offsets[row + 1] = first + held
        # An answer that fills all the room may be short of some: it has to be asked for again with more room.
        if first + held == positions.shape[0]:
            break
        row += 1
    return row
