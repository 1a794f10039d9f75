"""Which columns of a table are used, and which kind each is, told by its first rows."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ellipack.choices import COLUMN_KINDS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import Cells, Column, is_moment, is_number, plain
from ellipack.tabular.number_column import PAIRS, NumberColumn, Target, parse_numbers
from ellipack.tabular.table_batch import TableBatch, clean, shown
from ellipack.tabular.text_column import TextColumn
from ellipack.tabular.time_column import PARTS, Instants, TimeColumn, parse_clock, parse_moments
from ellipack.validation import check_integer

INFERENCE_ROWS = 1000
"""Rows that a column's kind is told by."""

_MOSTLY = 0.95  # of the values: more can't be chance
_ENOUGH = 20  # values, to tell the rule from an exception
_GLANCE = 20  # values that are tried before all are
_DAY = 86_400 * 10**6


class Guess(NamedTuple):
    """What a column is taken for.

    Attributes
    ----------
    kind : one of `COLUMN_KINDS`.
    form : one of `FORMS`, for times.
    note : what there is to say about it in a report.
    warning : what someone should know before going on, if there is anything.
    is_identifier : whether it names rows, and says nothing else.
    """

    kind: str
    form: str = ""
    note: str = ""
    warning: str = ""
    is_identifier: bool = False


def guess(name: str, column: pa.Array, kind: str | None = None) -> Guess:
    """Return what a column is, by its first values, or as `kind` says."""
    values = _present(column)
    count, found = len(values), kind or _kind(column.type, values)
    if not count:
        warning = f"column '{name}' has no value in the first {len(column):,} rows, and is taken for {found}"
        return Guess(found, _form(values) if found == "time" else "", "no value at first", warning)
    if found == "text":
        return _guess_text(name, values)
    if found == "time":
        return Guess("time", _form(values), _constant(values))
    if found == "number":
        return _guess_number(name, column, values)
    return Guess(found, "", _constant(values))


def _present(column: pa.Array) -> pa.Array:
    """Return the values that are not missing; those of a type of their own as they are, others as clean text."""
    if is_number(column.type) or is_moment(column.type) or pa.types.is_time(column.type):
        return column.drop_null()
    return clean(column).drop_null() if not pa.types.is_boolean(column.type) else column.drop_null()


def _kind(kind: pa.DataType, values: pa.Array) -> str:
    if pa.types.is_boolean(kind):
        return "boolean"
    if is_moment(kind) or pa.types.is_time(kind):
        return "time"
    if is_number(kind) or _mostly(parse_numbers, values):
        return "number"
    if any({*pc.utf8_lower(values).unique().to_pylist()} == {*pair} for pair in PAIRS):
        return "boolean"
    return "time" if _mostly(parse_moments, values) or _mostly(parse_clock, values) else "text"


def _mostly(parse: Callable[[pa.Array], Cells], values: pa.Array) -> bool:
    """Return whether all values can be read so, or so many that the others must be mistakes."""
    if not len(values) or parse(values.slice(0, _GLANCE)).bad.mean() > 0.5:
        return False
    bad = int(np.count_nonzero(parse(values).bad))
    return bad == 0 or (len(values) >= _ENOUGH and bad <= (1 - _MOSTLY) * len(values))


def _form(values: pa.Array) -> str:
    """Return the form of times: by themselves, or dates with or without a time of day."""
    if pa.types.is_time(values.type) or (not is_moment(values.type) and _mostly(parse_clock, values)):
        return "clock"
    moments: Instants = parse_moments(values)
    return "datetime" if (moments.values[~moments.bad] % _DAY).any() else "date"


def _guess_number(name: str, column: pa.Array, values: pa.Array) -> Guess:
    cells = parse_numbers(column)
    bad = int(np.count_nonzero(cells.bad))
    if bad:
        warning = f"column '{name}' is taken for number, though {bad:,} of its first {len(column):,} values are none"
        return Guess("number", "", "", warning)
    if len(cells.values) >= _ENOUGH and (np.diff(cells.values) == 1).all():
        warning = f"column '{name}' counts the rows: unless time itself matters, leave it out by --drop '{name}'"
        return Guess("number", "", "counts the rows", warning)
    return Guess("number", "", _constant(values))


def _guess_text(name: str, values: pa.Array) -> Guess:
    different = len(values.unique())
    if len(values) >= _ENOUGH and different >= _MOSTLY * len(values):
        warning = (
            f"column '{name}' has {different:,} different texts in {len(values):,} rows, and tells nothing: "
            f"leave it out by --drop '{name}'"
        )
        return Guess("text", "", "an identifier", warning, is_identifier=True)
    return Guess("text", "", _constant(values))


def _constant(values: pa.Array) -> str:
    return "constant at first" if len(values) > 1 and len(values.unique()) == 1 else ""


@dataclass(frozen=True)
class Choice:
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


def begin_columns(head: TableBatch, target: str, choice: Choice) -> tuple[list[Column], list[str]]:
    """Return the columns to make features of, in the order of the table, and what to warn of."""
    columns: list[Column] = []
    warnings, width = [], 0
    for name in _chosen(head, target, choice):
        found = plain(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
        guessed = guess(name, found, choice.kinds.get(name))
        columns.append(_column(name, guessed, width, choice))
        width += len(columns[-1].features())
        warnings += [guessed.warning] if guessed.warning else []
    return columns, warnings


def begin_target(head: TableBatch, name: str, kind: str | None) -> Target:
    """Return the column to predict, if it holds numbers, or yes and no."""
    column = plain(head.table.column(name).slice(0, INFERENCE_ROWS), head.source, name)
    found = kind or guess(name, column).kind
    if found not in ("number", "boolean"):
        cell = column.drop_null()
        value = shown(cell[0]) if len(cell) else "nothing"
        raise StreamError(f"{head.source}: the target '{name}' must hold numbers, got {value}: choose another column")
    return Target(name, found)


def _chosen(head: TableBatch, target: str, choice: Choice) -> list[str]:
    names = head.table.schema.names
    asked = {target: "the target", **dict.fromkeys(choice.kinds, "of a given kind")}
    asked |= dict.fromkeys(choice.drop, "to drop") | dict.fromkeys(choice.take or (), "to take")
    for name, role in asked.items():
        require(head, name, role)
    if target in choice.drop or target in (choice.take or ()):
        raise StreamError(f"{head.source}: the target '{target}' can't be taken or dropped as well: choose one")
    taken = names if choice.take is None else choice.take
    chosen = [name for name in names if name in taken and name not in choice.drop and name != target]
    if not chosen:
        raise StreamError(f"{head.source}: no column is left to predict '{target}' from: take more, or drop fewer")
    return chosen


def require(batch: TableBatch, name: str, role: str) -> None:
    """Raise unless a table has one column of that name."""
    names = batch.table.schema.names
    if names.count(name) != 1:
        many = "two columns" if name in names else "no column"
        listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        raise StreamError(f"{batch.source} has {many} called {shown(name)}, {role}; there are: {listed}")


def _column(name: str, guessed: Guess, feature: int, choice: Choice) -> Column:
    if guessed.kind == "time":
        count = len(PARTS[guessed.form])
        return TimeColumn(name, guessed.form, list(range(feature, feature + count)), guessed.note)
    if guessed.kind == "text":
        most = 1 if guessed.is_identifier else choice.max_categories
        return TextColumn(name, feature, choice.min_frequency, most, guessed.note)
    return NumberColumn(name, guessed.kind, feature, guessed.note)
