"""Infer the kinds of columns from the first rows of a table, and build the column encoders."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ellipack.choices import COLUMN_KINDS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.category_column import CategoryColumn, LevelOptions
from ellipack.tabular.columns import Cells, Column, decode_column, is_datetime_type, is_numeric_type
from ellipack.tabular.number_column import BOOLEAN_PAIRS, NumberColumn, TargetColumn, parse_numbers
from ellipack.tabular.table_batch import TableBatch, escape_name, quote_value, to_clean_strings, to_strings
from ellipack.tabular.target_statistics import STATISTICS
from ellipack.tabular.time_column import TIME_FEATURES, TimeCells, TimeColumn, parse_datetimes, parse_times_of_day

INFERENCE_ROWS = 1000
"""Number of rows from which the kind of a column is inferred."""

_MIN_SHARE = 0.95  # of the values that must parse
_MIN_VALUES = 20  # needed to tolerate invalid values, or to find identifiers and row counters
_PREVIEW_VALUES = 20  # parsed first, to reject a kind early
_DAY = 86_400 * 10**6


class InferredKind(NamedTuple):
    """Inferred kind of a column.

    Attributes
    ----------
    kind : str
        One of `ellipack.choices.COLUMN_KINDS`.
    form : str, default ""
        One of `TIME_FORMS` if the kind is ``time``.
    note : str, default ""
        Remark for the report.
    warning : str, default ""
        Warning for the user.
    n_levels : int, default 0
        Number of distinct values if the kind is ``category``.
    is_identifier : bool, default False
        Whether the values seem to identify rows.
    """

    kind: str
    form: str = ""
    note: str = ""
    warning: str = ""
    n_levels: int = 0
    is_identifier: bool = False


def infer_kind(name: str, column: pa.Array, kind: str | None = None) -> InferredKind:
    """Infer the kind of a column from its first values.

    Parameters
    ----------
    name : str
        Name of the column in warnings.
    column : pyarrow.Array
        The first values of the column.
    kind : str or None, default None
        Kind, if it is given and not inferred.

    Returns
    -------
    InferredKind
        The kind, with a note and a warning.

    Examples
    --------
    >>> infer_kind("sky", pa.array(["clear", "rain", "clear"])).kind
    'category'
    >>> infer_kind("when", pa.array(["2024-05-31", "2024-06-01"])).form
    'date'
    """
    values = _present_values(column)
    count, found = len(values), kind or _detect_kind(column.type, values)
    if not count:
        warning = f"column '{name}' has no values in the first {len(column):,} rows and is treated as {found}"
        return InferredKind(found, _time_form(values) if found == "time" else "", "no values at first", warning)
    if found == "category":
        return _infer_category(name, values)
    if found == "time":
        return InferredKind("time", _time_form(values), _constant_note(values))
    if found == "number":
        return _infer_number(name, column, values)
    return InferredKind(found, "", _constant_note(values))


def _present_values(column: pa.Array) -> pa.Array:
    """Return the values that are not missing: numbers, times and Booleans unchanged, others as stripped strings."""
    if is_numeric_type(column.type) or is_datetime_type(column.type) or pa.types.is_time(column.type):
        return column.drop_null()
    return to_clean_strings(column).drop_null() if not pa.types.is_boolean(column.type) else column.drop_null()


def _detect_kind(kind: pa.DataType, values: pa.Array) -> str:
    """Return the kind for a type and values."""
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
    """Return whether all values parse, or enough of them that the others are probably errors."""
    if not len(values) or parse(values.slice(0, _PREVIEW_VALUES)).invalid.mean() > 0.5:
        return False
    n_invalid = int(np.count_nonzero(parse(values).invalid))
    return n_invalid == 0 or (len(values) >= _MIN_VALUES and n_invalid <= (1 - _MIN_SHARE) * len(values))


def _time_form(values: pa.Array) -> str:
    """Return the form of a time column, one of `TIME_FORMS`."""
    if pa.types.is_time(values.type) or (
        not is_datetime_type(values.type) and _mostly_parses(parse_times_of_day, values)
    ):
        return "time of day"
    cells: TimeCells = parse_datetimes(values)
    return "datetime" if (cells.values[~cells.invalid] % _DAY).any() else "date"


def _infer_number(name: str, column: pa.Array, values: pa.Array) -> InferredKind:
    """Infer notes and warnings of a number column."""
    cells = parse_numbers(column)
    n_invalid = int(np.count_nonzero(cells.invalid))
    if n_invalid:
        share = f"{n_invalid:,} of its first {len(column):,} values"
        warning = f"column '{name}' is treated as number, although {share} are not numbers"
        return InferredKind("number", "", "", warning)
    if len(cells.values) >= _MIN_VALUES and (np.diff(cells.values) == 1).all():
        warning = f"column '{name}' counts the rows: exclude it with --drop '{name}' unless the trend matters"
        return InferredKind("number", "", "counts the rows", warning)
    return InferredKind("number", "", _constant_note(values))


def _infer_category(name: str, values: pa.Array) -> InferredKind:
    """Infer notes and warnings of a category column."""
    n_distinct = len(values.unique())
    if len(values) >= _MIN_VALUES and n_distinct >= _MIN_SHARE * len(values):
        warning = (
            f"column '{name}' has {n_distinct:,} different values in {len(values):,} rows, "
            f"which help to predict only if they come again: otherwise exclude it with --drop '{name}'"
        )
        return InferredKind("category", "", "an identifier at first", warning, n_distinct, is_identifier=True)
    return InferredKind("category", "", _constant_note(values), n_levels=n_distinct)


def _constant_note(values: pa.Array) -> str:
    """Return a note if all values are equal."""
    return "constant at first" if len(values) > 1 and len(values.unique()) == 1 else ""


@dataclass(frozen=True)
class ColumnOptions:
    """Options for the columns. See `TableEncoder.from_head`."""

    take: Collection[str] | None
    drop: Collection[str]
    kinds: Mapping[str, str]
    levels: LevelOptions

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            if kind not in COLUMN_KINDS:
                raise DomainError(f"the kind of column '{name}' must be one of {', '.join(COLUMN_KINDS)}, got {kind!r}")


def build_columns(head: TableBatch, target: str, options: ColumnOptions) -> tuple[list[Column], list[str]]:
    """Return the encoders of the selected columns, in table order, and the warnings."""
    columns: list[Column] = []
    warnings, width = [], 0
    for name in _select_columns(head, target, options):
        found = decode_column(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
        inferred = infer_kind(name, found, options.kinds.get(name))
        columns.append(_make_column(name, target, inferred, width, options.levels))
        width += len(columns[-1].feature_names())
        warnings += [inferred.warning] if inferred.warning else []
    return columns, warnings


def build_target(head: TableBatch, name: str, kind: str | None) -> TargetColumn:
    """Return the target column; raise StreamError unless it contains numbers or Booleans, or no values yet."""
    column = decode_column(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
    found = kind or (infer_kind(name, column).kind if len(to_clean_strings(column).drop_null()) else "number")
    if found not in ("number", "boolean"):
        cell = column.drop_null()
        value = quote_value(to_strings(cell.slice(0, 1))[0]) if len(cell) else "no value"
        raise StreamError(
            f"{head.source}: the target '{name}' must contain numbers, got {value}: choose another column"
        )
    return TargetColumn(name, found)


def _select_columns(head: TableBatch, target: str, options: ColumnOptions) -> list[str]:
    """Return the names of the feature columns; raise StreamError if the options do not fit the table."""
    names = head.table.schema.names
    roles = {target: "the target", **dict.fromkeys(options.kinds, "with a given kind")}
    roles |= dict.fromkeys(options.drop, "to drop") | dict.fromkeys(options.take or (), "to take")
    for name, role in roles.items():
        require_column(head, name, role)
    if target in options.drop or target in (options.take or ()):
        raise StreamError(f"{head.source}: the target '{target}' cannot also be taken or dropped")
    taken, dropped = set(names if options.take is None else options.take), {*options.drop, target}
    chosen = [name for name in names if name in taken and name not in dropped]
    if not chosen:
        raise StreamError(
            f"{head.source}: no column is left to predict '{target}' from: take more columns or drop fewer"
        )
    return chosen


def require_column(batch: TableBatch, name: str, role: str) -> None:
    """Raise StreamError unless a table has exactly one column of a name."""
    encoded = name.encode(errors="surrogatepass")  # a name from the command line need not be valid text
    found = batch.table.schema.get_all_field_indices(encoded)  # by hash, because tables can have many columns
    if len(found) != 1:
        count, names = "several columns" if found else "no column", batch.table.schema.names
        listed = ", ".join(map(escape_name, names[:20])) + (", ..." if len(names) > 20 else "")
        raise StreamError(f"{batch.source} has {count} named {quote_value(name)} ({role}); its columns are: {listed}")


def _make_column(name: str, target: str, inferred: InferredKind, feature: int, levels: LevelOptions) -> Column:
    """Return the encoder of a column."""
    if inferred.kind == "time":
        count = len(TIME_FEATURES[inferred.form])
        return TimeColumn(name, inferred.form, list(range(feature, feature + count)), inferred.note)
    if inferred.kind == "category":
        has_many_levels = inferred.is_identifier or inferred.n_levels > levels.one_hot
        count = len(STATISTICS) if has_many_levels else 1
        return CategoryColumn(name, target, list(range(feature, feature + count)), levels, inferred.note)
    return NumberColumn(name, inferred.kind, feature, inferred.note)
