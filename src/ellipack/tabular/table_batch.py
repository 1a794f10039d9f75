"""Rows of a table as the readers hand them out, and what a cell means whatever file it came in."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ellipack.errors import StreamError
from ellipack.tabular.arrow import pa, pc
from ellipack.validation import Ints

MISSING_VALUES = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?")
"""The spellings of a missing value, in any column, once space around them is taken off; quotes make no difference."""

_MISSING_ARRAY = pa.array(MISSING_VALUES)
_MAX_QUOTED = 40  # characters of a value that a message shows


def to_strings(column: pa.Array) -> pa.Array:
    """Return a column as strings, so that equal values are equal strings however they were stored.

    A whole number reads the same whether it was stored as an integer or as a float.

    >>> to_strings(pa.array([1.0, 0.5])).to_pylist()
    ['1', '0.5']
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def to_clean_strings(column: pa.Array) -> pa.Array:
    """Return a column as strings without space around them, missing ones as nulls.

    >>> to_clean_strings(pa.array([" rain", "NA ", None])).to_pylist()
    ['rain', None, None]
    """
    trimmed = pc.utf8_trim_whitespace(to_strings(column))
    return pc.if_else(pc.is_in(trimmed, value_set=_MISSING_ARRAY), pa.scalar(None, pa.string()), trimmed)


def quote_value(value: object) -> str:
    """Return a value as a message shows it: quoted, on one line, and shortened if it is long.

    >>> quote_value("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
    """
    text = str(value)
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "...")


@dataclass(frozen=True)
class BadRow:
    """A row that can't be used.

    Attributes
    ----------
    row_number : its place among the rows of data, from 1.
    reason : what is wrong with it.
    column : the name of the column at fault, if it is one column's.
    """

    row_number: int
    reason: str
    column: str | None = None

    def to_error(self, source: str) -> StreamError:
        """Return the error that stops at this row."""
        place = f"{source}, row {self.row_number:,}" + (f", column '{self.column}'" if self.column is not None else "")
        return StreamError(f"{place}: {self.reason}: fix it, or run with --on-error skip")


@dataclass(frozen=True)
class TableBatch:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : the rows.
    row_numbers : for each, its place among the rows of data in the source, from 1.
    source : what messages call the source.
    unreadable_rows : rows before the last of these that could not be read, and so are not among them.
    """

    table: pa.RecordBatch
    row_numbers: Ints
    source: str
    unreadable_rows: tuple[BadRow, ...] = ()

    @classmethod
    def from_table(cls, table: pa.Table | pa.RecordBatch, source: str = "table", first: int = 1) -> "TableBatch":
        """Return a table that was not read from a source as a batch, its first row numbered `first`."""
        if isinstance(table, pa.Table):
            arrays = [column.combine_chunks() for column in table.columns]
            table = pa.RecordBatch.from_arrays(arrays, schema=table.schema)
        return cls(table, np.arange(first, first + table.num_rows), source)

    def __len__(self) -> int:
        return len(self.row_numbers)

    @property
    def last_row(self) -> int:
        """The rows of the source that are behind once this batch is: where to resume, as `skip_rows`."""
        last = int(self.row_numbers[-1]) if len(self) else 0
        return max(last, self.unreadable_rows[-1].row_number if self.unreadable_rows else 0)


class Chunk(NamedTuple):
    """Some rows, their numbers in the file, and those among and before them that could not be read."""

    table: pa.RecordBatch
    row_numbers: Ints
    unreadable_rows: list[BadRow]

    def after_row(self, row_number: int) -> "Chunk":
        """Return the part of the chunk that comes after the first `row_number` rows of the file."""
        cut = int(np.searchsorted(self.row_numbers, row_number, side="right"))
        later = [row for row in self.unreadable_rows if row.row_number > row_number]
        return Chunk(self.table.slice(cut), self.row_numbers[cut:], later)


class Reader(Protocol):
    """A file of one format: what its columns are called, and its rows in order."""

    columns: list[str]

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows; raise StreamError where the file can't be read on."""

    def close(self) -> None:
        """Let go of the file."""


def check_column_names(names: list[str], source: str) -> list[str]:
    """Return column names if there are any, none is empty and no two are the same."""
    if not names:
        raise StreamError(f"{source} has no columns")
    seen = set()
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise StreamError(f"{source}: column {place} of {len(names)} has no name: name it in the header")
        if name in seen:
            raise StreamError(f"{source}: two columns are called {quote_value(name)}: rename one of them")
        seen.add(name)
    return names


def concat_tables(tables: list[pa.RecordBatch], names: list[str]) -> pa.RecordBatch:
    """Return tables one below the other; a column that is of several types becomes text."""
    if len(tables) == 1:
        return tables[0]
    columns = [_concat_arrays([table.column(i) for table in tables]) for i in range(len(names))]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _concat_arrays(arrays: list[pa.Array]) -> pa.Array:
    types = {array.type for array in arrays if not pa.types.is_null(array.type)}
    if not arrays:
        return pa.nulls(0)
    if len(types) > 1:
        arrays = [to_strings(array) for array in arrays]
    elif types:
        arrays = [pc.cast(array, next(iter(types))) for array in arrays]
    return pa.concat_arrays(arrays)
