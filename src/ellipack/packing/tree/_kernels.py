"""Walking a tree in search of the nearest points.

**A walk** goes down to the leaf into which the query falls and leaves a trail: the other side of every split that it
has passed, and how far away that is. Then it follows the trail back. What lies beyond a limit is left out by two lower
bounds on the distance: to the plane that parts two siblings, and to the box around a node's points. Both are summed as
distances are, coordinate by coordinate in order, of differences that are no greater; as rounding never turns an order
around, neither bound exceeds the computed distance of a point behind it, and no safety margin is needed.

**A sweep** takes over where a walk has lost patience: it looks at the boxes of all leaves, many at a time, in the order
of memory. Where most leaves are near it is a scan; where few are, it costs little. Nothing is remembered from query to
query.

Leaves are looked through in small whole numbers first, by `ellipack.packing.tree.coded`, and boxes, in a sweep, in
single precision, by `ellipack.packing.tree.rounded`.
"""

import numpy as np

from ellipack._kernels import inlined, kernel, shared, subkernel
from ellipack.lanes._kernels import MANY, Singles, lowest
from ellipack.packing._kernels import LANES, NOBODY, Names, Within, last_of, offer, settle
from ellipack.packing.tree.coded._kernels import STEP, first_look, near_lanes, root_of, squared_distance
from ellipack.packing.tree.rounded._kernels import length, near_leaves, reach
from ellipack.packing.tree.state import AXIS, FIRST, LEAVES, LEFT, POINTS, RIGHT, ROOT, SIZE, Tree
from ellipack.validation import Floats, Ints

DEEP = 64
"""More than the depth of any tree: each level has at most 0.7 of the leaves of the one above, of fewer than 2^26."""

FEW_LEAVES = 512
"""Up to so many leaves, a query that knows how far to look sweeps at once."""

LONGEST = 64
"""The most leaves that are walked to."""

SEEN, NEAR = 2 * DEEP, 2 * DEEP + LONGEST
"""Where on a trail it stands which leaves were seen, and how far away the points of a leaf are."""

_PLACES = 32  # bits of a ticket that say where a point is held

TRAIL = NEAR + LANES
"""Numbers that a trail has room for: first of all nodes, and how far away each is at least (squared)."""


@subkernel
def measure(points: Floats, leaf: int, near: int, query: Floats, trail: Floats) -> None:
    """Put the squared distances of some points of a leaf, a bit each, at the end of the trail.

    Four at a time: each is a sum in which a number waits for the one before; one by one would be mostly waiting.
    """
    while near != 0:
        a, near = lowest(near), near & (near - 1)
        b, near = lowest(near) if near != 0 else a, near & (near - 1)
        c, near = lowest(near) if near != 0 else a, near & (near - 1)
        e, near = lowest(near) if near != 0 else a, near & (near - 1)
        at_a = at_b = at_c = at_e = 0.0
        for k in range(query.shape[0]):
            gap_a, gap_b = query[k] - points[leaf, a, k], query[k] - points[leaf, b, k]
            gap_c, gap_e = query[k] - points[leaf, c, k], query[k] - points[leaf, e, k]
            at_a, at_b = at_a + gap_a * gap_a, at_b + gap_b * gap_b
            at_c, at_e = at_c + gap_c * gap_c, at_e + gap_e * gap_e
        trail[NEAR + a], trail[NEAR + b] = at_a, at_b
        trail[NEAR + c], trail[NEAR + e] = at_c, at_e


@subkernel
def box_distance(boxes: Floats, node: int, query: Floats, limit: float) -> float:
    """Return a lower bound on the squared distance to a node's points; it may stop adding once above `limit`.

    By all coordinates for a leaf; by the first few for others, of which most are there to be passed.
    """
    total, j, stop = 0.0, 0, min(STEP, query.shape[0]) if node & 1 else query.shape[0]
    while j < stop and total <= limit:
        below, above = boxes[node, j, 0] - query[j], query[j] - boxes[node, j, 1]
        gap = below if below > above else above
        gap = gap if gap > 0.0 else 0.0
        total += gap * gap
        j += 1
    return total


@subkernel
def first_leaf(links: Names, splits: Floats, root: int, query: Floats) -> int:
    """Return the leaf into which the query falls."""
    node = root
    while node & 1:
        side = RIGHT if query[links[node, AXIS]] >= splits[node >> 1] else LEFT
        node = links[node, side]
    return node


@subkernel
def step_down(links: Names, splits: Floats, query: Floats, node: int, trail: Floats, top: int) -> int:
    """Return the child of a node on the query's side, and write the other one on the trail, as entry `top`."""
    gap = query[links[node, AXIS]] - splits[node >> 1]
    near = RIGHT if gap >= 0.0 else LEFT
    trail[2 * top], trail[2 * top + 1] = links[node, LEFT + RIGHT - near], gap * gap
    return int(links[node, near])


@subkernel
def walk_down(links: Names, splits: Floats, root: int, query: Floats, trail: Floats) -> tuple[int, int]:
    """Return the leaf into which the query falls, and how many entries the trail has by then."""
    node, top = root, 0
    while node & 1:
        node = step_down(links, splits, query, node, trail, top)
        top += 1
    return node, top


@inlined
def next_leaf(
    links: Names, splits: Floats, boxes: Floats, query: Floats, trail: Floats, top: int, limit: float, last: int
) -> tuple[int, int]:
    """Return the next leaf on the trail that may hold a point before (`limit`, `last`), or -1, and what is left of it.

    `top` is how many entries the trail has.
    """
    while top > 0:
        top -= 1
        node, looking = int(trail[2 * top]), trail[2 * top + 1] <= limit
        while looking:
            total = box_distance(boxes, node, query, limit)
            looking = total < limit or (total == limit and links[node, FIRST] <= last)
            if looking and node & 1 == 0:
                return node, top
            if looking:
                node = step_down(links, splits, query, node, trail, top)
                top += 1
    return -1, top


@subkernel
def patience(leaves: int, wanted: int) -> int:
    """Return how many leaves a query for so many points walks to before it sweeps over all."""
    return min(LONGEST, 4 + wanted // 8 + leaves // 128)


@subkernel
def next_near(
    fences: Singles, leaves: int, query: Floats, limit: float, group: int, bits: int, trail: Floats, seen: int
) -> tuple[int, int, int]:
    """Return the next leaf of a sweep, or -1, its group, and which others of the group may be near.

    Leaves that were `seen` on the walk, so many, are left out.
    """
    most = reach(limit, length(query), query.shape[0]) if bits == 0 else np.float32(0.0)
    while bits == 0 and (group + 1) * MANY < leaves:
        group += 1
        bits = near_leaves(fences, group, min(MANY, leaves - group * MANY), query, most)
        for i in range(seen):
            leaf = int(trail[SEEN + i])
            if leaf // MANY == group:
                bits &= ~(1 << (leaf % MANY))
    node = 2 * (group * MANY + lowest(bits)) if bits != 0 else -1
    return node, group, bits & (bits - 1)


@inlined
def nearest(tree: Tree, query: Floats, trail: Floats) -> tuple[int, float]:
    """Return position and squared distance of the nearest point: (-1, inf) if there is none.

    `trail` is room for `TRAIL` numbers.
    """
    points, codes, rulers, fences, names, boxes, links, splits, counters = tree
    if counters[POINTS] == 0:
        return -1, np.inf
    node, top = walk_down(links, splits, counters[ROOT], query, trail)
    leaf, left, seen = node >> 1, patience(counters[LEAVES], 1), 0
    group, others = -1, 0
    best, guess, near = first_look(points, rulers, codes, leaf, links[node, SIZE], query)
    found = names[leaf, guess]
    while node >= 0:
        while near != 0:
            lane = lowest(near)
            near &= near - 1
            distance = squared_distance(points, leaf, lane, query)
            # A name is looked up only where it can matter: it may be far away in memory.
            if distance < best or (distance == best and names[leaf, lane] < found):
                best, found = distance, names[leaf, lane]
        if left > 0:
            trail[SEEN + seen] = leaf
            left, seen = left - 1, seen + 1
            node, top = next_leaf(links, splits, boxes, query, trail, top, best, found)
        if left == 0 and node >= 0:
            node, group, others = next_near(fences, counters[LEAVES], query, best, group, others, trail, seen)
        if node >= 0:
            leaf = node >> 1
            near = near_lanes(rulers, codes, leaf, links[node, SIZE], query, root_of(best))
    return found, best


@subkernel
def ticket(position: int, leaf: int, lane: int) -> int:
    """Return a number that says which point it is, and where it is held; they are in the order of positions."""
    return (int(position) << _PLACES) + leaf * LANES + lane


@subkernel
def position_of(ticket: int) -> int:
    """Return which point a ticket is of."""
    return ticket >> _PLACES


@subkernel
def place_of(ticket: int) -> tuple[int, int]:
    """Return in which leaf, and in which of its lanes, the point of a ticket is held."""
    place = ticket & ((1 << _PLACES) - 1)
    return place // LANES, place % LANES


@shared
def k_nearest(tree: Tree, query: Floats, limit: float, tickets: Ints, distances: Floats, trail: Floats) -> int:
    """Fill in the `len(tickets)` nearest at a squared distance of at most `limit`; return how many those are.

    They are sorted by (squared distance, position). A full answer may leave out others within the limit. There must be
    room for one at least.
    """
    points, codes, rulers, fences, names, boxes, links, splits, counters = tree
    held, last = 0, NOBODY
    if counters[POINTS] == 0:
        return 0
    node, top = walk_down(links, splits, counters[ROOT], query, trail)
    left, seen = patience(counters[LEAVES], len(tickets)), 0
    group, others = -1, 0
    if limit < np.inf and counters[LEAVES] <= FEW_LEAVES:
        left = 0
        node, group, others = next_near(fences, counters[LEAVES], query, limit, group, others, trail, seen)
    while node >= 0:
        leaf = node >> 1
        near = near_lanes(rulers, codes, leaf, links[node, SIZE], query, root_of(limit))
        measure(points, leaf, near, query, trail)
        while near != 0:
            lane = lowest(near)
            near &= near - 1
            distance = trail[NEAR + lane]
            if distance < limit or (distance == limit and names[leaf, lane] < last):
                found = ticket(names[leaf, lane], leaf, lane)
                held = offer(tickets, distances, held, found, distance)
                if held == tickets.shape[0]:
                    limit, last = distances[last_of(held)], position_of(tickets[last_of(held)])
        if left > 0:
            trail[SEEN + seen] = leaf
            seen += 1
            # As long as the answer is not full there may be no limit to sweep by.
            left = left - 1 if limit < np.inf else min(left, LONGEST - seen)
            node, top = next_leaf(links, splits, boxes, query, trail, top, limit, last)
        if left == 0 and node >= 0:
            node, group, others = next_near(fences, counters[LEAVES], query, limit, group, others, trail, seen)
    settle(tickets, distances, held)
    return held


@subkernel
def each_nearest(tree: Tree, queries: Floats, positions: Ints, distances: Floats, trail: Floats) -> None:
    """Answer `nearest` for each row of `queries`."""
    for row in range(queries.shape[0]):
        positions[row], distances[row] = nearest(tree, queries[row], trail)


@kernel
def nearest_rows(tree: Tree, queries: Floats, positions: Ints, distances: Floats) -> None:
    """Answer `nearest` for each row of `queries`."""
    each_nearest(tree, queries, positions, distances, np.empty(TRAIL))


@subkernel
def each_search(
    tree: Tree, queries: Floats, limits: Floats, most: int, found: Within, start: int, trail: Floats
) -> int:
    """Do as `search_rows` does."""
    offsets, positions, distances = found
    row, room = start, True
    while room and row < queries.shape[0]:
        first = offsets[row]
        wanted = min(most, positions.shape[0] - first)
        stop = first + wanted
        held = k_nearest(tree, queries[row], limits[row], positions[first:stop], distances[first:stop], trail)
        for j in range(first, first + held):
            positions[j] = position_of(positions[j])
        offsets[row + 1] = first + held
        # An answer that fills all the room may be short of some: it has to be asked for again with more room.
        room = held < wanted or wanted == most
        row += room
    return row


@kernel
def search_rows(tree: Tree, queries: Floats, limits: Floats, most: int, found: Within, start: int) -> int:
    """Answer `k_nearest` for the rows from `start` on, one after the other; return the row that found no room.

    Each asks for `most` points at most, within a limit of its own. For the first row it must be there already at which
    offset its answer begins, and there must be room for a point.
    """
    return each_search(tree, queries, limits, most, found, start, np.empty(TRAIL))
