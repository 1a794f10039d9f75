"""Reader of CSV files, delimited by commas, semicolons, tabs or vertical bars. All fields are read as strings."""

import re
from collections.abc import Iterator

import numpy as np

from ellipack.errors import StreamError
from ellipack.tabular.arrow import csv, pa, pc
from ellipack.tabular.input_file import BLOCK_BYTES, INVALID_UTF8, NOT_UTF8, Utf8Reader
from ellipack.tabular.table_batch import MISSING_VALUES, BadRow, Chunk, check_column_names, name_columns, quote_value
from ellipack.validation import Ints

_DELIMITERS = (",", ";", "\t", "|")
_DELIMITER_LINE = re.compile(rb'"?sep=([\t -!#-~])"?(\r\n|\r|\n)')
_SNIFFED_BYTES = 64  # read to find such a line
_MISSING_VALUES = [text for text in MISSING_VALUES if not text.startswith("-")]  # which slow negative numbers down


class CsvReader:
    """Reads a CSV file with a header. Empty lines do not count as rows.

    A row is unreadable if it has too few or too many fields, bytes that are not valid UTF-8, or a quote that is never
    closed. Unreadable rows count in the row numbers.

    This class splits the file into blocks of whole rows and lets pyarrow parse one block at a time. The streaming
    reader of pyarrow reads from background threads, which can crash the interpreter if it exits before they finish.

    Parameters
    ----------
    content : Utf8Reader
        The contents of the file.
    source : str
        Name of the source in messages.
    delimiter : str or None, default None
        Field delimiter. If None, the one that a first line such as ``sep=;`` names, which Excel writes, or the one that
        occurs most often in the header.
    may_grow : bool, default False
        Whether a last row without a line end may be incomplete, so that it is not read.

    Attributes
    ----------
    columns : list of str
        Column names, stripped of whitespace.
    unnamed : list of str
        Names that were given to columns without a name.
    is_live : bool
        Whether the rows come from a pipe.
    has_incomplete_row : bool
        Whether the last row has been left out, because it may be incomplete.
    """

    def __init__(
        self, content: Utf8Reader, source: str, delimiter: str | None = None, *, may_grow: bool = False
    ) -> None:
        self._content, self._source, self._may_grow = content, source, may_grow
        self.has_incomplete_row, self.is_live = False, content.is_live
        named = _read_delimiter_line(content)
        self._delimiter = delimiter or named or _detect_delimiter(content)
        self._rows_read = 0
        self._has_open_quote = False
        self.columns: list[str] = []
        self.unnamed: list[str] = []
        self._blocks = self._split_blocks()
        self._first = self._parse_block(next(filter(None, self._blocks), b"\n"))

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows block by block."""
        yield self._first
        for block in self._blocks:
            yield self._parse_block(block) if block else self._empty_chunk()
        if self._has_open_quote:
            yield self._empty_chunk(BadRow(self._rows_read + 1, "opens a quote that is never closed"))

    def wait(self, seconds: float) -> bool:
        """Wait until the next chunk can be read without waiting, at most for some seconds; return whether it can."""
        return self._content.wait(seconds)

    def close(self) -> None:
        """Close the file."""
        self._content.close()

    def _empty_chunk(self, *unreadable: BadRow) -> Chunk:
        return Chunk(self._first.table.slice(0, 0), np.empty(0, np.int64), list(unreadable))

    def _split_blocks(self) -> Iterator[bytes]:
        """Yield blocks of whole rows, about `BLOCK_BYTES` bytes each; an empty one if a pipe has no whole row yet."""
        rest, splitter = b"", _RowSplitter(self._delimiter)
        while more := self._content.read(BLOCK_BYTES):
            rest += more
            end = splitter.last_row_end(rest)
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > BLOCK_BYTES:
                place = f"{self._source}, row {self._rows_read + 1:,}"
                raise StreamError(f"{place}: is longer than {BLOCK_BYTES:,} bytes: is a quote open and never closed?")
            elif self.is_live:
                yield b""
        if rest and self._may_grow and self.columns:  # without columns, it is the header
            self.has_incomplete_row = True
            return
        self._has_open_quote = splitter.has_open_quote(rest)
        if rest and not self._has_open_quote:
            yield rest + b"\n"

    def _parse_block(self, block: bytes) -> Chunk:
        """Parse a block of rows. The first block starts with the header."""
        ragged: list[csv.InvalidRow] = []
        table = self._read_table(block, ragged)
        is_first = not self.columns
        if is_first:
            self.columns = self._check_header(table.schema.names)
        numbers = _numbers_excluding([row.number - is_first for row in ragged], table.num_rows)
        before = self._rows_read - is_first
        unreadable = [
            BadRow(before + row.number, _describe_ragged_row(row, before + row.number == 1)) for row in ragged
        ]
        rows = [column.combine_chunks() for column in table.columns]
        chunk = Chunk(pa.RecordBatch.from_arrays(rows, names=self.columns), self._rows_read + numbers, unreadable)
        self._rows_read += table.num_rows + len(ragged)
        return self._drop_invalid_utf8(chunk) if self._content.has_invalid_bytes else chunk

    def _read_table(self, block: bytes, ragged: list[csv.InvalidRow]) -> pa.Table:
        """Parse a block with pyarrow and append the rows with a wrong number of fields to `ragged`."""

        def collect(row: csv.InvalidRow) -> str:
            ragged.append(row)
            return "skip"

        try:
            return csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.columns),
                csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=collect),
                csv.ConvertOptions(
                    check_utf8=False,
                    default_column_type=pa.string(),
                    strings_can_be_null=True,
                    null_values=_MISSING_VALUES,
                ),
            )
        except pa.ArrowInvalid as error:
            place = f"{self._source}, after row {self._rows_read:,}"
            raise StreamError(f"{place}: can't be read as CSV ({str(error).splitlines()[0]})") from error

    def _check_header(self, header: list[str]) -> list[str]:
        """Return the stripped column names, also for columns that have none.

        Raises
        ------
        StreamError
            If they are not distinct names in UTF-8.
        """
        names = [name.strip() for name in header]
        if not any(names):
            raise StreamError(f"{self._source}: the first line contains no names: remove the lines above the header")
        if any(INVALID_UTF8 in name for name in names):
            raise StreamError(f"{self._source}: the header {NOT_UTF8}")
        if _is_data_row([name for name in names if name]):
            raise StreamError(f"{self._source}: the first row contains numbers, not names: add a header row")
        names, self.unnamed = name_columns(names)
        return check_column_names(names, self._source)

    def _drop_invalid_utf8(self, chunk: Chunk) -> Chunk:
        """Move rows with invalid UTF-8 to the unreadable rows of a chunk."""
        table, numbers, unreadable = chunk
        kept, found = np.ones(len(numbers), dtype=bool), []
        for name, column in zip(self.columns, table.columns, strict=True):
            marked = np.flatnonzero(pc.match_substring(column, INVALID_UTF8).fill_null(False)).tolist()
            found += [BadRow(int(numbers[row]), NOT_UTF8, name) for row in marked if kept[row]]
            kept[marked] = False
        unreadable = sorted([*unreadable, *found], key=lambda row: row.row_number)
        return Chunk(table.filter(pa.array(kept)), numbers[kept], unreadable)


class _RowSplitter:
    """Finds the ends of rows: line ends outside quoted fields.

    A quote opens a quoted field only at the start of a field; elsewhere it is an ordinary character.
    """

    def __init__(self, delimiter: str) -> None:
        # The pattern starts with the quote and looks behind afterwards, because a literal prefix is fast to search.
        before = rb'(?:(?<=[%s\r\n]")|(?<=\A"))' % re.escape(delimiter.encode())
        self._quoted = re.compile(rb'"' + before + rb'[^"]*(?:""[^"]*)*("|\Z)')

    def last_row_end(self, block: bytes) -> int:
        """Return the end of the last complete row, 0 if there is none."""
        end = _line_end(block, len(block))
        if b'"' not in block:
            return end
        for quoted in reversed(list(self._quoted.finditer(block))):
            if quoted.end() < end:
                break
            if quoted.start() < end:
                end = _line_end(block, quoted.start())
        return end

    def has_open_quote(self, rest: bytes) -> bool:
        """Return whether the bytes end inside a quoted field."""
        return any(not match[1] for match in self._quoted.finditer(rest))


def _line_end(block: bytes, before: int) -> int:
    """Return the position after the last line end in ``block[:before]``, 0 if there is none."""
    return max(block.rfind(b"\n", 0, before), block.rfind(b"\r", 0, before)) + 1


def _numbers_excluding(left_out: list[int], count: int) -> Ints:
    """Return the first `count` positive integers that are not in the sorted list `left_out`.

    Examples
    --------
    >>> _numbers_excluding([1, 4], 3).tolist()
    [2, 3, 5]
    """
    before = np.array(left_out, dtype=np.int64) - np.arange(1, len(left_out) + 1)
    places = np.arange(count)
    return np.asarray(1 + places + np.searchsorted(before, places, side="right"), dtype=np.int64)


def _describe_ragged_row(row: csv.InvalidRow, is_first: bool) -> str:
    """Return why a row with a wrong number of fields is unreadable."""
    hint = ""
    if "\n" in row.text.strip():
        hint = " (is a quote left open?)"
    elif (is_first or row.expected_columns == 1) and row.actual_columns > row.expected_columns:
        hint = " (are there lines above the header? remove them)"
    fields = f"has {row.actual_columns:,} fields where the header has {row.expected_columns:,}"
    return f"{fields}{hint}: {quote_value(row.text)}"


def _read_delimiter_line(content: Utf8Reader) -> str | None:
    """Consume a first line such as ``sep=;`` and return the delimiter that it names; return None if there is none."""
    found = _DELIMITER_LINE.match(content.peek(_SNIFFED_BYTES))
    if found is None:
        return None
    content.read(found.end())
    return found[1].decode()


def _detect_delimiter(content: Utf8Reader) -> str:
    """Return the delimiter that occurs most often in the header outside quotes; a comma if there is none."""
    lines = re.sub(rb'"[^"]*"', b"", content.peek(BLOCK_BYTES).lstrip()).splitlines()
    header = lines[0] if lines else b""  # nothing is left of a single quoted name
    return max(_DELIMITERS, key=lambda delimiter: header.count(delimiter.encode()))


def _is_data_row(names: list[str]) -> bool:
    """Return whether the header looks like data: all names are numbers and not increasing integers such as 0, 1, 2."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return not (all(name.isdecimal() for name in names) and numbers == sorted(numbers))
