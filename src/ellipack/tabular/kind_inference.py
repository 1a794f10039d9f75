"""Which columns of a table are used, and which kind each is, told by its first rows."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ellipack.choices import COLUMN_KINDS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.category_column import CategoryColumn
from ellipack.tabular.columns import Cells, Column, decode_column, is_datetime_type, is_numeric_type
from ellipack.tabular.number_column import BOOLEAN_PAIRS, NumberColumn, TargetColumn, parse_numbers
from ellipack.tabular.table_batch import TableBatch, quote_value, to_clean_strings
from ellipack.tabular.time_column import TIME_FEATURES, TimeCells, TimeColumn, parse_datetimes, parse_times_of_day
from ellipack.validation import check_integer

INFERENCE_ROWS = 1000
"""Rows that a column's kind is told by."""

_MIN_SHARE = 0.95  # of the values: more can't be chance
_MIN_VALUES = 20  # values, to tell the rule from an exception
_PREVIEW_VALUES = 20  # values that are tried before all are
_DAY = 86_400 * 10**6


class InferredKind(NamedTuple):
    """What a column is taken for.

    Attributes
    ----------
    kind : one of `COLUMN_KINDS`.
    form : one of `TIME_FORMS`, for times.
    note : what there is to say about it in a report.
    warning : what someone should know before going on, if there is anything.
    is_identifier : whether it names rows, and says nothing else.
    """

    kind: str
    form: str = ""
    note: str = ""
    warning: str = ""
    is_identifier: bool = False


def infer_kind(name: str, column: pa.Array, kind: str | None = None) -> InferredKind:
    """Return what a column is, by its first values, or as `kind` says."""
    values = _present_values(column)
    count, found = len(values), kind or _detect_kind(column.type, values)
    if not count:
        warning = f"column '{name}' has no value in the first {len(column):,} rows, and is taken for {found}"
        return InferredKind(found, _time_form(values) if found == "time" else "", "no value at first", warning)
    if found == "category":
        return _infer_category(name, values)
    if found == "time":
        return InferredKind("time", _time_form(values), _constant_note(values))
    if found == "number":
        return _infer_number(name, column, values)
    return InferredKind(found, "", _constant_note(values))


def _present_values(column: pa.Array) -> pa.Array:
    """Return the values that are not missing; numbers and times as they are, others as stripped strings."""
    if is_numeric_type(column.type) or is_datetime_type(column.type) or pa.types.is_time(column.type):
        return column.drop_null()
    return to_clean_strings(column).drop_null() if not pa.types.is_boolean(column.type) else column.drop_null()


def _detect_kind(kind: pa.DataType, values: pa.Array) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_datetime_type(kind) or pa.types.is_time(kind):
        return "time"
    if is_numeric_type(kind) or _mostly_parses(parse_numbers, values):
        return "number"
    if any({*pc.utf8_lower(values).unique().to_pylist()} == {*pair} for pair in BOOLEAN_PAIRS):
        return "boolean"
    return (
        "time" if _mostly_parses(parse_datetimes, values) or _mostly_parses(parse_times_of_day, values) else "category"
    )


def _mostly_parses(parse: Callable[[pa.Array], Cells], values: pa.Array) -> bool:
    """Return whether all values can be read so, or so many that the others must be mistakes."""
    if not len(values) or parse(values.slice(0, _PREVIEW_VALUES)).invalid.mean() > 0.5:
        return False
    bad = int(np.count_nonzero(parse(values).invalid))
    return bad == 0 or (len(values) >= _MIN_VALUES and bad <= (1 - _MIN_SHARE) * len(values))


def _time_form(values: pa.Array) -> str:
    """Return the form of times: by themselves, or dates with or without a time of day."""
    if pa.types.is_time(values.type) or (
        not is_datetime_type(values.type) and _mostly_parses(parse_times_of_day, values)
    ):
        return "time of day"
    moments: TimeCells = parse_datetimes(values)
    return "datetime" if (moments.values[~moments.invalid] % _DAY).any() else "date"


def _infer_number(name: str, column: pa.Array, values: pa.Array) -> InferredKind:
    cells = parse_numbers(column)
    bad = int(np.count_nonzero(cells.invalid))
    if bad:
        warning = f"column '{name}' is taken for number, though {bad:,} of its first {len(column):,} values are none"
        return InferredKind("number", "", "", warning)
    if len(cells.values) >= _MIN_VALUES and (np.diff(cells.values) == 1).all():
        warning = f"column '{name}' counts the rows: unless time itself matters, leave it out by --drop '{name}'"
        return InferredKind("number", "", "counts the rows", warning)
    return InferredKind("number", "", _constant_note(values))


def _infer_category(name: str, values: pa.Array) -> InferredKind:
    different = len(values.unique())
    if len(values) >= _MIN_VALUES and different >= _MIN_SHARE * len(values):
        warning = (
            f"column '{name}' has {different:,} different texts in {len(values):,} rows, and tells nothing: "
            f"leave it out by --drop '{name}'"
        )
        return InferredKind("category", "", "an identifier", warning, is_identifier=True)
    return InferredKind("category", "", _constant_note(values))


def _constant_note(values: pa.Array) -> str:
    return "constant at first" if len(values) > 1 and len(values.unique()) == 1 else ""


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns to use and how, as `TableEncoder.from_head` has them."""

    take: Collection[str] | None
    drop: Collection[str]
    kinds: Mapping[str, str]
    min_frequency: int
    max_categories: int

    def __post_init__(self) -> None:
        check_integer(self.min_frequency, "min_frequency", 1)
        check_integer(self.max_categories, "max_categories", 1)
        for name, kind in self.kinds.items():
            if kind not in COLUMN_KINDS:
                raise DomainError(f"the kind of column '{name}' must be one of {', '.join(COLUMN_KINDS)}, got {kind!r}")


def build_columns(head: TableBatch, target: str, choice: ColumnOptions) -> tuple[list[Column], list[str]]:
    """Return the columns to make features of, in the order of the table, and what to warn of."""
    columns: list[Column] = []
    warnings, width = [], 0
    for name in _select_columns(head, target, choice):
        found = decode_column(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
        inferred = infer_kind(name, found, choice.kinds.get(name))
        columns.append(_make_column(name, inferred, width, choice))
        width += len(columns[-1].feature_names())
        warnings += [inferred.warning] if inferred.warning else []
    return columns, warnings


def build_target(head: TableBatch, name: str, kind: str | None) -> TargetColumn:
    """Return the column to predict, if it holds numbers, or yes and no."""
    column = decode_column(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
    found = kind or infer_kind(name, column).kind
    if found not in ("number", "boolean"):
        cell = column.drop_null()
        value = quote_value(cell[0]) if len(cell) else "nothing"
        raise StreamError(f"{head.source}: the target '{name}' must hold numbers, got {value}: choose another column")
    return TargetColumn(name, found)


def _select_columns(head: TableBatch, target: str, choice: ColumnOptions) -> list[str]:
    names = head.table.schema.names
    asked = {target: "the target", **dict.fromkeys(choice.kinds, "of a given kind")}
    asked |= dict.fromkeys(choice.drop, "to drop") | dict.fromkeys(choice.take or (), "to take")
    for name, role in asked.items():
        require_column(head, name, role)
    if target in choice.drop or target in (choice.take or ()):
        raise StreamError(f"{head.source}: the target '{target}' can't be taken or dropped as well: choose one")
    taken = names if choice.take is None else choice.take
    chosen = [name for name in names if name in taken and name not in choice.drop and name != target]
    if not chosen:
        raise StreamError(f"{head.source}: no column is left to predict '{target}' from: take more, or drop fewer")
    return chosen


def require_column(batch: TableBatch, name: str, role: str) -> None:
    """Raise unless a table has one column of that name."""
    names = batch.table.schema.names
    if names.count(name) != 1:
        many = "two columns" if name in names else "no column"
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise StreamError(f"{batch.source} has {many} called {quote_value(name)}, {role}; there are: {listed}")


def _make_column(name: str, inferred: InferredKind, feature: int, choice: ColumnOptions) -> Column:
    if inferred.kind == "time":
        count = len(TIME_FEATURES[inferred.form])
        return TimeColumn(name, inferred.form, list(range(feature, feature + count)), inferred.note)
    if inferred.kind == "category":
        most = 1 if inferred.is_identifier else choice.max_categories
        return CategoryColumn(name, feature, choice.min_frequency, most, inferred.note)
    return NumberColumn(name, inferred.kind, feature, inferred.note)
