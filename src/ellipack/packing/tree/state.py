"""What a tree is made of: flat arrays, and nothing else."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack.lanes._kernels import MANY, Codes, Singles
from ellipack.packing._kernels import LANES, Names
from ellipack.validation import Floats, Ints

PARENT, FIRST, SIZE, LEFT, RIGHT, AXIS = range(6)
"""Columns of `Tree.links`. `SIZE` is the points in a leaf, and the leaves below an inner node."""

POINTS, LEAVES, ROOT = range(3)
"""Entries of `Tree.counters`."""

POURED = -1
"""In place of the root: points have been poured into the leaves, and nothing stands above these yet."""


class Tree(NamedTuple):
    """A bucket kd-tree. Leaf `i` is node `2 i`, inner node `i` is node `2 i + 1`: an odd node has children."""

    points: Floats
    """Coordinates of the points: (leaf, lane, coordinate)."""
    codes: Codes
    """On which step of a ruler each coordinate is: (leaf, coordinate, lane)."""
    rulers: Floats
    """The rulers of a leaf: (leaf, how many steps there are in 1, and then where each coordinate's begins)."""
    fences: Singles
    """Boxes of leaves, rounded, `MANY` at once: (leaf // MANY, row, leaf % MANY), least and greatest by turns."""
    positions: Names
    """Which point is in which lane: (leaf, lane)."""
    boxes: Floats
    """Least and greatest coordinates of the points below: (node, coordinate, least or greatest)."""
    links: Names
    """(node, column): parent or -1, earliest position below, size, children and the axis that parts them."""
    splits: Floats
    """Where an inner node parts its axis: left is at most that, right at least."""
    counters: Ints
    """Points, leaves, root."""


def empty(d: int, leaves: int = 1) -> Tree:
    """Return a tree without points, and with room for so many leaves."""
    tree = Tree(
        points=np.zeros((leaves, LANES, d)),
        codes=np.zeros((leaves, d, LANES), dtype=np.uint8),
        rulers=np.zeros((leaves, 1 + d)),
        fences=np.full((-(-leaves // MANY), 2 * d, MANY), np.inf, dtype=np.float32),
        positions=np.full((leaves, LANES), -1, dtype=np.int32),
        boxes=np.zeros((2 * leaves, d, 2)),
        links=np.full((2 * leaves, 6), -1, dtype=np.int32),
        splits=np.zeros(leaves),
        counters=np.array([0, 1, 0], dtype=np.int64),
    )
    tree.boxes[0] = np.inf, -np.inf
    tree.links[0, FIRST], tree.links[0, SIZE] = np.iinfo(np.int32).max, 0
    return tree


def grow(tree: Tree) -> Tree:
    """Return the same tree with room for an eighth more leaves; a sixteenth where all but coordinates weighs most."""
    leaves, d = tree.points.shape[0], tree.points.shape[2]
    larger = empty(d, leaves + 1 + leaves // (8 if d > 1 else 16))
    arrays: zip[tuple[NDArray[Any], NDArray[Any]]] = zip(tree, larger, strict=True)
    for old, new in arrays:
        new[: len(old)] = old
    return larger


def room(tree: Tree) -> int:
    """Return a number of points that the tree can't exceed as it is."""
    return int(tree.points.shape[0]) * LANES


def copy(tree: Tree) -> Tree:
    """Return the same tree in arrays of its own."""
    return Tree._make(array.copy() for array in tree)


def pour(tree: Tree, points: Floats, fill: int) -> None:
    """Put so many points into each leaf, in order and without a tree above them yet."""
    whole, d = len(points) // fill, points.shape[1]
    poured = whole * fill
    tree.points[:whole, :fill] = points[:poured].reshape(whole, fill, d)
    tree.positions[:whole, :fill] = np.arange(poured).reshape(whole, fill)
    tree.links[: 2 * whole : 2, SIZE] = fill
    left = len(points) - poured
    if left:
        tree.points[whole, :left] = points[poured:]
        tree.positions[whole, :left] = np.arange(poured, len(points))
        tree.links[2 * whole, SIZE] = left
