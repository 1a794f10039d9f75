"""Options of the predictions of a run: their bounds, the columns that are passed through, and the ids of rows."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ellipack.errors import InputError, ModelFileError
from ellipack.learners.intervals import Intervals, check_coverage
from ellipack.serialization import Archive
from ellipack.tabular import ParsedRows, TableBatch
from ellipack.tabular.columns import decode_column
from ellipack.tabular.table_batch import to_strings
from ellipack.validation import MAX_ABS_LABEL, Floats

Texts = list[str | None]
"""The cells of a column as text, None where they are missing."""

RESERVED_NAMES: Final = ("row", "prediction", "label")
"""Columns of a prediction file that no column of the table can replace."""


@dataclass(frozen=True)
class PredictionOptions:
    """How predictions are bounded, and which columns identify them.

    Attributes
    ----------
    minimum, maximum : float or None, default None
        Bounds of the predictions. None is no bound.
    keep : tuple of str, default ()
        Columns of the table that are passed through to the predictions.
    id_column : str or None, default None
        Column whose values identify rows, so that a label can come after its row. It is passed through, too.
    coverages : tuple of float, default ()
        Coverages of the prediction intervals.

    Examples
    --------
    >>> PredictionOptions(minimum=0.0).bound(np.array([-1.0, 2.0])).tolist()
    [0.0, 2.0]
    """

    minimum: float | None = None
    maximum: float | None = None
    keep: tuple[str, ...] = ()
    id_column: str | None = None
    coverages: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.coverages:
            check_coverage(self.coverages)
        if len(set(self.coverages)) != len(self.coverages):
            raise InputError(f"coverages of intervals must be distinct, got {', '.join(map(str, self.coverages))}")
        for name, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if bound is not None and not (math.isfinite(bound) and abs(bound) <= MAX_ABS_LABEL):
                raise InputError(f"the {name} must be a number of at most {MAX_ABS_LABEL:g} in size, got {bound}")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise InputError(f"the minimum must be at most the maximum, {self.maximum:g}, got {self.minimum:g}")
        names = (*RESERVED_NAMES, *self.interval_columns)
        reserved = next((name for name in self.kept_columns if name in names), None)
        if reserved is not None:
            raise InputError(
                f"a column that is kept must not be called {', '.join(names)}, which predictions have "
                f"already, got {reserved!r}: rename it"
            )
        if len(set(self.keep)) != len(self.keep):
            raise InputError(f"columns that are kept must be distinct, got {', '.join(self.keep)}")

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """Columns that are passed through: the id first."""
        ids = () if self.id_column is None or self.id_column in self.keep else (self.id_column,)
        return (*ids, *self.keep)

    @property
    def interval_columns(self) -> tuple[str, ...]:
        """Names of the columns of prediction intervals, such as ``lower_90`` and ``upper_90``."""
        return tuple(f"{end}_{100 * coverage:g}" for coverage in self.coverages for end in ("lower", "upper"))

    def interval_ends(self, intervals: Intervals) -> Floats:
        """Return the ends of intervals within the bounds, in the order of `interval_columns`."""
        lower, upper = intervals
        return self.bound(np.stack([lower, upper], axis=2).reshape(len(lower), -1))

    def bound(self, predictions: Floats) -> Floats:
        """Return predictions within the bounds."""
        if self.minimum is None and self.maximum is None:
            return predictions
        return np.clip(predictions, self.minimum, self.maximum)

    def kept_cells(self, batch: TableBatch, rows: ParsedRows) -> list[Texts]:
        """Return the cells of parsed rows in each column that is passed through."""
        return [column_cells(batch, rows, name) for name in self.kept_columns]

    def to_archive(self) -> Archive:
        """Return the options as an archive."""
        ends = {"minimum": self.minimum, "maximum": self.maximum}
        bounds = {name: None if end is None else float(end) for name, end in ends.items()}  # as they are restored
        facts = {"keep": list(self.keep), "id_column": self.id_column, "coverages": list(self.coverages)}
        return Archive({**bounds, **facts})

    @classmethod
    def from_archive(cls, archive: Archive) -> "PredictionOptions":
        """Restore options; raise ModelFileError if they are invalid."""
        numbers = [None if archive.facts.get(name) is None else archive.number(name) for name in ("minimum", "maximum")]
        id_column = None if archive.facts.get("id_column") is None else archive.fact("id_column", str)
        coverages = archive.fact("coverages", list)
        if not all(type(each) in (int, float) for each in coverages):
            raise ModelFileError(f"{archive.prefix}coverages must be numbers, got {coverages}")
        try:
            return cls(numbers[0], numbers[1], tuple(archive.strings("keep")), id_column, tuple(coverages))
        except InputError as error:
            raise ModelFileError(f"{archive.prefix}{error}") from error


def column_cells(batch: TableBatch, rows: ParsedRows, name: str) -> Texts:
    """Return the cells of parsed rows in a column as text, as they are in the table."""
    column = to_strings(decode_column(batch.table.column(name), batch.source, name))
    kept = batch.positions_of(rows.row_numbers)
    cells: Texts = column.take(kept).to_pylist() if len(kept) < len(column) else column.to_pylist()
    return cells


def check_columns(options: PredictionOptions, columns: list[str], source: str) -> None:
    """Raise InputError unless a table has all columns that the options name."""
    for name in options.kept_columns:
        if name not in columns:
            role = "the id column" if name == options.id_column else "a column that is kept"
            raise InputError(f"{role} must be one of the columns of {source}: {', '.join(columns)}, got {name!r}")
