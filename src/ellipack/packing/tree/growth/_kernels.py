"""Planting a tree over given points, and making room in a leaf that is full.

Leaves are parted by rank, not by value: equal points may end up on both sides of a split, so that no number of
duplicates makes a leaf that cannot be parted. A full leaf is planted anew together with its neighbours, up to
`GROUP` leaves, with one leaf more only if they are nearly full, which keeps the blocks well filled under sorted
insertion too. If one side of a node has outgrown the other, all below it is planted anew: the cost of that, spread
over the insertions that it took, is logarithmic.
"""

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.packing._kernels import LANES, Names, plain
from ellipack.packing.tree._kernels import first_leaf
from ellipack.packing.tree.state import AXIS, FIRST, LEAVES, LEFT, PARENT, POINTS, RIGHT, ROOT, SIZE, Tree
from ellipack.validation import Floats, Ints

WIDE = 16
"""From so many coordinates on a query may have to scan all leaves, and fuller ones are worth dearer insertions."""

GROUP, WIDE_GROUP = 8, 16
"""The most leaves that are planted anew for want of room in one of them."""

FULL, WIDE_FULL = 58, 61
"""Points a leaf, in the mean over a group, above which the group gets another leaf."""

LOPSIDED = 0.7
"""The share of a node's leaves above which one side has outgrown the other."""

DEEP = 64
"""More than the depth of any tree that has just been planted: each level halves at most 2^31 points."""


@subkernel
def select(keys: Floats, order: Ints, low: int, high: int, rank: int) -> None:
    """Arrange keys[low], ..., keys[high], and `order` along with them, so that what is before `rank` is no greater."""
    seed = 1
    while low < high:
        # Pivots drawn at random, by a fixed rule: no order of insertion is the one that makes this slow.
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        width = high - low + 1
        a, b, c = keys[low + seed % width], keys[low + (seed >> 8) % width], keys[(low + high) >> 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        # Between j and i all is equal to the pivot: if the rank is there, it is in its place.
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            low = high


@subkernel
def bound(points: Floats, order: Ints, start: int, stop: int, boxes: Floats, node: int) -> int:
    """Put the box around points[:, order[start:stop]] into boxes[node]; return the axis along which it is widest."""
    widest, width = 0, -1.0
    for j in range(points.shape[0]):
        least = greatest = points[j, order[start]]
        for i in range(start + 1, stop):
            value = points[j, order[i]]
            least = value if value < least else least
            greatest = value if value > greatest else greatest
        boxes[node, j, 0], boxes[node, j, 1] = least, greatest
        if greatest - least > width:
            widest, width = j, greatest - least
    return widest


@subkernel
def fill_leaf(blocks: Floats, leaf: int, points: Floats, order: Ints, start: int, stop: int) -> None:
    """Put points[:, order[start:stop]] into blocks[leaf], and the rest of its lanes at infinity."""
    for j in range(points.shape[0]):
        for i in range(start, stop):
            blocks[leaf, j, i - start] = points[j, order[i]]
        for lane in range(stop - start, LANES):
            blocks[leaf, j, lane] = np.inf


@subkernel
def node_of(leaves: Ints, inner: Ints, first: int, size: int) -> int:
    """Return the node over leaves[first:first + size]: an inner node stands between the leaves that it parts."""
    node: int = 2 * leaves[first] if size == 1 else 2 * inner[first + size // 2 - 1] + 1
    return node


@subkernel
def earliest(names: Ints, order: Ints, start: int, stop: int) -> int:
    """Return the least of names[order[start:stop]]."""
    least: int = names[order[start]]
    for i in range(start + 1, stop):
        least = min(least, names[order[i]])
    return least


@subkernel
def push(todo: Ints, at: int, start: int, stop: int, first: int, size: int, parent: int) -> None:
    """Write down that points start to stop go to leaves[first:first + size], below `parent`."""
    todo[at, 0], todo[at, 1], todo[at, 2], todo[at, 3], todo[at, 4] = start, stop, first, size, parent


@subkernel
def lift(blocks: Floats, positions: Names, links: Ints, leaves: Ints, points: Floats, names: Ints) -> None:
    """Put the points in `leaves` into `points`, (coordinate, point), and their positions into `names`."""
    start = 0
    for i in range(leaves.shape[0]):
        leaf = leaves[i]
        held = links[2 * leaf, SIZE]
        for j in range(blocks.shape[1]):
            for lane in range(held):
                points[j, start + lane] = blocks[leaf, j, lane]
        for lane in range(held):
            names[start + lane] = positions[leaf, lane]
        start += held


@subkernel
def plant(tree: Tree, leaves: Ints, inner: Ints, count: int, parent: int) -> int:
    """Build a balanced tree below `parent` over the `count` points that are in `leaves`; return its root.

    Parameters
    ----------
    tree
        What is changed.
    leaves, inner
        The numbers of the leaves and, one fewer, of the inner nodes to use. All leaves are used, evenly.
    count
        The number of points in them.
    parent
        The node above, or -1. It does not learn of its new child here.
    """
    blocks, positions, boxes, links, splits, _ = tree
    names, order, keys = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)
    points = np.empty((blocks.shape[1], count))
    lift(blocks, positions, links, leaves, points, names)
    for i in range(count):
        order[i] = i
    todo = np.empty((DEEP, 5), dtype=np.int64)
    none = plain(count, 0)
    push(todo, none, none, count, none, leaves.shape[0], parent)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        start, stop, first, size = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        node = node_of(leaves, inner, first, size)
        axis = bound(points, order, start, stop, boxes, node)
        links[node, PARENT], links[node, FIRST] = todo[waiting, 4], earliest(names, order, start, stop)
        if size == 1:
            leaf = node >> 1
            links[node, SIZE] = stop - start
            fill_leaf(blocks, leaf, points, order, start, stop)
            for i in range(start, stop):
                positions[leaf, i - start] = names[order[i]]
        else:
            half = size // 2
            rank = start + (stop - start) * half // size
            for i in range(start, stop):
                keys[i] = points[axis, order[i]]
            select(keys, order, start, stop - 1, rank)
            splits[node >> 1] = keys[rank]
            links[node, SIZE], links[node, AXIS] = size, axis
            links[node, LEFT] = node_of(leaves, inner, first, half)
            links[node, RIGHT] = node_of(leaves, inner, first + half, size - half)
            push(todo, waiting, start, rank, first, half, node)
            push(todo, waiting + 1, rank, stop, first + half, size - half, node)
            waiting += 2
    return node_of(leaves, inner, none, leaves.shape[0])


@kernel
def plant_all(tree: Tree, leaves: Ints, inner: Ints, count: int) -> int:
    """Build a balanced tree over all points; return its root."""
    return plant(tree, leaves, inner, count, plain(count, -1))


@subkernel
def leaves_below(links: Ints, node: int) -> int:
    """Return the number of leaves at or below a node."""
    count: int = links[node, SIZE] if node & 1 else 1
    return count


@subkernel
def gather(links: Ints, top: int, leaves: Ints, inner: Ints) -> int:
    """List the leaves and the inner nodes at or below `top`, in order; return how many points they hold."""
    end = links[top, PARENT]
    node, came, count, points = top, end, 0, 0
    while node != end:
        parent = links[node, PARENT]
        if node & 1 == 0:
            leaves[count] = node >> 1
            count += 1
            points += links[node, SIZE]
            node, came = parent, node
        elif came == parent:
            node, came = links[node, LEFT], node
        elif came == links[node, LEFT]:
            inner[count - 1] = node >> 1
            node, came = links[node, RIGHT], node
        else:
            node, came = parent, node
    return points


@subkernel
def lopsided(links: Ints, node: int) -> bool:
    """Whether one side of an inner node has outgrown the other."""
    left, right = leaves_below(links, links[node, LEFT]), leaves_below(links, links[node, RIGHT])
    return max(left, right) > LOPSIDED * (left + right)


@subkernel
def widen(links: Ints, top: int) -> int:
    """Count a leaf more at and above `top`; return the highest node that is lopsided by it, or else `top`."""
    node = top if top & 1 else links[top, PARENT]
    while node >= 0:
        links[node, SIZE] += 1
        if lopsided(links, node):
            top = node
        node = links[node, PARENT]
    return top


@subkernel
def group_of(links: Ints, leaf: int, most: int) -> int:
    """Return the highest node above a leaf that has at most so many leaves."""
    top, above = leaf, links[leaf, PARENT]
    while above >= 0 and leaves_below(links, above) <= most:
        top, above = above, links[above, PARENT]
    return top


@subkernel
def make_room(tree: Tree, full: int) -> bool:
    """Plant anew around a leaf that is full; return False, with nothing changed, if that takes a leaf too many."""
    links, counters, wide = tree.links, tree.counters, tree.blocks.shape[1] >= WIDE
    top, new = group_of(links, full, WIDE_GROUP if wide else GROUP), counters[LEAVES]
    size = leaves_below(links, top)
    leaves, inner = np.empty(size, dtype=np.int64), np.empty(size - 1, dtype=np.int64)
    count = gather(links, top, leaves, inner)
    if count > (WIDE_FULL if wide else FULL) * size:
        if new == tree.blocks.shape[0]:
            return False
        top = widen(links, top)
        size = leaves_below(links, top) if top & 1 else 2
        leaves, inner = np.empty(size, dtype=np.int64), np.empty(size - 1, dtype=np.int64)
        count = gather(links, top, leaves, inner)
        leaves[size - 1], inner[size - 2] = new, new - 1
        links[2 * new, SIZE] = 0
        counters[LEAVES] = new + 1
    parent = links[top, PARENT]
    side = LEFT if parent >= 0 and links[parent, LEFT] == top else RIGHT
    root = plant(tree, leaves, inner, count, parent)
    if parent >= 0:
        links[parent, side] = root
    else:
        counters[ROOT] = root
    return True


@subkernel
def stretch(boxes: Floats, node: int, point: Floats) -> bool:
    """Make a node's box hold a point; return whether it did not before."""
    changed = False
    for j in range(point.shape[0]):
        if point[j] < boxes[node, j, 0]:
            boxes[node, j, 0] = point[j]
            changed = True
        if point[j] > boxes[node, j, 1]:
            boxes[node, j, 1] = point[j]
            changed = True
    return changed


@subkernel
def insert(tree: Tree, point: Floats) -> bool:
    """Insert a point at the next position; return False, with nothing changed, when the arrays are full."""
    blocks, positions, boxes, links, splits, counters = tree
    position = counters[POINTS]
    node = first_leaf(links, splits, counters[ROOT], point)
    room = True
    while room and links[node, SIZE] == LANES:
        room = make_room(tree, node)
        node = first_leaf(links, splits, counters[ROOT], point)
    if room:
        leaf, lane = node >> 1, links[node, SIZE]
        for j in range(point.shape[0]):
            blocks[leaf, j, lane] = point[j]
        positions[leaf, lane] = position
        links[node, SIZE], links[node, FIRST] = lane + 1, min(links[node, FIRST], position)
        counters[POINTS] = position + 1
        # Where a box holds the point already, those around it do as well.
        while node >= 0 and stretch(boxes, node, point):
            node = links[node, PARENT]
    return room


@kernel
def insert_rows(tree: Tree, points: Floats, start: int) -> int:
    """Insert the points from row `start` on; return the row that found no room, or the number of rows."""
    row = start
    while row < points.shape[0] and insert(tree, points[row]):
        row += 1
    return row
