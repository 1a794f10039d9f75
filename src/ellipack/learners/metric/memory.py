"""Bounded memory: when there is no room for another centre, those go that can best be spared."""

import numpy as np
from numpy.typing import NDArray

from ellipack.learners.metric.forgetting._kernels import closest_later
from ellipack.learners.metric.machine import Memory
from ellipack.learners.metric.state import MetricState, re_embedded
from ellipack.packing.index import Index
from ellipack.validation import Floats

_FREED = 0.25  # of the centres go, so that the next time is far off
_LEADING = 8  # coordinates, by which the tree is built that pairs are looked for in: the others vary too little
_LEAST_UNIT = 1e-150  # to divide by


def repack(state: MetricState) -> None:
    """Let a quarter of the centres go.

    They are chosen in the first view's coordinates.
    """
    machine, size = state.machine, state.n_centers
    labels = machine.memory.label_sums[:size] / machine.memory.label_counts[:size]
    kept = np.flatnonzero(~spared(Index(machine.views[0].points).points(), labels, _FREED))
    memory = Memory._make(np.zeros_like(column) for column in machine.memory)
    for new, column in zip(memory, machine.memory, strict=True):
        new[: len(kept)] = column[kept]
    views = tuple(re_embedded(view, memory.rows[: len(kept)])[0] for view in machine.views)
    state.machine = machine._replace(memory=memory, views=views)


def spared(points: Floats, labels: Floats, part: float) -> NDArray[np.bool_]:
    """Return which points can be spared, this part of all.

    A point may go if a later one of its leaf in a tree can stand for it, the nearest: most close pairs share a leaf,
    and the pairs of a leaf are a few thousand where all pairs would be billions. Those go first that are close to it in
    place and in label, and old: streams drift, and what is old is missed least. Both count alike. The tree is built
    for this and not the one that grew with the points, whose shape depends on more than these.
    """
    size = len(points)
    nearest, apart = np.arange(size), np.full(size, np.inf)
    closest_later(Index.build(points[:, :_LEADING]).tree, points, nearest, apart)
    able = np.flatnonzero(np.isfinite(apart))
    loss = _relative(apart[able]) + _relative((labels[able] - labels[nearest[able]]) ** 2)
    rank = np.empty(len(able))
    rank[np.argsort(loss, kind="stable")] = np.arange(len(able))
    going = np.zeros(size, dtype=bool)
    going[able[np.argsort(rank + able, kind="stable")[: int(np.ceil(part * size))]]] = True
    return going


def _relative(values: Floats) -> Floats:
    """Return values in units of their median, so that distances and labels can be added."""
    middle = np.median(values) if len(values) else 0.0
    return np.asarray(values / middle) if middle > _LEAST_UNIT else values
