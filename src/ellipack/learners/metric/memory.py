"""Bounded memory: when there is no room for another centre, the closest ones are merged."""

import numpy as np

from ellipack.learners.metric._kernels import Memory, View, closest_earlier, embed
from ellipack.learners.metric.state import MetricState
from ellipack.packing.index import Index
from ellipack.packing.tree.state import POINTS, Tree
from ellipack.validation import Floats, Ints

_FREED = 0.25  # of the centres are merged into others, so that the next time is far off


def repack(state: MetricState) -> None:
    """Merge the closest centres until a quarter of the room is free; from then on, what is as close is absorbed.

    Closeness is judged within the leaves of the first view's tree: most close pairs share a leaf, and a leaf is a
    few thousand products where all pairs would be billions.
    """
    machine, size = state.machine, state.n_centers
    into, radius = merges(machine.views[0].points, _FREED)
    kept = np.flatnonzero(into == np.arange(size))
    memory = _merged(machine.memory, into, kept)
    memory.radius[0] = max(radius, machine.memory.radius[0])
    views = tuple(_re_embedded(view, memory.rows[: len(kept)]) for view in machine.views)
    state.machine = machine._replace(memory=memory, views=views)


def merges(tree: Tree, part: float) -> tuple[Ints, float]:
    """Return, for each point, the point to merge it into (itself, if it stays), and the largest distance merged over.

    A point may be merged into the nearest earlier one of its leaf; the closest such pairs are taken, so many that
    this part of all points goes.
    """
    size = int(tree.counters[POINTS])
    nearest, apart = np.arange(size), np.full(size, np.inf)
    closest_earlier(tree, nearest, apart)
    going = np.argsort(apart, kind="stable")[: int(np.ceil(part * size))]
    going = going[np.isfinite(apart[going])]
    into = np.arange(size)
    into[going] = nearest[going]
    for point in np.sort(going):  # in order, so that what it goes into has been settled
        into[point] = into[into[point]]
    return into, float(np.sqrt(apart[going].max(initial=0.0)))


def _merged(memory: Memory, into: Ints, kept: Ints) -> Memory:
    """Return the memory with sums and counts added up and rows averaged by count, as much room as before."""
    size, room = len(into), len(memory.label_sums)
    slot = np.cumsum(into == np.arange(size)) - 1
    target = slot[into]
    counts = np.zeros(room, dtype=np.int64)
    sums, rows = np.zeros(room), np.zeros_like(memory.rows)
    np.add.at(counts, target, memory.label_counts[:size])
    np.add.at(sums, target, memory.label_sums[:size])
    np.add.at(rows, target, memory.rows[:size] * memory.label_counts[:size, None])
    rows[: len(kept)] /= counts[: len(kept), None]
    return Memory(rows, sums, counts, memory.radius.copy())


def _re_embedded(view: View, rows: Floats) -> View:
    coordinates = np.zeros_like(view.coordinates)
    embed(view, rows, coordinates[: len(rows)])
    return view._replace(coordinates=coordinates, points=Index.build(coordinates[: len(rows)]).tree)
