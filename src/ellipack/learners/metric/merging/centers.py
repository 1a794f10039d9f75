"""Merging of centers: what rows changed about the centers before them, and the centers that they added."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack._core import CenterMemory, MetricParts
from ellipack.learners.metric.eviction import IndexedCenters, evict_to_bound
from ellipack.validation import Floats, Ints


@dataclass(frozen=True, eq=False)
class CenterTable:
    """Centers with their coordinates; all arrays have one entry per center. See `CenterMemory`."""

    rows: Floats
    label_sums: Floats
    label_counts: Ints
    round_sums: Floats
    error_sums: Floats
    coordinates: tuple[Floats, ...]  # in each view

    @classmethod
    def of(cls, parts: MetricParts, places: Ints) -> "CenterTable":
        """Return some of the centers of a learner."""
        own = parts.centers.take(places)
        sums = own.label_sums, own.label_counts, own.round_sums, own.error_sums
        return cls(own.rows, *sums, tuple(parts.index.take(places)))

    def __len__(self) -> int:
        return len(self.label_sums)

    def arrays(self) -> list[NDArray[Any]]:
        """Return all arrays."""
        sums = [self.label_sums, self.label_counts, self.round_sums, self.error_sums]
        return [self.rows, *sums, *self.coordinates]

    def take(self, which: Ints | NDArray[np.bool_] | slice) -> "CenterTable":
        """Return some of the centers."""
        return _table([each[which] for each in self.arrays()])

    def copy(self) -> "CenterTable":
        """Return a copy with arrays of its own."""
        return _table([each.copy() for each in self.arrays()])

    def put(self, places: Ints, centers: "CenterTable") -> None:
        """Replace some of the centers, in place."""
        for own, new in zip(self.arrays(), centers.arrays(), strict=True):
            own[places] = new

    def memory(self) -> CenterMemory:
        """Return the centers without their coordinates."""
        return CenterMemory(self.rows, self.label_sums, self.label_counts, self.round_sums, self.error_sums)


def _table(arrays: Sequence[NDArray[Any]]) -> CenterTable:
    rows, label_sums, label_counts, round_sums, error_sums, *coordinates = arrays
    return CenterTable(rows, label_sums, label_counts, round_sums, error_sums, tuple(coordinates))


def concatenate(tables: Sequence[CenterTable]) -> CenterTable:
    """Return the centers of all tables, in their order."""
    return _table([np.concatenate(each) for each in zip(*(table.arrays() for table in tables), strict=True)])


class CenterChanges(NamedTuple):
    """Differences from the centers of a base.

    Attributes
    ----------
    changed : array of int, shape (n_changed,)
        Places of the centers of the base that rows with the same coordinates changed, in ascending order.
    changes : CenterTable
        These centers afterwards.
    new : CenterTable
        Centers that were added, in the order of the rows.
    """

    changed: Ints
    changes: CenterTable
    new: CenterTable

    @classmethod
    def between(cls, base: MetricParts, after: MetricParts) -> "CenterChanges":
        """Return the differences after rows that evicted nothing. Each row of a center is a label of it."""
        own = len(base.centers)
        changed = np.flatnonzero(after.centers.label_counts[:own] != base.centers.label_counts)
        new = np.arange(own, len(after.centers))
        return cls(changed, CenterTable.of(after, changed), CenterTable.of(after, new))

    def label_counts(self, base: MetricParts) -> Ints:
        """Return the number of labels of each center, with the changes."""
        counts = base.centers.label_counts
        counts[self.changed] = self.changes.label_counts
        return np.append(counts, self.new.label_counts)


def find_learned_centers(base: MetricParts, start: CenterChanges, after: MetricParts) -> CenterChanges:
    """Return what rows learned about centers.

    Parameters
    ----------
    base : MetricParts
        Parts of the learner before the step.
    start : CenterChanges
        How the centers from which the rows start differ from those of the base. New ones are borrowed: they belong to
        other rows.
    after : MetricParts
        Parts of the learner after the rows.

    Returns
    -------
    learned : CenterChanges
        A borrowed center that rows changed becomes a new center, of these rows alone.
    """
    own, counts = len(base.centers), start.label_counts(base)
    changed = np.flatnonzero(after.centers.label_counts[: len(counts)] != counts)
    borrowed, places = changed[changed >= own], changed[changed < own]
    grown = _difference(CenterTable.of(after, borrowed), start.new.take(borrowed - own))
    new = CenterTable.of(after, np.arange(len(counts), len(after.centers)))
    changes = _without_start(base, start, CenterTable.of(after, places), places)
    return CenterChanges(places, changes, concatenate([grown, new]))


def _without_start(base: MetricParts, start: CenterChanges, after: CenterTable, places: Ints) -> CenterTable:
    """Return centers of the base, without the rows that were known at the start."""
    known = np.flatnonzero(np.isin(places, start.changed))
    if len(known):
        before = start.changes.take(np.searchsorted(start.changed, places[known]))
        both = _sum(CenterTable.of(base, places[known]), _difference(after.take(known), before))
        after.put(known, replace(both, coordinates=after.take(known).coordinates))
    return after


def _difference(after: CenterTable, before: CenterTable) -> CenterTable:
    """Return centers of the rows that were added to centers."""
    counts = after.label_counts - before.label_counts
    rows = before.rows + (after.rows - before.rows) * (after.label_counts / counts)[:, None]
    return CenterTable(
        rows,
        after.label_sums - before.label_sums,
        counts,
        after.round_sums - before.round_sums,
        np.maximum(after.error_sums - before.error_sums, 0.0),
        after.coordinates,
    )


def _sum(centers: CenterTable, others: CenterTable) -> CenterTable:
    """Return centers with the rows of others, too."""
    counts = centers.label_counts + others.label_counts
    rows = centers.rows + (others.rows - centers.rows) * (others.label_counts / counts)[:, None]
    return CenterTable(
        rows,
        centers.label_sums + others.label_sums,
        counts,
        centers.round_sums + others.round_sums,
        centers.error_sums + others.error_sums,
        centers.coordinates,
    )


def merge_centers(base: MetricParts, learned: Sequence[CenterChanges]) -> CenterChanges:
    """Return what all rows learned."""
    if len(learned) == 1:
        return learned[0]
    places, times = np.unique(np.concatenate([each.changed for each in learned]), return_counts=True)
    changes = CenterTable.of(base, places)
    before = changes.take(times > 1)
    for each in learned:
        changes.put(np.searchsorted(places, each.changed), each.changes)
    _add_changes(changes, before, learned, np.flatnonzero(times > 1), places)
    return CenterChanges(places, changes, concatenate([each.new for each in learned]))


def _add_changes(
    changes: CenterTable, start: CenterTable, learned: Sequence[CenterChanges], several: Ints, places: Ints
) -> None:
    """Add up the changes of the centers that several runs of rows changed."""
    total = start.copy()
    moves = np.zeros_like(start.rows)
    for each in learned:
        found = np.isin(places[several], each.changed)
        after = each.changes.take(np.searchsorted(each.changed, places[several][found]))
        for sums, now, old in zip(total.arrays()[1:5], after.arrays()[1:5], start.arrays()[1:5], strict=True):
            sums[found] += now - old[found]
        moves[found] += (after.rows - start.rows[found]) * after.label_counts[:, None]
    total.rows[:] = start.rows + moves / total.label_counts[:, None]
    changes.put(several, replace(total, coordinates=changes.take(several).coordinates))


def merge_equal_centers(centers: CenterTable) -> CenterTable:
    """Return centers of which no two have the same coordinates in the first view.

    Parameters
    ----------
    centers : CenterTable
        Centers, in the order of their rows.

    Returns
    -------
    merged : CenterTable
        A center with the coordinates of an earlier one is merged with it, as a row would be.
    """
    points = np.ascontiguousarray(centers.coordinates[0]) + 0.0  # -0.0 becomes 0.0
    _, place, times = np.unique(points[:, 0], return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(times[place] > 1)
    _, earliest, group = np.unique(points[suspects], axis=0, return_index=True, return_inverse=True)
    if len(earliest) == len(suspects):
        return centers
    target = suspects[earliest][group.reshape(-1)]
    gone = np.zeros(len(centers), dtype=bool)
    gone[suspects] = target != suspects
    result = centers.copy()
    result.rows[suspects] *= centers.label_counts[suspects][:, None]
    for sums in result.arrays()[:5]:
        np.add.at(sums, target[gone[suspects]], sums[gone])
    result.rows[suspects] /= result.label_counts[suspects][:, None]
    return result.take(~gone)


def apply_learned_centers(base: MetricParts, learned: CenterChanges, max_centers: int) -> IndexedCenters:
    """Return the centers after the rows. If there are `max_centers` or more, some are evicted."""
    changed, changes, new = learned
    centers = base.centers.replace(changed, changes.memory()).append(new.memory())
    if len(centers) < max_centers:
        return centers, base.index.append(list(new.coordinates))
    first = np.concatenate([base.index.coordinates[0], new.coordinates[0]])
    return evict_to_bound(centers, first, base.views, max_centers)
