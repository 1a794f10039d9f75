"""Bounded memory: when there is no room for another centre, those that can best be spared are merged."""

import numpy as np

from ellipack.learners.metric._kernels import Memory, closest_earlier
from ellipack.learners.metric.state import MetricState, re_embedded
from ellipack.packing.index import Index
from ellipack.validation import Floats, Ints

_FREED = 0.25  # of the centres are merged into others, so that the next time is far off
_LEADING = 8  # coordinates, by which the tree is built that pairs are looked for in: the others vary too little
_AGE = 0.5  # how much being old counts beside being redundant: streams drift, and what is old is missed least
_LEAST_UNIT = 1e-150  # to divide by


def repack(state: MetricState) -> None:
    """Merge centres until a quarter of the room is free.

    Pairs are looked for in the first view's coordinates.
    """
    machine, size = state.machine, state.n_centers
    labels = machine.memory.label_sums[:size] / machine.memory.label_counts[:size]
    into = merges(Index(machine.views[0].points).points(), labels, _FREED)
    kept = int(np.sum(into == np.arange(size)))
    memory = _merged(machine.memory, into, kept)
    views = tuple(re_embedded(view, memory.rows[:kept])[0] for view in machine.views)
    state.machine = machine._replace(memory=memory, views=views)


def merges(points: Floats, labels: Floats, part: float) -> Ints:
    """Return, for each point, the point to merge it into: itself, if it stays.

    A point may be merged into the nearest earlier one of its leaf in a tree: most close pairs share a leaf, and the
    pairs of a leaf are a few thousand where all pairs would be billions. Those go that are close to it in place and
    in label, and old, until this part of all points is gone. The tree is built for this and not the one that grew with
    the points, whose shape depends on more than these.
    """
    size = len(points)
    nearest, apart = np.arange(size), np.full(size, np.inf)
    closest_earlier(Index.build(points[:, :_LEADING]).tree, points, nearest, apart)
    able = np.flatnonzero(np.isfinite(apart))
    loss = _relative(apart[able]) + _relative((labels[able] - labels[nearest[able]]) ** 2)
    rank = np.empty(len(able))
    rank[np.argsort(loss, kind="stable")] = np.arange(len(able))
    going = able[np.argsort(rank + _AGE * able, kind="stable")[: int(np.ceil(part * size))]]
    into = np.arange(size)
    into[going] = nearest[going]
    while not np.array_equal(into[into], into):  # where what a point goes into goes itself, that twice as far each time
        into = into[into]
    return into


def _relative(values: Floats) -> Floats:
    """Return values in units of their median, so that distances and labels can be added."""
    middle = np.median(values) if len(values) else 0.0
    return np.asarray(values / middle) if middle > _LEAST_UNIT else values


def _merged(memory: Memory, into: Ints, kept: int) -> Memory:
    """Return the memory with sums and counts added up and rows averaged by count, as much room as before."""
    size, room = len(into), len(memory.label_sums)
    slot = np.cumsum(into == np.arange(size)) - 1
    target = slot[into]
    counts = np.zeros(room, dtype=np.int64)
    sums, rounds, rows = np.zeros(room), np.zeros(room), np.zeros_like(memory.rows)
    np.add.at(counts, target, memory.label_counts[:size])
    np.add.at(sums, target, memory.label_sums[:size])
    np.add.at(rounds, target, memory.round_sums[:size])
    np.add.at(rows, target, memory.rows[:size] * memory.label_counts[:size, None])
    rows[:kept] /= counts[:kept, None]
    return Memory(rows, sums, counts, rounds)
