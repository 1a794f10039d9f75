"""Merging of centers: what rows changed about the centers before them, and the centers that they added."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack._core import CenterMemory, MetricParts
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
    def of(cls, parts: MetricParts) -> "CenterTable":
        """Return the centers of a learner."""
        own = parts.centers
        sums = own.label_sums, own.label_counts, own.round_sums, own.error_sums
        return cls(own.rows, *sums, tuple(parts.coordinates))

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


class LearnedCenters(NamedTuple):
    """What rows changed about the centers of a base.

    Attributes
    ----------
    kept : array of bool, shape (n_base,)
        Centers of the base that were not evicted.
    changed : array of int, shape (n_changed,)
        Places of the centers of the base that rows with the same coordinates changed, in ascending order.
    changes : CenterTable
        These centers afterwards.
    new : CenterTable
        Centers that rows added, in the order of the rows.
    """

    kept: NDArray[np.bool_]
    changed: Ints
    changes: CenterTable
    new: CenterTable


def find_learned_centers(start: CenterTable, after: CenterTable, origins: Ints, own: int) -> LearnedCenters:
    """Return what changed from a base.

    Parameters
    ----------
    start : CenterTable
        Centers before the rows: those of the base, then borrowed ones, which belong to other rows.
    after : CenterTable
        Centers after the rows.
    origins : array of int, shape (n_after,)
        Place in `start` of each center, in ascending order; -1 for new centers, which come last.
    own : int
        Number of centers of the base.

    Returns
    -------
    learned : LearnedCenters
        A borrowed center that rows changed becomes a new center, of these rows alone.
    """
    old = int(np.count_nonzero((origins >= 0) & (origins < own)))
    known = int(np.count_nonzero(origins >= 0))
    kept = np.zeros(own, dtype=bool)
    kept[origins[:old]] = True
    differs = np.zeros(known, dtype=bool)
    for before, now in zip(start.arrays(), after.arrays(), strict=True):
        unequal = now[:known] != before[origins[:known]]
        differs |= unequal if unequal.ndim == 1 else unequal.any(axis=1)
    changed, grown = np.flatnonzero(differs[:old]), old + np.flatnonzero(differs[old:])
    grown = grown[after.label_counts[grown] > start.label_counts[origins[grown]]]
    new = [_difference(after.take(grown), start.take(origins[grown])), after.take(slice(known, None))]
    return LearnedCenters(kept, origins[changed], after.take(changed), concatenate(new))


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


def merge_centers(base: CenterTable, learned: Sequence[LearnedCenters]) -> LearnedCenters:
    """Return what all rows changed. A center of the base that was evicted once is evicted."""
    if len(learned) == 1:
        return learned[0]
    kept = np.logical_and.reduce([each.kept for each in learned])
    places, times = np.unique(np.concatenate([each.changed for each in learned]), return_counts=True)
    before, changes = base.take(places), base.take(places)
    for each in learned:
        changes.put(np.searchsorted(places, each.changed), each.changes)
    _add_changes(changes, before, learned, np.flatnonzero(times > 1), places)
    return LearnedCenters(kept, places, changes, concatenate([each.new for each in learned]))


def _add_changes(
    changes: CenterTable, before: CenterTable, learned: Sequence[LearnedCenters], several: Ints, places: Ints
) -> None:
    """Add up the changes of the centers that several runs of rows changed."""
    start, total = before.take(several), before.take(several)
    moves = np.zeros_like(start.rows)
    for each in learned:
        found = np.isin(places[several], each.changed)
        after = each.changes.take(np.searchsorted(each.changed, places[several][found]))
        for sums, now, old in zip(total.arrays()[1:5], after.arrays()[1:5], start.arrays()[1:5], strict=True):
            sums[found] += now - old[found]
        moves[found] += (after.rows - start.rows[found]) * after.label_counts[:, None]
    total.rows[:] = start.rows + moves / total.label_counts[:, None]
    changes.put(several, replace(total, coordinates=changes.take(several).coordinates))


def apply_learned_centers(base: CenterTable, learned: LearnedCenters) -> CenterTable:
    """Return the centers after the rows."""
    old = base.copy()
    old.put(learned.changed, learned.changes)
    return concatenate([old.take(learned.kept), learned.new])


def merge_equal_centers(centers: CenterTable, first: int) -> CenterTable:
    """Return centers of which no two from the place `first` on have the same coordinates in the first view.

    Parameters
    ----------
    centers : CenterTable
        Centers, in the order of their rows.
    first : int
        Number of centers that are returned as they are.

    Returns
    -------
    merged : CenterTable
        A center with the coordinates of an earlier one is merged with it, as a row would be.
    """
    points = np.ascontiguousarray(centers.coordinates[0][first:]) + 0.0  # -0.0 becomes 0.0
    _, place, times = np.unique(points[:, 0], return_inverse=True, return_counts=True)
    suspects = np.flatnonzero(times[place] > 1)
    _, earliest, group = np.unique(points[suspects], axis=0, return_index=True, return_inverse=True)
    if len(earliest) == len(suspects):
        return centers
    suspects += first
    target = suspects[earliest][group.reshape(-1)]
    gone = np.zeros(len(centers), dtype=bool)
    gone[suspects] = target != suspects
    result = centers.copy()
    result.rows[suspects] *= centers.label_counts[suspects][:, None]
    for sums in result.arrays()[:5]:
        np.add.at(sums, target[gone[suspects]], sums[gone])
    result.rows[suspects] /= result.label_counts[suspects][:, None]
    return result.take(~gone)
