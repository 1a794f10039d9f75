"""From the rows of a table to features, learning on the way: `TableEncoder`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ellipack.choices import ON_ERROR_CHOICES
from ellipack.errors import CheckpointError, DomainError
from ellipack.tabular.category_column import CategoryColumn
from ellipack.tabular.columns import (
    Bools,
    Cells,
    Column,
    State,
    decode_column,
    get_entry,
    get_int,
    get_list,
    get_str,
    invalid_entry,
)
from ellipack.tabular.kind_inference import ColumnOptions, build_columns, build_target, require_column
from ellipack.tabular.number_column import NumberColumn, TargetColumn
from ellipack.tabular.table_batch import BadRow, TableBatch, to_clean_strings
from ellipack.tabular.time_column import TimeColumn
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class ParsedRows:
    """Rows that are ready to be encoded: read, and found to fit.

    Attributes
    ----------
    row_numbers : for each row, its place in the source, from 1.
    labels : their labels; none if they were read without.
    bad_rows : the rows that were skipped, and why.
    cells : the rows, column by column.
    """

    row_numbers: Ints
    labels: Floats
    bad_rows: tuple[BadRow, ...]
    cells: list[Cells]

    def __len__(self) -> int:
        return len(self.row_numbers)


class FeatureBlock(NamedTuple):
    """Features of consecutive rows, within which there are no new ones.

    Attributes
    ----------
    rows : which of the rows they are of.
    X : their features.
    scales : sizes of the features that are new with this part, for `StreamingRegressor.add_features`. Mostly empty.
    """

    rows: slice
    X: Floats
    new_scales: Floats


class ColumnSummary(NamedTuple):
    """What there is to say about a column in a report."""

    name: str
    kind: str
    note: str
    n_missing: int


_VERSION = 1
_COLUMN_TYPES: dict[str, Callable[[State], Column]] = {
    "number": NumberColumn.from_dict,
    "boolean": NumberColumn.from_dict,
    "time": TimeColumn.from_dict,
    "category": CategoryColumn.from_dict,
}


class TableEncoder:
    """Features for the rows of a table, as they come.

    A row's features depend on that row and those before it, on nothing else: not on how rows are cut into batches, nor
    on whether the run was interrupted and went on from `to_dict`. New features come up on the way (a text that was
    seen often enough, a first missing value), always as last columns, and are 0 in all rows before.

    ========= ====================================================================================================
    kind      features
    ========= ====================================================================================================
    number    the number; whole numbers past 2^53 are rounded to what a float holds. If missing, the mean so far, and
              from the first that is missing on, ``NAME is missing``
    boolean   1 or 0; if missing, as a number
    time      sine and cosine of the hour (if the first rows have a time of day), the weekday and the day of the year,
              and the days since the first row, all in UTC; if missing, ``NAME is missing``
    text      ``NAME=LEVEL`` for each text that came often enough, up to a number; ``NAME=other`` for all others. What
              is missing is a level as well
    ========= ====================================================================================================

    Attributes
    ----------
    target : the name of the column to predict.
    warnings : what to tell whoever chose the columns.

    Examples
    --------
    >>> from ellipack.tabular.arrow import pa
    >>> from ellipack.tabular import TableBatch
    >>> columns = {"sky": ["blue", "grey", "blue"], "wind": ["3", "?", "5"], "y": ["1", "2", "3"]}
    >>> table = TableBatch.from_table(pa.table(columns))
    >>> encoder = TableEncoder.from_head(table, "y", min_frequency=2)
    >>> rows = encoder.parse(table)
    >>> for block in encoder.partial_fit_transform(rows):
    ...     print(rows.labels[block.rows], block.X.tolist(), block.new_scales)
    [1.] [[1.0, 3.0]] []
    [2.] [[1.0, 3.0, 1.0]] [1.]
    [3.] [[0.0, 5.0, 0.0, 1.0]] [1.]
    >>> encoder.feature_names
    ['sky=other', 'wind', 'wind is missing', 'sky=blue']
    """

    def __init__(self, target: TargetColumn, columns: list[Column], warnings: list[str]) -> None:
        self._target, self._columns, self.warnings = target, columns, warnings
        self._names = _unique_names(columns)

    @classmethod
    def from_head(
        cls,
        head: TableBatch,
        target: str,
        *,
        take: Collection[str] | None = None,
        drop: Collection[str] = (),
        kinds: Mapping[str, str] | None = None,
        min_frequency: int = 5,
        max_categories: int = 32,
    ) -> "TableEncoder":
        """Return an encoder that has learned nothing yet but what kind each column is.

        Parameters
        ----------
        head : the first rows of the table; the first `INFERENCE_ROWS` of them tell.
        target : the column to predict.
        take : the columns to make features of; all others if left out.
        drop : columns to make none of.
        kinds : for some columns, their kinds, where they are not to be inferred.
        min_frequency : the how-manieth time a text comes it gets a feature of its own.
        max_categories : the features that a column of texts may have, that of all the other texts included.
        """
        choice = ColumnOptions(take, drop, kinds or {}, min_frequency, max_categories)
        columns, warnings = build_columns(head, target, choice)
        return cls(build_target(head, target, choice.kinds.get(target)), columns, warnings)

    @property
    def target(self) -> str:
        """The name of the column to predict."""
        return self._target.name

    @property
    def feature_names(self) -> list[str]:
        """The names of the features so far, each one once."""
        return list(self._names)

    def column_summaries(self) -> list[ColumnSummary]:
        """Return what there is to say about each column."""
        return [ColumnSummary(column.name, column.kind, column.note, column.n_missing) for column in self._columns]

    def unused_columns(self, names: Sequence[str]) -> list[str]:
        """Return which columns of a table are neither made features of nor predicted."""
        used = {self._target.name, *(column.name for column in self._columns)}
        return [name for name in names if name not in used]

    def parse(self, batch: TableBatch, on_error: str = "stop") -> ParsedRows:
        """Return the rows of a batch with their labels; changes nothing.

        Parameters
        ----------
        batch : rows with at least the columns that are used, in any order.
        on_error : ``stop`` raises StreamError at the first value that does not fit its column's kind, or is larger than
            `MAX_ABS_VALUE`, and at a label that is missing or larger than `MAX_ABS_LABEL`; ``skip`` leaves them out.
        """
        require_column(batch, self._target.name, "the target")
        column = decode_column(batch.table.column(self._target.name), batch.source, self._target.name)
        return self._parse(batch, on_error, column)

    def parse_unlabeled(self, batch: TableBatch, on_error: str = "stop") -> ParsedRows:
        """Return the rows of a batch that has no labels, or whose labels don't matter; changes nothing."""
        return self._parse(batch, on_error, None)

    def partial_fit_transform(self, rows: ParsedRows) -> list[FeatureBlock]:
        """Return the features of rows, in parts within which their number does not change, and learn from them."""
        outcomes = [
            column.partial_fit_transform(cells) for column, cells in zip(self._columns, rows.cells, strict=True)
        ]
        asked = sorted((row, i, level) for i, (_, events) in enumerate(outcomes) for row, level in events)
        width = len(self._names)
        for feature, (_, i, level) in enumerate(asked, start=width):
            self._columns[i].add_feature(level, feature)
        if asked:
            self._names = _unique_names(self._columns)
        X = np.zeros((len(rows), len(self._names)))
        for column, (encoded, _) in zip(self._columns, outcomes, strict=True):
            column.write_features(encoded, X)
        return _split_blocks(X, [row for row, _, _ in asked])

    def transform(self, rows: ParsedRows) -> Floats:
        """Return the features of rows by what was learned so far; changes nothing. A text that is new is another."""
        X = np.zeros((len(rows), len(self._names)))
        for column, cells in zip(self._columns, rows.cells, strict=True):
            column.write_features(column.transform(cells), X)
        return X

    def to_dict(self) -> State:
        """Return all that was learned, as JSON holds it without loss."""
        columns = [column.to_dict() for column in self._columns]
        own = {"version": _VERSION, "target": self._target.to_dict(), "warnings": list(self.warnings)}
        return own | {"columns": columns}

    @classmethod
    def from_dict(cls, data: Any) -> "TableEncoder":
        """Return the encoder that `to_dict` was taken of; raise CheckpointError if it was of none."""
        version = get_int(data, "version", 1)
        if version > _VERSION:
            raise CheckpointError(f"the encoder was saved by a later ellipack (version {version}, ours is {_VERSION})")
        columns = []
        for saved in get_list(data, "columns"):
            kind = get_str(saved, "kind")
            if kind not in _COLUMN_TYPES:
                raise invalid_entry("kind", f"one of {', '.join(_COLUMN_TYPES)}", kind)
            columns.append(_COLUMN_TYPES[kind](saved))
        target = TargetColumn.from_dict(get_entry(data, "target"))
        names = [target.name, *(column.name for column in columns)]
        places = sorted(place for column in columns for place in column.feature_names())
        if len(set(names)) != len(names) or not columns or places != list(range(len(places))):
            raise invalid_entry("columns", "columns of different names, with features that are numbered through", names)
        return cls(target, columns, [get_str({"warnings": each}, "warnings") for each in get_list(data, "warnings")])

    def _parse(self, batch: TableBatch, on_error: str, labels: Any) -> ParsedRows:
        if on_error not in ON_ERROR_CHOICES:
            raise DomainError(f"on_error must be one of {', '.join(ON_ERROR_CHOICES)}, got {on_error!r}")
        cells: list[Cells] = []
        faults: dict[int, BadRow] = {}
        for column in self._columns:
            require_column(batch, column.name, "which features are made of")
            found = decode_column(batch.table.column(column.name), batch.source, column.name)
            cells.append(column.parse(found))
            for row in np.flatnonzero(cells[-1].invalid).tolist():
                reason = column.explain_invalid(to_clean_strings(found.slice(row, 1))[0].as_py())
                faults.setdefault(row, BadRow(int(batch.row_numbers[row]), reason, column.name))
        values = np.empty(0)
        if labels is not None:
            parsed = self._target.parse(labels)
            values = parsed.values
            for row in np.flatnonzero(parsed.invalid).tolist():
                reason = self._target.explain_invalid(to_clean_strings(labels.slice(row, 1))[0].as_py())
                faults.setdefault(row, BadRow(int(batch.row_numbers[row]), reason, self._target.name))
        bad = tuple(faults[row] for row in sorted(faults))
        if not bad:
            return ParsedRows(batch.row_numbers, values, bad, cells)
        if on_error == "stop":
            raise bad[0].to_error(batch.source)
        kept: Bools = np.ones(len(batch), dtype=bool)
        kept[list(faults)] = False
        values = values if labels is None else values[kept]
        return ParsedRows(batch.row_numbers[kept], values, bad, [each.filter(kept) for each in cells])


def _split_blocks(X: Floats, growth: list[int]) -> list[FeatureBlock]:
    """Cut features into parts, given the row that each of the last columns came up in."""
    parts = []
    starts = sorted({0, *growth})
    width = X.shape[1] - len(growth)
    for start, stop in zip(starts, [*starts[1:], len(X)], strict=True):
        new = growth.count(start)
        width += new
        if stop > start:
            parts.append(FeatureBlock(slice(start, stop), np.ascontiguousarray(X[start:stop, :width]), np.ones(new)))
    return parts


def _unique_names(columns: list[Column]) -> list[str]:
    """Return the features' names in their order; one that was there before gets a number after it."""
    by_place = sorted((place, name) for column in columns for place, name in column.feature_names().items())
    names: dict[str, None] = {}
    for _, name in by_place:
        unique, number = name, 2
        while unique in names:
            unique, number = f"{name} ({number})", number + 1
        names[unique] = None
    return list(names)
