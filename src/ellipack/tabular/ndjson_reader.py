"""Reader of newline-delimited JSON (NDJSON), one object per line.

pyarrow parses blocks of lines. If that fails, the block is parsed line by line to find the invalid lines.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ellipack.errors import StreamError
from ellipack.tabular.arrow import json as arrow_json
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.cell_arrays import cells_to_array
from ellipack.tabular.input_file import BLOCK_BYTES, GRACE_SECONDS, INVALID_UTF8, NOT_UTF8, Utf8Reader
from ellipack.tabular.table_batch import (
    MAX_EXACT_FLOAT,
    BadRow,
    Chunk,
    check_column_names,
    escape_name,
    is_valid_unicode,
    quote_value,
)

_MAX_LINE_BYTES = 1 << 24
_MAX_EXTRA_BRACKETS = 100  # beyond one per line: pyarrow recurses into nested values, so limit the depth
_MAX_INTEGER_LENGTH = 20  # of 64 bits, with its sign; longer ones are read as text
_LONG_INTEGER = re.compile(rb":\s*-?[0-9]{16,}\s*[,}]")  # which may lose digits as a float
_Cell = int | float | bool | str | None
_Object = dict[str, _Cell]


class NdjsonReader:
    """Reads newline-delimited JSON objects whose values are numbers, strings, true, false or null.

    Each nonblank line is a row. The columns are the keys in the first `BLOCK_BYTES` bytes; a key that a row lacks is a
    missing value. A row is unreadable if it is not an object, has a duplicate key, a list or an object as a value, or a
    key that is not a column.

    Integers are exact: a column of integers has type int64 or uint64. It is text if it has larger ones, or floats and
    integers beyond 2**53. Chunks may differ in type, but `to_strings` gives the same string for a value in each.

    Parameters
    ----------
    content : Utf8Reader
        The contents of the file.
    source : str
        Name of the source in messages.
    skip_rows : int
        Number of rows that the caller skips. Blocks that end before are not parsed.
    may_grow : bool, default False
        Whether a last line without a line end may be incomplete. It is not read then, unless it is an object.
    later_columns : sequence of str, default ()
        Columns of a pipe that its first rows may lack.
    is_flat : callable or None, default None
        Returns whether a list or an object in a column makes its row unreadable. Otherwise it is read as text. If None,
        this is so in all columns.

    Attributes
    ----------
    columns : list of str
        Column names.
    unnamed : list of str
        Empty: all keys must be names.
    is_live : bool
        Whether the rows come from a pipe.
    has_incomplete_row : bool
        Whether the last row has been left out, because it may be incomplete.
    """

    def __init__(
        self,
        content: Utf8Reader,
        source: str,
        skip_rows: int,
        *,
        may_grow: bool = False,
        later_columns: Sequence[str] = (),
        is_flat: Callable[[str], bool] | None = None,
    ) -> None:
        self._source, self._content, self._skip_rows, self._may_grow = source, content, skip_rows, may_grow
        self._is_flat = is_flat or (lambda _: True)
        self.has_incomplete_row, self.is_live = False, content.is_live
        self._types: dict[str, pa.DataType] = {}  # of columns that have had a value other than numbers
        self.columns: list[str] = []
        self.unnamed: list[str] = []
        self._blocks = self._split_blocks()
        first = next(filter(None, self._blocks), b"")
        self._first = self._parse_block(first, len(_nonblank_lines(first)), 1)
        self.columns = check_column_names(self.columns, source)
        if self.is_live:
            self._first = self._with_columns(self._first, later_columns)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows, without parsing blocks that are skipped entirely."""
        yield self._first
        rows_read = len(self._first.row_numbers) + len(self._first.unreadable_rows)
        for block in self._blocks:
            count = len(_nonblank_lines(block))
            if not block:
                yield self._first.after_row(len(self._first.row_numbers) + len(self._first.unreadable_rows))
            elif rows_read + count > self._skip_rows:
                yield self._parse_block(block, count, rows_read + 1)
            rows_read += count

    def wait(self, seconds: float) -> bool:
        """Wait until the next chunk can be read without waiting, at most for some seconds; return whether it can."""
        return self._content.wait(seconds)

    def close(self) -> None:
        """Close the file."""
        self._content.close()

    def _split_blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole lines, about `BLOCK_BYTES` bytes each; an empty one if a pipe has no whole line yet."""
        rest = b""
        while more := self._content.read(BLOCK_BYTES):
            if not self.columns:  # rows that come at once may have other keys
                more += self._content.read_soon(BLOCK_BYTES - len(more), GRACE_SECONDS)
            lines, newline, after = more.rpartition(b"\n")
            if newline:
                yield rest + lines + newline
                rest = after
            else:
                rest += more
                if self.is_live:
                    yield b""
            if len(rest) > _MAX_LINE_BYTES:
                raise StreamError(
                    f"{self._source}: a line is longer than {_MAX_LINE_BYTES:,} bytes: is it one JSON object per line?"
                )
        if rest.strip() and self._may_grow and not _is_object(rest):
            self.has_incomplete_row = True
        elif rest.strip():
            yield rest + b"\n"

    def _with_columns(self, chunk: Chunk, names: Sequence[str]) -> Chunk:
        """Return the first chunk with more columns, which are empty so far."""
        more = [name for name in dict.fromkeys(names) if name not in self.columns]
        self.columns += more
        columns = [*chunk.table.columns, *(pa.nulls(chunk.table.num_rows) for _ in more)]
        return chunk._replace(table=pa.RecordBatch.from_arrays(columns, names=self.columns))

    def _parse_block(self, block: bytes, count: int, first: int) -> Chunk:
        """Parse a block of `count` rows, the first of which has number `first`."""
        table = self._parse_with_pyarrow(block, count)
        if table is not None:
            return Chunk(table, np.arange(first, first + count), [])
        return self._parse_by_line(block, first)

    def _parse_with_pyarrow(self, block: bytes, count: int) -> pa.RecordBatch | None:
        """Parse a block with pyarrow; return None if it needs parsing line by line."""
        brackets = block.count(b"{") + block.count(b"[")
        begun = block.count(b"\n{") + block.startswith(b"{")
        if (
            begun != count
            or brackets > count + _MAX_EXTRA_BRACKETS
            or (self._content.has_invalid_bytes and INVALID_UTF8.encode() in block)
        ):
            return None
        table = self._read_typed(block)
        if table is None or table.num_rows != count:
            return None
        if not self.columns:
            self.columns = table.schema.names
        if not set(table.schema.names) <= set(self.columns):
            return None
        nulls = pa.nulls(count)
        present = set(table.schema.names)
        columns = [table.column(name).combine_chunks() if name in present else nulls for name in self.columns]
        return pa.RecordBatch.from_arrays(columns, names=self.columns)

    def _read_typed(self, block: bytes) -> pa.Table | None:
        """Parse a block. Numbers have the type that pyarrow infers, other columns have that of `_column_type`.

        The block is parsed again if pyarrow inferred other types. The result is None if integers have lost digits.
        """
        options = arrow_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
        order: list[str] = []
        while True:
            schema = pa.schema(list(self._types.items()))
            how = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
            try:
                table = arrow_json.read_json(pa.BufferReader(block), options, how)
            except pa.ArrowInvalid:
                return None
            inferred = {field.name: field.type for field in table.schema if field.name not in self._types}
            if any(pa.types.is_nested(kind) for kind in inferred.values()):
                return None
            known = {name: _column_type(kind) for name, kind in inferred.items() if not _is_open(kind)}
            self._types |= known
            order = order or table.schema.names  # pyarrow puts columns with explicit types first
            if all(inferred[name] == kind for name, kind in known.items()):
                return None if _has_lost_digits(table, block) else table.select(order)

    def _parse_by_line(self, block: bytes, first: int) -> Chunk:
        """Parse a block line by line and separate readable and unreadable rows."""
        objects, numbers, unreadable = [], [], []
        is_first_block = not self.columns
        for number, line in enumerate(_nonblank_lines(block), start=first):
            try:
                objects.append(_parse_object(line.decode(), None if is_first_block else self.columns, self._is_flat))
                numbers.append(number)
            except RecursionError:
                unreadable.append(BadRow(number, "is nested too deeply"))
            except _InvalidLineError as error:
                unreadable.append(BadRow(number, str(error), error.column))
        if is_first_block:
            self.columns = list(dict.fromkeys(key for each in objects for key in each))
            if not self.columns and unreadable:
                raise StreamError(f"{unreadable[0].describe(self._source)}: no row can be read")
        columns = [cells_to_array([each.get(name) for each in objects]) for name in self.columns]
        return Chunk(pa.RecordBatch.from_arrays(columns, names=self.columns), np.array(numbers, np.int64), unreadable)


class _InvalidLineError(ValueError):
    """A line that is not a valid row."""

    def __init__(self, reason: str, column: str | None = None) -> None:
        super().__init__(reason)
        self.column = column


def _nonblank_lines(block: bytes) -> list[bytes]:
    """Return the nonblank lines of a block."""
    return [line for line in block.split(b"\n") if line.strip(b" \t\r")]


def _is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object. No object is the beginning of a longer one."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse_object(line: str, columns: list[str] | None, is_flat: Callable[[str], bool]) -> _Object:
    """Parse a line as an object whose keys are in `columns`; raise _InvalidLineError if it is not one.

    Values must not be lists or objects in columns for which `is_flat` is true, and become text in others.
    """
    if INVALID_UTF8 in line:
        raise _InvalidLineError(NOT_UTF8)
    try:
        found = json.loads(line, parse_int=_parse_integer, object_pairs_hook=_key_value_pairs)
    except (json.JSONDecodeError, RecursionError) as error:
        raise _InvalidLineError(f"is not JSON ({error}): {quote_value(line)}") from error
    if not isinstance(found, _KeyValuePairs):
        raise _InvalidLineError(f"is not a JSON object: {quote_value(line)}")
    cells: _Object = {}
    for key, value in found:
        if key in cells:
            raise _InvalidLineError("is a duplicate key", key)
        if isinstance(value, list) and is_flat(key):
            remedy = f"flatten the column, or run with --drop '{escape_name(key)}'"
            raise _InvalidLineError(f"is a list or an object: {remedy}", key)
        cell = _to_json(value) if isinstance(value, list) else value
        if not is_valid_unicode(key) or (isinstance(cell, str) and not is_valid_unicode(cell)):
            raise _InvalidLineError("is not valid Unicode", key if is_valid_unicode(key) else None)
        if columns is not None and key not in columns:
            raise _InvalidLineError(
                f"is a key that does not occur in the first {BLOCK_BYTES:,} bytes: add it there as null", key
            )
        cells[key] = cell
    return cells


def _to_json(value: Any) -> str:
    """Return a list or an object as JSON text."""
    return json.dumps(_to_plain(value), ensure_ascii=False)


def _to_plain(value: Any) -> Any:
    """Return a parsed value with dictionaries in place of `_KeyValuePairs`."""
    if isinstance(value, _KeyValuePairs):
        return {key: _to_plain(each) for key, each in value}
    return [_to_plain(each) for each in value] if isinstance(value, list) else value


class _KeyValuePairs(list[tuple[str, Any]]):
    """The items of a JSON object, duplicate keys included."""


def _key_value_pairs(pairs: list[tuple[str, Any]]) -> _KeyValuePairs:
    """Mark a list of items as a JSON object."""
    return _KeyValuePairs(pairs)


def _parse_integer(text: str) -> int | str:
    """Return an integer, or its text if it has more than 64 bits for sure."""
    return int(text) if len(text) <= _MAX_INTEGER_LENGTH else text


def _is_open(kind: pa.DataType) -> bool:
    """Return whether pyarrow infers the type anew in each block: that of numbers, or of a column without values."""
    return bool(pa.types.is_null(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _column_type(kind: pa.DataType) -> pa.DataType:
    """Return the column type to use for a type that pyarrow inferred and that is not numeric: Boolean or string."""
    return kind if pa.types.is_boolean(kind) else pa.string()


def _has_lost_digits(table: pa.Table, block: bytes) -> bool:
    """Return whether a block may have integers beyond `MAX_EXACT_FLOAT` in columns that pyarrow read as floats."""
    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    sizes = (pc.max(pc.abs(column)).as_py() or 0.0 for column in floats)
    return any(size >= MAX_EXACT_FLOAT for size in sizes) and _LONG_INTEGER.search(block) is not None
