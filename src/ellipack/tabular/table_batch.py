"""Batches of table rows, the interface of the file readers, and rules for cells that all file formats share."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ellipack.errors import StreamError
from ellipack.tabular.arrow import pa, pc
from ellipack.validation import Ints

MISSING_VALUES = (
    *("", "-", "--", ".", "?", "NA", "na", "N/A", "n/a", "<NA>", "NaN", "nan", "-nan", "NaT", "null", "Null", "NULL"),
    *("None", "none", "nil", "NIL", "#N/A", "#NA", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NAME?", "#NULL!"),
)
"""Strings that mean a missing value in any column, after stripping whitespace. Quoting makes no difference."""

_MISSING_ARRAY = pa.array(MISSING_VALUES)
_MAX_QUOTED = 40  # characters of a value in an error message

MAX_EXACT_FLOAT = 2**53
"""Up to this size, each integer is a float."""

_FIRST_EXPONENT = 1e10  # from which pyarrow writes floats with an exponent


def to_strings(column: pa.Array) -> pa.Array:
    """Convert a column to strings; equal values give equal strings, whatever their type.

    An integer up to `MAX_EXACT_FLOAT` gives the same string whether it is stored as an integer or as a float.

    Parameters
    ----------
    column : pyarrow.Array
        Column of any type that pyarrow can cast to strings.

    Returns
    -------
    pyarrow.Array
        Array of strings, with nulls where `column` has nulls.

    Examples
    --------
    >>> to_strings(pa.array([1.0, 0.5, -0.0])).to_pylist()
    ['1', '0.5', '0']
    """
    column = decode_dictionary(column)
    if pa.types.is_floating(column.type):
        return _floats_to_strings(column)
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _floats_to_strings(column: pa.Array) -> pa.Array:
    """Convert floats to strings, whole numbers without an exponent, and -0 as 0."""
    numbers = column.cast(pa.float64())
    texts = pc.if_else(pc.equal(numbers, 0.0), "0", column.cast(pa.string()))
    sizes = pc.abs(numbers)
    is_long = pc.and_(pc.greater_equal(sizes, _FIRST_EXPONENT), pc.less_equal(sizes, float(MAX_EXACT_FLOAT)))
    is_whole = pc.and_(is_long, pc.equal(numbers, pc.trunc(numbers)))
    if not pc.any(is_whole).as_py():
        return texts
    return pc.if_else(is_whole, pc.cast(pc.if_else(is_whole, numbers, None), pa.int64()).cast(pa.string()), texts)


def decode_dictionary(column: pa.Array) -> pa.Array:
    """Return the values of a column with a dictionary, such as the categories of a data frame; others unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    levels = column.dictionary
    return (levels.cast(pa.string()) if pa.types.is_string_view(levels.type) else levels).take(column.indices)


def to_clean_strings(column: pa.Array) -> pa.Array:
    """Convert a column to stripped strings, with null for each of `MISSING_VALUES`.

    Examples
    --------
    >>> to_clean_strings(pa.array([" rain", "NA ", None])).to_pylist()
    ['rain', None, None]
    """
    trimmed = pc.utf8_trim_whitespace(to_strings(column))
    return pc.if_else(pc.is_in(trimmed, value_set=_MISSING_ARRAY), pa.scalar(None, pa.string()), trimmed)


def replace_missing(column: pa.Array, spellings: tuple[str, ...]) -> pa.Array:
    """Replace more spellings of missing values by null. In columns of numbers, spellings are compared as numbers.

    Examples
    --------
    >>> replace_missing(pa.array(["5", "-999"]), ("-999",)).to_pylist()
    ['5', None]
    >>> replace_missing(pa.array([5.0, -999.0]), ("-999", "n.a.")).to_pylist()
    [5.0, None]
    """
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        found = pc.is_in(pc.utf8_trim_whitespace(column), value_set=pa.array(spellings, column.type))
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = [number for number in map(_to_number, spellings) if number is not None]
        found = pc.is_in(pc.cast(column, pa.float64(), safe=False), value_set=pa.array(numbers, pa.float64()))
    else:
        return column
    return pc.if_else(found, pa.scalar(None, column.type), column)


def _to_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def column_text(batch: "TableBatch", name: str) -> NDArray[np.object_]:
    """Return the values of a column as text, None where they are missing; raise StreamError if there is no such column.

    Parameters
    ----------
    batch : TableBatch
        Rows of a table.
    name : str
        Name of the column.

    Returns
    -------
    ndarray of object
        Text of each row.
    """
    if name not in batch.table.column_names:
        raise StreamError(f"{batch.source} must have the column '{escape_name(name)}', whose values are keys")
    return np.array(to_clean_strings(batch.table.column(name)).to_pylist(), dtype=object)


def quote_value(value: object) -> str:
    """Format a value for an error message: quoted, on one line, truncated if it is long.

    Examples
    --------
    >>> quote_value("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
    """
    text = str(value)
    return repr(text if len(text) <= _MAX_QUOTED else text[:_MAX_QUOTED] + "...")


def escape_name(name: str) -> str:
    r"""Format a column name for an error message, on one line.

    Examples
    --------
    >>> print(escape_name("two\nlines"))
    two\nlines
    """
    return name if name.isprintable() else repr(name)[1:-1]


def is_valid_unicode(text: str) -> bool:
    """Return whether a string contains no lone surrogates, as a word of a command line does that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be read or encoded.

    Attributes
    ----------
    row_number : int
        Position among the data rows of the source, starting at 1.
    reason : str
        What is wrong with the row.
    column : str or None, default None
        Name of the invalid column, if a single column is invalid.
    file_row : FileRow or None, default None
        File and position in it, if the source is several files.
    """

    row_number: int
    reason: str
    column: str | None = None
    file_row: "FileRow | None" = None

    def describe(self, source: str) -> str:
        """Return where the row is, and what is wrong with it."""
        place = f"{source}, row {self.row_number:,}"
        if self.file_row is not None:
            place = f"{self.file_row.file}, row {self.file_row.row_number:,} (row {self.row_number:,} of all files)"
        column = f", column '{escape_name(self.column)}'" if self.column is not None else ""
        return f"{place}{column}: {self.reason}"

    def to_error(self, source: str) -> StreamError:
        """Return the error to raise when the run stops at this row."""
        return StreamError(f"{self.describe(source)}: fix it, or run with --on-error skip")


class FileRow(NamedTuple):
    """A row of one of several files: name of the file, and position among its data rows, starting at 1."""

    file: str
    row_number: int


class FileStart(NamedTuple):
    """Name of one of several files, and the number of rows before it."""

    file: str
    rows_before: int


@dataclass(frozen=True)
class TableBatch:
    """Consecutive rows of a table.

    Attributes
    ----------
    table : pyarrow.RecordBatch
        The rows.
    row_numbers : ndarray of int
        Position of each row among the data rows of the source, starting at 1.
    source : str
        Name of the source in messages.
    unreadable_rows : tuple of BadRow, default ()
        Rows that could not be read. They precede the last row of `table` and are not in it.
    files : tuple of FileStart, default ()
        Where files start, if the source is several of them.
    unnamed : tuple of str, default ()
        Columns that have no name in the source, by the names that `name_columns` gives them.
    is_file : bool, default False
        Whether the source is a file, which may have lines above its header.

    Examples
    --------
    >>> batch = TableBatch.from_table(pa.table({"a": [1.5, 2.5]}), first=11)
    >>> batch.row_numbers.tolist(), batch.last_row
    ([11, 12], 12)
    """

    table: pa.RecordBatch
    row_numbers: Ints
    source: str
    unreadable_rows: tuple[BadRow, ...] = ()
    files: tuple[FileStart, ...] = ()
    unnamed: tuple[str, ...] = ()
    is_file: bool = False

    @classmethod
    def from_table(cls, table: pa.Table | pa.RecordBatch, source: str = "table", first: int = 1) -> "TableBatch":
        """Make a batch of an in-memory table.

        Parameters
        ----------
        table : pyarrow.Table or pyarrow.RecordBatch
            The rows.
        source : str, default "table"
            Name of the source in messages.
        first : int, default 1
            Number of the first row.
        """
        if isinstance(table, pa.Table):
            arrays = [column.combine_chunks() for column in table.columns]
            table = pa.RecordBatch.from_arrays(arrays, schema=table.schema)
        return cls(table, np.arange(first, first + table.num_rows), source)

    def __len__(self) -> int:
        return len(self.row_numbers)

    def split(self, ends: Sequence[int]) -> list["TableBatch"]:
        """Split the rows behind the first `end` rows, for each of some ascending ends.

        Unreadable rows belong to the part of the row after them, or to the last part.
        """
        parts, unreadable = [], self.unreadable_rows
        for start, end in pairwise(dict.fromkeys([0, *ends, max(len(self), *ends, 0)])):
            numbers, is_last = self.row_numbers[start:end], end >= len(self)
            before = tuple(row for row in unreadable if is_last or row.row_number < numbers[-1])
            unreadable = unreadable[len(before) :]
            table = self.table.slice(start, end - start)
            parts.append(replace(self, table=table, row_numbers=numbers, unreadable_rows=before))
        return parts or [self]

    def positions_of(self, row_numbers: Ints) -> Ints:
        """Return the positions of rows of this batch, given their numbers in ascending order.

        Examples
        --------
        >>> batch = TableBatch.from_table(pa.table({"x": [5, 6, 7]}), first=11)
        >>> batch.positions_of(np.array([11, 13])).tolist()
        [0, 2]
        """
        return np.searchsorted(self.row_numbers, row_numbers)

    def bad_row(self, index: int, reason: str, column: str) -> BadRow:
        """Return the row at an index as a bad one, in which a column is invalid."""
        number = int(self.row_numbers[index])
        place = bisect_left(self.files, number, key=lambda each: each.rows_before) - 1
        file, rows_before = self.files[place] if self.files else ("", 0)
        return BadRow(number, reason, column, FileRow(file, number - rows_before) if file else None)

    @property
    def last_row(self) -> int:
        """Number of the last row read, unreadable rows included. Pass it as `skip_rows` to resume after this batch."""
        last = int(self.row_numbers[-1]) if len(self) else 0
        return max(last, self.unreadable_rows[-1].row_number if self.unreadable_rows else 0)


class Chunk(NamedTuple):
    """Consecutive rows as a reader returns them.

    Attributes
    ----------
    table : pyarrow.RecordBatch
        The readable rows.
    row_numbers : ndarray of int
        Their numbers in the file, starting at 1.
    unreadable_rows : list of BadRow
        Unreadable rows among and before them.
    """

    table: pa.RecordBatch
    row_numbers: Ints
    unreadable_rows: list[BadRow]

    def after_row(self, row_number: int) -> "Chunk":
        """Return the rows with numbers greater than `row_number`."""
        cut = int(np.searchsorted(self.row_numbers, row_number, side="right"))
        later = [row for row in self.unreadable_rows if row.row_number > row_number]
        return Chunk(self.table.slice(cut), self.row_numbers[cut:], later)

    def up_to_row(self, row_number: int) -> "Chunk":
        """Return the readable rows with numbers up to `row_number`."""
        cut = int(np.searchsorted(self.row_numbers, row_number, side="right"))
        return Chunk(self.table.slice(0, cut), self.row_numbers[:cut], [])


class Reader(Protocol):
    """Interface of the readers, one for each file format.

    Attributes
    ----------
    columns : list of str
        Column names.
    is_live : bool
        Whether the rows come from a pipe, so that a chunk may have no rows and the next one may be long in coming.
    has_incomplete_row : bool
        Whether the last row has been left out, because it may be incomplete. Known after the last chunk.
    unnamed : list of str
        Columns that have no name in the source, by the names that `name_columns` gives them.
    """

    columns: list[str]
    unnamed: list[str]
    is_live: bool
    has_incomplete_row: bool

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows in order. Raise StreamError where the file cannot be read any further."""

    def wait(self, seconds: float) -> bool:
        """Wait until the next chunk can be read without waiting, at most for some seconds; return whether it can."""

    def close(self) -> None:
        """Close the file."""


def check_column_names(names: list[str], source: str) -> list[str]:
    """Return the column names if there are any and all are distinct and nonempty; raise StreamError if not."""
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


def name_columns(names: list[str]) -> tuple[list[str], list[str]]:
    """Name the columns that have no name by their position.

    Parameters
    ----------
    names : list of str
        Column names, some of which may be empty.

    Returns
    -------
    names : list of str
        Names of all columns.
    unnamed : list of str
        Names of those that had none. All columns keep their names if none of them has one.

    Examples
    --------
    >>> name_columns(["", "a", "y"])
    (['column 1', 'a', 'y'], ['column 1'])
    """
    found, unnamed = list(names), list[str]()
    for place, name in enumerate(names, start=1) if any(name.strip() for name in names) else ():
        if not name.strip():
            own, number = f"column {place}", 2
            while own in found:
                own, number = f"column {place} ({number})", number + 1
            found[place - 1] = own
            unnamed.append(own)
    return found, unnamed


def concat_tables(tables: list[pa.RecordBatch], names: list[str]) -> pa.RecordBatch:
    """Concatenate tables by rows.

    A column with integers and floats becomes one of floats, unless an integer would lose digits. Others with several
    types become columns of strings.
    """
    if len(tables) == 1:
        return tables[0]
    columns = [_concat_arrays([table.column(i) for table in tables]) for i in range(len(names))]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _concat_arrays(arrays: list[pa.Array]) -> pa.Array:
    """Concatenate the parts of one column."""
    types = {array.type for array in arrays if not pa.types.is_null(array.type)}
    if not arrays:
        return pa.nulls(0)
    if len(types) > 1:
        arrays = _to_floats(arrays, types) or [to_strings(array) for array in arrays]
    elif types:
        arrays = [pc.cast(array, next(iter(types))) for array in arrays]
    return pa.concat_arrays(arrays)


def _to_floats(arrays: list[pa.Array], types: set[pa.DataType]) -> list[pa.Array] | None:
    """Convert integers and floats to floats; return None if there are other types, or if an integer is too large."""
    if not all(pa.types.is_integer(kind) or pa.types.is_float64(kind) for kind in types):
        return None
    try:
        return [pc.cast(array, pa.float64()) for array in arrays]
    except pa.ArrowInvalid:
        return None
