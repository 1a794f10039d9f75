"""Planting a tree over given points, and making room in a leaf that is full.

Leaves are parted by rank, not by value: equal points may end up on both sides of a split, so that no number of
duplicates makes a leaf that cannot be parted. A full leaf is planted anew together with its neighbours, up to
`GROUP` leaves, with one leaf more only if they are nearly full, which keeps the blocks well filled under sorted
insertion too. If one side of a node has outgrown the other, all below it is planted anew: the cost of that, spread
over the insertions that it took, is logarithmic.
"""

import numpy as np

from ellipack._kernels import kernel, shared, subkernel
from ellipack.lanes._kernels import MANY, Singles
from ellipack.packing._kernels import LANES, Names
from ellipack.packing.tree._kernels import DEEP, first_leaf
from ellipack.packing.tree.coded._kernels import encode, encode_all
from ellipack.packing.tree.state import AXIS, FIRST, LEAVES, LEFT, PARENT, POINTS, POURED, RIGHT, ROOT, SIZE, Tree
from ellipack.validation import Floats, Ints

GROUP = 8
"""The most leaves that are planted anew for want of room in one of them."""

FULL = 58
"""Points a leaf, in the mean over a group, above which the group gets another leaf."""

SAMPLE = 32
"""Points by which it is decided along which axis to part many."""

LOPSIDED = 0.7
"""The share of a node's leaves above which one side has outgrown the other."""


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
def extent(points: Floats, order: Ints, start: int, stop: int, step: int, axis: int) -> tuple[float, float]:
    """Return the least and the greatest coordinate along an axis of every so many of points[:, order[start:stop]]."""
    least = greatest = points[axis, order[start]]
    for i in range(start + step, stop, step):
        value = points[axis, order[i]]
        least = value if value < least else least
        greatest = value if value > greatest else greatest
    return least, greatest


@subkernel
def widest(points: Floats, order: Ints, start: int, stop: int) -> int:
    """Return the axis along which points[:, order[start:stop]] are widest, going by some of them if they are many."""
    axis, width = 0, -1.0
    for j in range(points.shape[0]):
        least, greatest = extent(points, order, start, stop, 1 + (stop - start) // SAMPLE, j)
        if greatest - least > width:
            axis, width = j, greatest - least
    return axis


@subkernel
def join(boxes: Floats, links: Names, node: int) -> None:
    """Fill in the box of an inner node and the earliest position below it, by its children's."""
    left, right = links[node, LEFT], links[node, RIGHT]
    for j in range(boxes.shape[1]):
        boxes[node, j, 0] = min(boxes[left, j, 0], boxes[right, j, 0])
        boxes[node, j, 1] = max(boxes[left, j, 1], boxes[right, j, 1])
    links[node, FIRST] = min(links[left, FIRST], links[right, FIRST])


@subkernel
def fill_leaf(points: Floats, leaf: int, lifted: Floats, order: Ints, start: int, stop: int) -> None:
    """Put lifted[:, order[start:stop]] into a leaf."""
    for j in range(lifted.shape[0]):
        for i in range(start, stop):
            points[leaf, i - start, j] = lifted[j, order[i]]


@subkernel
def fence(fences: Singles, boxes: Floats, node: int) -> None:
    """Put the box of a leaf where sweeps look for it."""
    group, place = divmod(node >> 1, MANY)
    for j in range(boxes.shape[1]):
        fences[group, 2 * j, place], fences[group, 2 * j + 1, place] = boxes[node, j, 0], boxes[node, j, 1]


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
def lift(points: Floats, positions: Names, links: Names, leaves: Ints, lifted: Floats, names: Ints) -> None:
    """Put the points in `leaves` into `lifted`, (coordinate, point), and their positions into `names`."""
    start = 0
    for i in range(leaves.shape[0]):
        leaf = leaves[i]
        held = links[2 * leaf, SIZE]
        for lane in range(held):
            names[start + lane] = positions[leaf, lane]
            for j in range(points.shape[2]):
                lifted[j, start + lane] = points[leaf, lane, j]
        start += held


@shared
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
    points, codes, rulers, fences, positions, boxes, links, splits, _ = tree
    names, order, keys = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)
    lifted = np.empty((points.shape[2], count))
    lift(points, positions, links, leaves, lifted, names)
    for i in range(count):
        order[i] = i
    todo, parted = np.empty((DEEP, 5), dtype=np.int64), np.empty(leaves.shape[0], dtype=np.int64)
    push(todo, 0, 0, count, 0, leaves.shape[0], parent)
    waiting, inner_nodes = 1, 0
    while waiting > 0:
        waiting -= 1
        start, stop, first, size = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2], todo[waiting, 3]
        node = node_of(leaves, inner, first, size)
        links[node, PARENT] = todo[waiting, 4]
        if size == 1:
            leaf = node >> 1
            for j in range(lifted.shape[0]):
                boxes[node, j, 0], boxes[node, j, 1] = extent(lifted, order, start, stop, 1, j)
            links[node, SIZE], links[node, FIRST] = stop - start, earliest(names, order, start, stop)
            fill_leaf(points, leaf, lifted, order, start, stop)
            encode_all(rulers, codes, leaf, stop - start, points, boxes)
            fence(fences, boxes, node)
            for i in range(start, stop):
                positions[leaf, i - start] = names[order[i]]
        else:
            axis, half = widest(lifted, order, start, stop), size // 2
            rank = start + (stop - start) * half // size
            for i in range(start, stop):
                keys[i] = lifted[axis, order[i]]
            select(keys, order, start, stop - 1, rank)
            splits[node >> 1] = keys[rank]
            links[node, SIZE], links[node, AXIS] = size, axis
            links[node, LEFT] = node_of(leaves, inner, first, half)
            links[node, RIGHT] = node_of(leaves, inner, first + half, size - half)
            push(todo, waiting, start, rank, first, half, node)
            push(todo, waiting + 1, rank, stop, first + half, size - half, node)
            waiting += 2
            parted[inner_nodes] = node
            inner_nodes += 1
    for i in range(inner_nodes - 1, -1, -1):  # children before their parents
        join(boxes, links, parted[i])
    return node_of(leaves, inner, 0, leaves.shape[0])


@subkernel
def plant_all(tree: Tree) -> None:
    """Build a balanced tree over all points that were poured into leaves."""
    leaves = np.empty(tree.counters[LEAVES], dtype=np.int64)
    for i in range(leaves.shape[0]):
        leaves[i] = i
    tree.counters[ROOT] = plant(tree, leaves, leaves, tree.counters[POINTS], -1)


@subkernel
def leaves_below(links: Names, node: int) -> int:
    """Return the number of leaves at or below a node."""
    count: int = links[node, SIZE] if node & 1 else 1
    return count


@subkernel
def gather(links: Names, top: int, leaves: Ints, inner: Ints) -> int:
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
def lopsided(links: Names, node: int) -> bool:
    """Whether one side of an inner node has outgrown the other."""
    left, right = leaves_below(links, links[node, LEFT]), leaves_below(links, links[node, RIGHT])
    return max(left, right) > LOPSIDED * (left + right)


@subkernel
def widen(links: Names, top: int) -> int:
    """Count a leaf more at and above `top`; return the highest node that is lopsided by it, or else `top`."""
    node = top if top & 1 else links[top, PARENT]
    while node >= 0:
        links[node, SIZE] += 1
        if lopsided(links, node):
            top = node
        node = links[node, PARENT]
    return top


@subkernel
def group_of(links: Names, leaf: int) -> int:
    """Return the highest node above a leaf that has at most `GROUP` leaves."""
    top, above = leaf, links[leaf, PARENT]
    while above >= 0 and leaves_below(links, above) <= GROUP:
        top, above = above, links[above, PARENT]
    return top


@shared
def plant_around(tree: Tree, full: int) -> bool:
    """Plant anew around a leaf that is full; return False, with nothing changed, if that takes a leaf too many."""
    links, counters = tree.links, tree.counters
    top, new = group_of(links, full), counters[LEAVES]
    size = leaves_below(links, top)
    leaves, inner = np.empty(size, dtype=np.int64), np.empty(size - 1, dtype=np.int64)
    count = gather(links, top, leaves, inner)
    if count > FULL * size:
        if new == tree.points.shape[0]:
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


@shared
def put(tree: Tree, point: Floats) -> bool:
    """Insert a point at the next position; return False, with nothing changed, when its leaf is full."""
    points, codes, rulers, fences, positions, boxes, links, splits, counters = tree
    position, node = counters[POINTS], first_leaf(links, splits, counters[ROOT], point)
    leaf, lane = node >> 1, links[node, SIZE]
    room = lane < LANES
    if room:
        for j in range(point.shape[0]):
            points[leaf, lane, j] = point[j]
        positions[leaf, lane] = position
        links[node, SIZE], links[node, FIRST] = lane + 1, min(links[node, FIRST], position)
        counters[POINTS] = position + 1
        # Where a box holds the point already, those around it do as well.
        changed = stretch(boxes, node, point)
        if changed:
            fence(fences, boxes, node)
        unruled = changed and rulers[leaf, 0] == 0.0  # a wider leaf may have rulers
        if lane == 0 or unruled or not encode(rulers, codes, leaf, lane, points):
            encode_all(rulers, codes, leaf, lane + 1, points, boxes)
        while changed and links[node, PARENT] >= 0:
            node = links[node, PARENT]
            changed = stretch(boxes, node, point)
    return bool(room)


@subkernel
def fits(links: Names, splits: Floats, root: int, point: Floats) -> bool:
    """Whether there is room in the leaf of a point."""
    return bool(links[first_leaf(links, splits, root, point), SIZE] < LANES)


@subkernel
def make_room(tree: Tree, point: Floats) -> bool:
    """Let there be room in the leaf of a point; return False, with nothing changed, when the arrays are full."""
    links, splits, counters = tree.links, tree.splits, tree.counters
    room = True
    while room and not fits(links, splits, counters[ROOT], point):
        room = plant_around(tree, first_leaf(links, splits, counters[ROOT], point))
    return room


@subkernel
def put_rows(tree: Tree, points: Floats, start: int) -> int:
    """Insert the points from row `start` on; return the row whose leaf was full, or the number of rows."""
    row = start
    while row < points.shape[0] and put(tree, points[row]):
        row += 1
    return row


@kernel
def insert_rows(tree: Tree, points: Floats, start: int, expected: int) -> int:
    """Insert the points from row `start` on; return the row that found no room, or the number of rows.

    The last ones are only `expected`, so many: for these there will be room, for each if it is the next. Points that
    were only poured into leaves are planted first.
    """
    if tree.counters[ROOT] == POURED:
        plant_all(tree)
    row, room, stop = start, True, points.shape[0] - expected
    while room and row < points.shape[0]:
        row = put_rows(tree, points[:stop], row)
        room = row == points.shape[0] or make_room(tree, points[row])
        row += room and row >= stop and row < points.shape[0]
    return row
