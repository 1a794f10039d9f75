"""Encode the rows of a table as features, with statistics that are updated row by row: `TableEncoder`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ellipack.choices import ON_ERROR_CHOICES
from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.metric.effects import EffectGrid
from ellipack.tabular.arrow import pa
from ellipack.tabular.category_column import CategoryColumn, LevelOptions
from ellipack.tabular.cell_options import CellOptions
from ellipack.tabular.column_building import BuiltColumns, ColumnOptions, LeftOut, build_columns, require_column
from ellipack.tabular.column_statement import TakenFor, describe_columns
from ellipack.tabular.columns import (
    Bools,
    Cells,
    Column,
    JsonDict,
    NewFeature,
    decode_column,
    get_entry,
    get_int,
    get_list,
    get_str,
    get_strs,
    invalid_entry,
)
from ellipack.tabular.late_columns import decide_column
from ellipack.tabular.number_column import NumberColumn, TargetColumn
from ellipack.tabular.table_batch import BadRow, TableBatch, replace_missing, to_clean_strings
from ellipack.tabular.time_column import TimeColumn
from ellipack.tabular.time_format import TimeCells
from ellipack.tabular.undecided_column import UndecidedColumn
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class ParsedRows:
    """Parsed and valid rows, ready to be encoded.

    Attributes
    ----------
    row_numbers : ndarray of int
        Number of each row in the source, starting at 1.
    labels : ndarray of float
        Labels, NaN where a label is missing; empty if the rows were parsed without labels.
    bad_rows : tuple of BadRow
        Rows that were skipped because a value is invalid.
    cells : list of Cells
        Parsed cells of each column.
    """

    row_numbers: Ints
    labels: Floats
    bad_rows: tuple[BadRow, ...]
    cells: list[Cells]

    def __len__(self) -> int:
        return len(self.row_numbers)

    def filter(self, rows: Bools) -> "ParsedRows":
        """Return the rows where the mask is true, without the bad rows."""
        labels = self.labels[rows] if len(self.labels) else self.labels
        return ParsedRows(self.row_numbers[rows], labels, (), [each.filter(rows) for each in self.cells])


class FeatureBlock(NamedTuple):
    """Features of consecutive rows with the same number of features.

    Attributes
    ----------
    rows : slice
        Which of the parsed rows belong to the block.
    X : ndarray of float, shape (n_rows, n_features)
        Features.
    new_scales : ndarray of float
        Scales of the features that are new in this block, for `StreamingRegressor.add_features`. Usually empty.
    """

    rows: slice
    X: Floats
    new_scales: Floats


class ColumnSummary(NamedTuple):
    """Summary of a column for the report: name, kind, note and number of missing values."""

    name: str
    kind: str
    note: str
    n_missing: int


_VERSION = 1
_DAY = 86_400 * 10**6  # in microseconds
_DEFAULT_LEVELS, _DEFAULT_CELLS = LevelOptions(), CellOptions()
_COLUMN_TYPES: dict[str, Callable[[JsonDict], Column]] = {
    "number": NumberColumn.from_dict,
    "boolean": NumberColumn.from_dict,
    "time": TimeColumn.from_dict,
    "category": CategoryColumn.from_dict,
    "undecided": UndecidedColumn.from_dict,
}


class TableEncoder:
    """Encodes the rows of a table as features.

    The features of a row depend only on that row and the rows before it. They do not depend on how rows are batched,
    or on whether the encoder was saved with `to_dict` and restored in between. New features appear with a frequent
    level, when the levels of a column become many, or with the first missing value of a column. They are appended as
    last columns and are 0 in all rows before. Labels affect the features of later rows only.

    ========= ====================================================================================================
    kind      features
    ========= ====================================================================================================
    number    the number as a float; for a missing value, the mean so far, and the indicator ``NAME is missing``
    boolean   1 or 0; missing values as for numbers
    time      sine and cosine of the hour (if the first rows have a time of day), the weekday and the day of the year,
              and the days since the first row, all in UTC; indicator ``NAME is missing``
    category  few levels: ``NAME=LEVEL`` for each frequent level, ``NAME=other`` for all others. Many levels: ``mean of
              TARGET by NAME``, ``last TARGET by NAME`` and ``log count of NAME``, from the earlier rows of the same
              level. A missing value is a level, too
    undecided none, until its first 20 values decide its kind: see `remember_values`
    ========= ====================================================================================================

    Attributes
    ----------
    target : str
        Name of the target column.
    feature_names : list of str
        Names of the features so far.
    cell_options : CellOptions
        How cells are written, as far as it was given.
    left_out : list of LeftOut
        Columns that are not used because their values seem to identify rows.
    warnings : list of str
        Warnings about the columns, for the user.
    decisions : list of str
        What columns were taken for whose kind was decided after the first rows, for the user.

    Examples
    --------
    >>> from ellipack.tabular.arrow import pa
    >>> from ellipack.tabular import LevelOptions, TableBatch
    >>> columns = {"sky": ["blue", "grey", "blue"], "wind": ["3", "?", "5"], "y": ["1", "2", "3"]}
    >>> table = TableBatch.from_table(pa.table(columns))
    >>> encoder = TableEncoder.from_head(table, "y", levels=LevelOptions(min_frequency=2))
    >>> rows = encoder.parse(table)
    >>> for block in encoder.partial_fit_transform(rows):
    ...     print(rows.labels[block.rows], block.X.tolist(), block.new_scales)
    [1.] [[1.0, 3.0]] []
    [2.] [[1.0, 3.0, 1.0]] [1.]
    [3.] [[0.0, 5.0, 0.0, 1.0]] [1.]
    >>> encoder.feature_names
    ['sky=other', 'wind', 'wind is missing', 'sky=blue']
    """

    def __init__(self, built: BuiltColumns, cells: CellOptions = _DEFAULT_CELLS) -> None:
        self._target, self._columns, self.left_out, self.warnings = built
        self.decisions = list[str]()
        self.cell_options, self._names = cells, _unique_names(self._columns)

    @classmethod
    def from_head(
        cls,
        head: TableBatch,
        target: str,
        *,
        take: Collection[str] | None = None,
        drop: Collection[str] = (),
        kinds: Mapping[str, str] | None = None,
        levels: LevelOptions = _DEFAULT_LEVELS,
        cells: CellOptions = _DEFAULT_CELLS,
        min_values: int = 1,
    ) -> "TableEncoder":
        """Create an encoder for a table, and infer the kinds of its columns from the first rows.

        Parameters
        ----------
        head : TableBatch
            First rows of the table. At most `INFERENCE_ROWS` of them are used.
        target : str
            Name of the target column.
        take : collection of str or None, default None
            Feature columns. If None, all columns except the target.
        drop : collection of str, default ()
            Columns to exclude.
        kinds : mapping of str to str or None, default None
            Kinds of columns that are not inferred, by column name.
        levels : LevelOptions, default LevelOptions()
            Options of category columns.
        cells : CellOptions, default CellOptions()
            How cells are written, as far as it is not inferred.
        min_values : int, default 1
            Number of values that text needs to be taken for text. A column with fewer is left undecided, because more
            values may show that it contains numbers or dates. A column without any value is always left undecided.

        Returns
        -------
        TableEncoder
            An encoder that has not seen any rows.

        Raises
        ------
        StreamError
            If a column does not exist, its type is not supported, or the target does not contain numbers.
        """
        options = ColumnOptions(take, drop, kinds or {}, levels, cells, min_values)
        return cls(build_columns(head, target, options), cells)

    @property
    def target(self) -> str:
        """Name of the target column."""
        return self._target.name

    @property
    def column_names(self) -> list[str]:
        """Names of the columns that are used, starting with the target."""
        return [self._target.name, *(column.name for column in self._columns)]

    @property
    def feature_columns(self) -> list[str]:
        """Name of the column that each feature comes from."""
        names = {index: column.name for column in self._columns for index in column.feature_names()}
        return [names[index] for index in range(len(names))]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features so far, without duplicates."""
        return list(self._names)

    @property
    def level_options(self) -> LevelOptions | None:
        """Options of the category columns; None if there are none."""
        kinds = CategoryColumn | UndecidedColumn
        return next((column.options for column in self._columns if isinstance(column, kinds)), None)

    @property
    def undecided_columns(self) -> list[str]:
        """Names of the columns whose kind is not decided yet."""
        return [column.name for column in self._columns if isinstance(column, UndecidedColumn)]

    def effect_grids(self, column: str, rows: Floats) -> list[EffectGrid]:
        """Return the values of a column at which effects are computed, given recent rows of features."""
        (own,) = (each for each in self._columns if each.name == column)
        return own.effect_grids(rows)

    def column_summaries(self) -> list[ColumnSummary]:
        """Return a summary of each feature column."""
        return [ColumnSummary(column.name, column.kind, column.note, column.n_missing) for column in self._columns]

    def describe_columns(self) -> str:
        """Return one line that says what the columns were taken for; an empty string if all contain plain numbers."""
        used = [column for column in self._columns if column.name not in {each.name for each in self.left_out}]
        target = TakenFor(self._target.name, self._target.kind, self._target.describe_format())
        taken = [TakenFor(column.name, column.kind, column.describe_format()) for column in used]
        return describe_columns(target, taken, self.left_out)

    def unused_columns(self, names: Sequence[str]) -> list[str]:
        """Return the columns that are neither features nor the target."""
        used = set(self.column_names)
        return [name for name in names if name not in used]

    def split_at_decisions(self, batch: TableBatch) -> list[TableBatch]:
        """Split a batch behind each row that decides the kind of a column. Does not change the encoder."""
        ends = {
            needed
            for each in self._columns
            if isinstance(each, UndecidedColumn) and each.name in batch.table.schema.names
            if (needed := each.n_rows_needed(self._decode(batch, each.name))) is not None
        }
        return batch.split(sorted(ends))

    def remember_values(self, batch: TableBatch) -> Floats:
        """Remember the first values of undecided columns, and decide the kinds of those that have enough.

        Parameters
        ----------
        batch : TableBatch
            One of the batches that `split_at_decisions` returns, after its rows were encoded.

        Returns
        -------
        ndarray of float
            Scales of the new features, for `StreamingRegressor.add_features`. Usually empty.
        """
        scales = list[float]()
        for place, column in enumerate(self._columns):
            if not isinstance(column, UndecidedColumn) or column.name not in batch.table.schema.names:
                continue
            cells = self._decode(batch, column.name)
            is_decided = column.n_rows_needed(cells) is not None
            column.remember(cells, batch.row_numbers)
            if is_decided:
                others, feature = self._columns, len(self._names) + len(scales)
                decision = decide_column(column, self._target, others, feature, self.cell_options)
                self._columns[place] = decision.column
                self.decisions.append(decision.message)
                self.warnings += decision.warnings
                scales += decision.scales
        self._names = _unique_names(self._columns) if scales else self._names
        return np.array(scales)

    def draft(self) -> "TableEncoder":
        """Return the same encoder, which can be changed without effect on this one. It costs little."""
        own = copy(self)
        own._columns = [column.draft() for column in self._columns]
        own.decisions, own.warnings = list(self.decisions), list(self.warnings)
        return own

    def commit(self) -> None:
        """Make the changes of a draft final. What it is a draft of must not be used any more.

        If it fails, it can be called again.
        """
        for column in self._columns:
            if isinstance(column, CategoryColumn):
                column.commit()

    def parse(self, batch: TableBatch, on_error: str = "stop") -> ParsedRows:
        """Parse the rows of a batch and their labels. Does not change the encoder.

        Parameters
        ----------
        batch : TableBatch
            Rows with the target and all feature columns, in any order.
        on_error : {"stop", "skip"}, default "stop"
            A row is bad if a value does not fit the kind of its column or exceeds `MAX_ABS_VALUE`, or if its label is
            not a number or exceeds `MAX_ABS_LABEL`. "stop" raises StreamError at a bad row, "skip" omits it. A row
            without a label is not bad.

        Returns
        -------
        ParsedRows
            The valid rows, and the bad rows that were skipped.
        """
        require_column(batch, self._target.name, "the target")
        return self._parse(batch, on_error, self._decode(batch, self._target.name))

    def parse_unlabeled(self, batch: TableBatch, on_error: str = "stop") -> ParsedRows:
        """Parse the rows of a batch without labels. Does not change the encoder."""
        return self._parse(batch, on_error, None)

    def known_labels(self, batch: TableBatch, rows: ParsedRows) -> Floats:
        """Return the labels of parsed rows; NaN where the table has no valid label. Does not change the encoder."""
        labels = np.full(len(batch), np.nan)
        if self._target.name in batch.table.column_names:
            parsed = self._target.parse(self._decode(batch, self._target.name))
            labels[~parsed.invalid] = parsed.values[~parsed.invalid]
        return labels[batch.positions_of(rows.row_numbers)]

    def row_times(self, rows: ParsedRows) -> Floats:
        """Return the dates of parsed rows in the first column of dates, in microseconds since 1970; NaN without one."""
        times = np.full(len(rows), np.nan)
        for column, cells in zip(self._columns, rows.cells, strict=True):
            if isinstance(column, TimeColumn) and isinstance(cells, TimeCells):
                has_date = ~cells.missing & (np.abs(cells.values) >= _DAY)  # a smaller value is a time of day
                times[has_date] = cells.values[has_date]
                break
        return times

    def partial_fit_transform(self, rows: ParsedRows) -> list[FeatureBlock]:
        """Encode rows one after another and update the statistics.

        Parameters
        ----------
        rows : ParsedRows
            The rows, with labels.

        Returns
        -------
        list of FeatureBlock
            The features, split where the number of features grows.

        Raises
        ------
        DomainError
            If a row has no label. The encoder is unchanged.
        """
        n_labels = int(np.count_nonzero(~np.isnan(rows.labels)))
        if n_labels != len(rows):
            raise DomainError(f"rows must have one label each, got {n_labels} labels of {len(rows)} rows")
        columns = zip(self._columns, rows.cells, strict=True)
        results = [column.partial_fit_transform(cells, rows.labels) for column, cells in columns]
        new_features = [
            (new, column) for column, (_, added) in zip(self._columns, results, strict=True) for new in added
        ]
        new_features.sort(key=lambda pair: pair[0].row)  # stable: features of the same row remain in column order
        for feature, (_, column) in enumerate(new_features, start=len(self._names)):
            column.add_feature(feature)
        if new_features:
            self._names = _unique_names(self._columns)
        X = np.zeros((len(rows), len(self._names)))
        for column, (encoded, _) in zip(self._columns, results, strict=True):
            column.write_features(encoded, X)
        return _split_blocks(X, [new for new, _ in new_features])

    def transform(self, rows: ParsedRows) -> Floats:
        """Encode rows with the current statistics, without changing them. A new level counts as ``other``."""
        X = np.zeros((len(rows), len(self._names)))
        for column, cells in zip(self._columns, rows.cells, strict=True):
            column.write_features(column.transform(cells), X)
        return X

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data, without loss of precision."""
        columns = [column.to_dict() for column in self._columns]
        own = {"version": _VERSION, "target": self._target.to_dict(), "warnings": list(self.warnings)}
        own |= {"decisions": list(self.decisions)}
        left_out = [each._asdict() for each in self.left_out]
        return own | {"columns": columns, "left_out": left_out, "cells": self.cell_options.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> "TableEncoder":
        """Restore an encoder from `to_dict`; raise ModelFileError if the state is invalid."""
        version = get_int(data, "version", 1)
        if version > _VERSION:
            raise ModelFileError(
                f"the encoder was saved by a later version of ellipack (format {version}, this is {_VERSION})"
            )
        columns = []
        for saved in get_list(data, "columns"):
            kind = get_str(saved, "kind")
            if kind not in _COLUMN_TYPES:
                raise invalid_entry("kind", f"one of {', '.join(_COLUMN_TYPES)}", kind)
            columns.append(_COLUMN_TYPES[kind](saved))
        target = TargetColumn.from_dict(get_entry(data, "target"))
        names = [target.name, *(column.name for column in columns)]
        indices = sorted(index for column in columns for index in column.feature_names())
        if len(set(names)) != len(names) or not columns or indices != list(range(len(indices))):
            raise invalid_entry("columns", "columns with distinct names and consecutive feature indices", names)
        left_out = [LeftOut(get_str(each, "name"), get_str(each, "reason")) for each in get_list(data, "left_out")]
        built = BuiltColumns(target, columns, left_out, get_strs(data, "warnings"))
        encoder = cls(built, CellOptions.from_dict(get_entry(data, "cells")))
        encoder.decisions = get_strs(data, "decisions")
        return encoder

    def _decode(self, batch: TableBatch, name: str) -> Any:
        """Return the cells of a column, null where they have a given spelling of a missing value."""
        cells = decode_column(batch.table.column(name), batch.source, name)
        return replace_missing(cells, self.cell_options.na) if self.cell_options.na else cells

    def _parse(self, batch: TableBatch, on_error: str, labels: Any) -> ParsedRows:
        """Parse the feature columns, and `labels` unless it is None."""
        if on_error not in ON_ERROR_CHOICES:
            raise DomainError(f"on_error must be one of {', '.join(ON_ERROR_CHOICES)}, got {on_error!r}")
        cells: list[Cells] = []
        bad_by_index: dict[int, BadRow] = {}
        for column in self._columns:
            if labels is None and not column.feature_names() and column.name not in batch.table.schema.names:
                cells.append(column.parse(pa.nulls(len(batch), pa.string())))  # an identifier is not needed to predict
                continue
            require_column(batch, column.name, "a feature column")
            found = self._decode(batch, column.name)
            cells.append(column.parse(found))
            for row in np.flatnonzero(cells[-1].invalid).tolist():
                reason = column.explain_invalid(to_clean_strings(found.slice(row, 1))[0].as_py())
                bad_by_index.setdefault(row, batch.bad_row(row, reason, column.name))
        values = np.empty(0)
        if labels is not None:
            parsed = self._target.parse(labels)
            values = parsed.values
            for row in np.flatnonzero(parsed.invalid).tolist():
                reason = self._target.explain_invalid(to_clean_strings(labels.slice(row, 1))[0].as_py())
                bad_by_index.setdefault(row, batch.bad_row(row, reason, self._target.name))
        bad = tuple(bad_by_index[row] for row in sorted(bad_by_index))
        if not bad:
            return ParsedRows(batch.row_numbers, values, bad, cells)
        if on_error == "stop":
            raise bad[0].to_error(batch.source)
        kept: Bools = np.ones(len(batch), dtype=bool)
        kept[list(bad_by_index)] = False
        values = values if labels is None else values[kept]
        return ParsedRows(batch.row_numbers[kept], values, bad, [each.filter(kept) for each in cells])


def _split_blocks(X: Floats, new_features: list[NewFeature]) -> list[FeatureBlock]:
    """Split features into blocks, given the features that the last columns of `X` hold, by row."""
    blocks = []
    starts = sorted({0, *(new.row for new in new_features)})
    width = X.shape[1] - len(new_features)
    for start, stop in zip(starts, [*starts[1:], len(X)], strict=True):
        scales = [new.scale for new in new_features if new.row == start]
        width += len(scales)
        if stop > start:
            blocks.append(
                FeatureBlock(slice(start, stop), np.ascontiguousarray(X[start:stop, :width]), np.array(scales))
            )
    return blocks


def _unique_names(columns: list[Column]) -> list[str]:
    """Return the feature names in order. A number is appended to duplicates."""
    by_index = sorted((index, name) for column in columns for index, name in column.feature_names().items())
    names: dict[str, None] = {}
    for _, name in by_index:
        unique, number = name, 2
        while unique in names:
            unique, number = f"{name} ({number})", number + 1
        names[unique] = None
    return list(names)
