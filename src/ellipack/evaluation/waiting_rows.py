"""Rows that were predicted and wait for their labels, which come later with the same id: `WaitingRows`."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from ellipack.bounded_map import BoundedMap
from ellipack.errors import ModelFileError
from ellipack.evaluation.prediction_options import Texts
from ellipack.learners.intervals import NO_BOUNDS, RowPredictions
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.serialization import Archive
from ellipack.validation import MAX_ABS_VALUE, Floats

MAX_WAITING: Final = 100_000
"""Largest number of rows that wait. Beyond it, the oldest is forgotten."""

LEARN, PREDICT, LATE = "learn", "predict", "late"
"""What is done with a row: predict and learn it, only predict it, or learn the row to which its late label belongs."""


class WaitingRow(NamedTuple):
    """A row that waits for its label.

    Attributes
    ----------
    cells : list of str or None
        Cells of the feature columns as text.
    features : ndarray of float
        Its features when it was predicted.
    key : list of str or None
        Values of its key; empty without keys.
    predictions : RowPredictions
        Its prediction, with the intervals by which its label is judged.
    """

    cells: Texts
    features: Floats
    key: Texts
    predictions: RowPredictions


@dataclass(eq=False)
class WaitingRows:
    """Rows that wait for their labels, by id.

    Attributes
    ----------
    forgotten : int
        Number of rows that were forgotten because too many waited.

    Examples
    --------
    >>> waiting = WaitingRows()
    >>> predictions = RowPredictions(np.array([0.25]), np.zeros((1, 16)), np.zeros((1, 0)))
    >>> waiting.add("a", WaitingRow(["5"], np.array([5.0]), [], predictions))
    >>> len(waiting), waiting.pop("a").predictions.values, waiting.pop("a")
    (1, array([0.25]), None)
    """

    forgotten: int = 0
    _rows: BoundedMap[str, WaitingRow] = field(default_factory=lambda: BoundedMap(MAX_WAITING))

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def add(self, name: str, row: WaitingRow) -> None:
        """Add a row. It replaces an earlier one with the same id."""
        self.forgotten += self._rows.put(name, row)

    def pop(self, name: str) -> WaitingRow | None:
        """Remove and return the row with an id; None if there is none."""
        row = self._rows.get(name, None)
        self._rows.remove(name)
        return row

    def draft(self) -> "WaitingRows":
        """Return the same rows, which can be changed without effect on these."""
        return WaitingRows(self.forgotten, self._rows.draft())

    def commit(self) -> None:
        """Make the changes of a draft final. What it is a draft of must not be used any more."""
        self._rows.commit()

    def to_archive(self, width: int, n_past: int) -> Archive:
        """Return an archive of the rows, with features filled up by zeros."""
        ids = [name for name, _ in self._rows.items()]
        rows = [row for _, row in self._rows.items()]
        return Archive(
            {
                "forgotten": self.forgotten,
                "ids": ids,
                "cells": [row.cells for row in rows],
                "keys": [row.key for row in rows],
            },
            {
                "features": np.array([widen(row.features, width) for row in rows]).reshape(len(rows), width),
                "past": np.array([row.predictions.past for row in rows]).reshape(len(rows), n_past),
                "predictions": np.array([row.predictions.values for row in rows]).reshape(len(rows)),
                "bounds": np.array([row.predictions.bounds for row in rows]).reshape(len(rows), NO_BOUNDS.shape[1]),
            },
        )

    @classmethod
    def from_archive(cls, archive: Archive, n_cells: int, width: int, n_past: int) -> "WaitingRows":
        """Restore rows of `n_cells` cells, `width` features and `n_past` features of the past.

        Raises
        ------
        ModelFileError
            If they are invalid.
        """
        ids, cells = archive.strings("ids"), archive.fact("cells", list)
        count = len(ids)
        if len(set(ids)) != count or count > MAX_WAITING:
            raise ModelFileError(f"{archive.prefix}ids must be at most {MAX_WAITING:,} distinct strings")
        if len(cells) != count or not all(_is_row_of_texts(row, n_cells) for row in cells):
            raise ModelFileError(f"{archive.prefix}cells must be {n_cells} strings or nulls for each of {count} rows")
        features = archive.floats_between(-MAX_ABS_VALUE, MAX_ABS_VALUE, "features", count, width)
        past = archive.floats_between(-MAX_PAST_VALUE, MAX_PAST_VALUE, "past", count, n_past)
        keys = archive.fact("keys", list)
        if len(keys) != count or not all(isinstance(key, list) and _is_row_of_texts(key, len(key)) for key in keys):
            raise ModelFileError(f"{archive.prefix}keys must be a list of strings or nulls for each of {count} rows")
        values, bounds = archive.floats("predictions", count), archive.any_floats("bounds", count, NO_BOUNDS.shape[1])
        if np.isnan(bounds).any():
            raise ModelFileError(f"{archive.prefix}bounds must not be NaN")
        rows = cls(archive.integer("forgotten", 0))
        for i, name in enumerate(ids):
            own = RowPredictions(values[i : i + 1], bounds[i : i + 1], past[i : i + 1])
            rows.add(name, WaitingRow(cells[i], features[i], keys[i], own))
        rows.commit()
        return rows


def widen(features: Floats, width: int) -> Floats:
    """Return features with zeros for those that were added since."""
    return np.concatenate([features, np.zeros(width - len(features))])


def split_steps(labels: Floats, ids: Texts | None, waiting: WaitingRows) -> list[tuple[str, slice]]:
    """Return what is to be done with the rows of a batch, in order: `LEARN`, `PREDICT` or `LATE`, and for which rows.

    Parameters
    ----------
    labels : ndarray of float
        Labels, NaN where they are missing.
    ids : list of str or None, or None
        Ids of the rows. None without an id column.
    waiting : WaitingRows
        Rows that wait before this batch.

    Returns
    -------
    list of (str, slice)
        Late labels come one by one.

    Examples
    --------
    >>> steps = split_steps(np.array([1.0, np.nan, np.nan, 2.0, 3.0]), ["a", "b", None, "b", "b"], WaitingRows())
    >>> [(step, where.start, where.stop) for step, where in steps]
    [('learn', 0, 1), ('predict', 1, 3), ('late', 3, 4), ('learn', 4, 5)]
    """
    has_label = (~np.isnan(labels)).tolist()
    if ids is None:
        steps = [LEARN if known else PREDICT for known in has_label]
    else:
        steps, is_waiting = [], dict[str, bool]()
        for name, known in zip(ids, has_label, strict=True):
            late = name is not None and known and is_waiting.get(name, name in waiting)
            steps.append(LATE if late else LEARN if known else PREDICT)
            if name is not None:
                is_waiting[name] = not known
    starts = [i for i, step in enumerate(steps) if i == 0 or step == LATE or step != steps[i - 1]]
    return [(steps[start], slice(start, stop)) for start, stop in pairwise([*starts, len(steps)])]


def _is_row_of_texts(row: object, count: int) -> bool:
    return isinstance(row, list) and len(row) == count and all(each is None or isinstance(each, str) for each in row)
