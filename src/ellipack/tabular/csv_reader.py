"""CSV: fields told apart by a comma, a semicolon or a tab, read as text whatever they hold."""

import re
from collections.abc import Iterator

import numpy as np

from ellipack.errors import StreamError
from ellipack.tabular.arrow import csv, pa, pc
from ellipack.tabular.input_file import MARK, Utf8
from ellipack.tabular.table_batch import MISSING_VALUES, BadRow, Piece, distinct_names, shown
from ellipack.validation import Ints

BLOCK = 1 << 20
"""Bytes that are parsed at once, and a row may have."""

_DELIMITERS = (",", ";", "\t")


class DelimitedReader:
    """A CSV file with a header. Empty lines are passed over, and are no rows.

    A row with too few or too many fields is unreadable, and so is one with bytes that are not UTF-8 and one that opens
    a quote and never closes it. It keeps its number all the same.

    Rows are cut into blocks here and parsed block by block: pyarrow's own stream would read from threads of its own,
    which the interpreter may not survive if it ends before they do.
    """

    def __init__(self, content: Utf8, source: str, delimiter: str | None = None) -> None:
        self._content, self._source = content, source
        self._delimiter = delimiter or _likeliest_delimiter(content)
        self._behind = 0  # rows that were parsed
        self._ends_in_quote = False
        self.columns: list[str] = []
        self._blocks = self._cut()
        self._first = self._parsed(next(self._blocks, b"\n"))

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows."""
        yield self._first
        for block in self._blocks:
            yield self._parsed(block)
        if self._ends_in_quote:
            row = BadRow(self._behind + 1, "opens a quote that is never closed")
            yield Piece(self._first.table.slice(0, 0), np.empty(0, np.int64), [row])

    def close(self) -> None:
        """Let go of the file."""
        self._content.close()

    def _cut(self) -> Iterator[bytes]:
        """Yield whole rows, about `BLOCK` bytes of them at a time."""
        rest, rows = b"", _Rows(self._delimiter)
        while more := self._content.read(BLOCK):
            rest += more
            end = rows.end(rest)
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > BLOCK:
                place = f"{self._source}, row {self._behind + 1:,}"
                raise StreamError(f"{place}: is longer than {BLOCK:,} bytes: is a quote opened and never closed?")
        self._ends_in_quote = rows.ends_in_quote(rest)
        if rest and not self._ends_in_quote:
            yield rest + b"\n"

    def _parsed(self, block: bytes) -> Piece:
        """Return the rows of a block, the first of which has the names of the columns in its first row."""
        ragged: list[csv.InvalidRow] = []
        table = self._table(block, ragged)
        is_first = not self.columns
        if is_first:
            self.columns = self._checked(table.schema.names)
        numbers = _numbers_without([row.number - is_first for row in ragged], table.num_rows)
        unreadable = [BadRow(self._behind + row.number - is_first, _why_ragged(row)) for row in ragged]
        rows = [column.combine_chunks() for column in table.columns]
        piece = Piece(pa.RecordBatch.from_arrays(rows, names=self.columns), self._behind + numbers, unreadable)
        self._behind += table.num_rows + len(ragged)
        return self._without_marks(piece) if self._content.marked else piece

    def _table(self, block: bytes, ragged: list[csv.InvalidRow]) -> pa.Table:
        def put_aside(row: csv.InvalidRow) -> str:
            ragged.append(row)
            return "skip"

        try:
            return csv.read_csv(
                pa.BufferReader(block),
                csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.columns),
                csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=put_aside),
                csv.ConvertOptions(
                    check_utf8=False,
                    default_column_type=pa.string(),
                    strings_can_be_null=True,
                    null_values=MISSING_VALUES,
                ),
            )
        except pa.ArrowInvalid as error:
            place = f"{self._source}, after row {self._behind:,}"
            raise StreamError(f"{place}: can't be read as CSV ({str(error).splitlines()[0]})") from error

    def _checked(self, header: list[str]) -> list[str]:
        """Return the names in the header, without space around them, if they are names."""
        names = distinct_names([name.strip() for name in header], self._source)
        if any(MARK in name for name in names):
            raise StreamError(f"{self._source}: the header is not UTF-8: convert the file (iconv -t utf-8)")
        if _are_data(names):
            raise StreamError(f"{self._source}: the first row holds numbers, not names: put a row of names above it")
        return names

    def _without_marks(self, piece: Piece) -> Piece:
        """Return a piece without the rows that are not UTF-8."""
        table, numbers, unreadable = piece
        kept, found = np.ones(len(numbers), dtype=bool), []
        for name, column in zip(self.columns, table.columns, strict=True):
            marked = np.flatnonzero(pc.match_substring(column, MARK).fill_null(False)).tolist()
            found += [BadRow(int(numbers[row]), "is not valid UTF-8", name) for row in marked if kept[row]]
            kept[marked] = False
        unreadable = sorted([*unreadable, *found], key=lambda row: row.row_number)
        return Piece(table.filter(pa.array(kept)), numbers[kept], unreadable)


class _Rows:
    """Where rows end: at a line's end that is not in quotes. A quote begins where a field does, others are text."""

    def __init__(self, delimiter: str) -> None:
        # It starts with the quote, and only then looks at what is before it, since a literal is quick to find.
        before = rb'(?:(?<=[%s\r\n]")|(?<=\A"))' % delimiter.encode()
        self._quoted = re.compile(rb'"' + before + rb'[^"]*(?:""[^"]*)*("|\Z)')

    def end(self, block: bytes) -> int:
        """Return where the last whole row ends, 0 if there is none."""
        end = _line_end(block, len(block))
        if b'"' not in block:
            return end
        for quoted in reversed(list(self._quoted.finditer(block))):
            if quoted.end() < end:
                break
            if quoted.start() < end:
                end = _line_end(block, quoted.start())
        return end

    def ends_in_quote(self, rest: bytes) -> bool:
        """Return whether what is left ends inside of quotes."""
        return any(not match[1] for match in self._quoted.finditer(rest))


def _line_end(block: bytes, before: int) -> int:
    """Return the place after the last line's end in the first bytes of a block, 0 if there is none."""
    return max(block.rfind(b"\n", 0, before), block.rfind(b"\r", 0, before)) + 1


def _numbers_without(left_out: list[int], count: int) -> Ints:
    """Return the first numbers from 1 on, without those that are left out.

    >>> _numbers_without([1, 4], 3).tolist()
    [2, 3, 5]
    """
    before = np.array(left_out, dtype=np.int64) - np.arange(1, len(left_out) + 1)
    places = np.arange(count)
    return np.asarray(1 + places + np.searchsorted(before, places, side="right"), dtype=np.int64)


def _why_ragged(row: csv.InvalidRow) -> str:
    hint = " (a quote left open?)" if "\n" in row.text.strip() else ""
    fields = f"has {row.actual_columns:,} fields where the header has {row.expected_columns:,}"
    return f"{fields}{hint}: {shown(row.text)}"


def _likeliest_delimiter(content: Utf8) -> str:
    """Return which delimiter the header has the most of, outside of quotes; a comma if there is none."""
    header = re.sub(rb'"[^"]*"', b"", content.peek(BLOCK).lstrip()).splitlines()[0]
    return max(_DELIMITERS, key=lambda delimiter: header.count(delimiter.encode()))


def _are_data(names: list[str]) -> bool:
    """Return whether names are rather the first row of data: all of them numbers, and not counting up (0, 1, 2)."""
    try:
        numbers = [float(name) for name in names]
    except ValueError:
        return False
    return not (all(name.isdecimal() for name in names) and numbers == sorted(numbers))
