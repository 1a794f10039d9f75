"""Tables as streams of batches, whatever the file: `open_table`."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np

from ellipack.choices import ON_ERROR_CHOICES, TABLE_FORMATS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.csv_reader import DelimitedReader
from ellipack.tabular.input_file import (
    decompressed,
    name_of,
    named_format,
    opened,
    refuse_what_is_not_text,
    sniffed_format,
)
from ellipack.tabular.ndjson_reader import NdjsonReader
from ellipack.tabular.parquet_reader import ParquetReader
from ellipack.tabular.table_batch import BadRow, Piece, Reader, TableBatch, join
from ellipack.validation import check_integer

_MOST_UNREADABLE = 10_000  # waiting to be told at once, if there are even fewer that can be read


class TableStream:
    """The rows of a table in batches of one size, the last one maybe smaller; a context manager, to be iterated once.

    Attributes
    ----------
    name : what messages call it.
    columns : the names of its columns.
    """

    def __init__(self, reader: Reader, name: str, *, batch_rows: int, skip_rows: int, on_error: str) -> None:
        self.name, self.columns = name, reader.columns
        self._reader, self._pieces, self._ended = reader, reader.pieces(), False
        self._batch_rows, self._skip, self._on_error = batch_rows, skip_rows, on_error
        self._ready: list[Piece] = []
        self._unreadable: list[BadRow] = []
        self._has_rows = False
        self._fetch(1)
        if not self._has_rows:
            raise (
                self._unreadable[0].error(name) if self._unreadable else StreamError(f"{name} has columns but no rows")
            )

    def peek(self, rows: int) -> TableBatch:
        """Return the next `rows` rows, fewer if there are no more, and leave them to be iterated over."""
        self._fetch(check_integer(rows, "rows", 1))
        return self._batch(rows)

    def __iter__(self) -> Iterator[TableBatch]:
        return self

    def __next__(self) -> TableBatch:
        # One row more than is handed out, so that the last batch is known to be the last.
        self._fetch(self._batch_rows + 1)
        batch = self._batch(self._batch_rows)
        if not len(batch) and not batch.unreadable_rows:
            raise StopIteration
        self._ready = [piece for each in self._ready if len((piece := each.after(batch.last_row)).numbers)]
        self._unreadable = self._unreadable[len(batch.unreadable_rows) :]
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._reader.close()

    def _fetch(self, rows: int) -> None:
        """Have `rows` rows ready, or all that are left."""
        while not self._ended and sum(len(piece.numbers) for piece in self._ready) < rows:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                break
            self._has_rows |= len(piece.numbers) > 0
            left = piece.after(self._skip)
            self._unreadable += left.unreadable
            if len(left.numbers):
                self._ready.append(left)
            if len(self._unreadable) > max(_MOST_UNREADABLE, sum(len(piece.numbers) for piece in self._ready)):
                first, count = self._unreadable[0], len(self._unreadable)
                reason = f"{count:,} rows from row {first.row_number:,} on can't be read; that one {first.reason}"
                raise StreamError(f"{self.name}: {reason}: is it a table?")

    def _batch(self, rows: int) -> TableBatch:
        """Return the first `rows` rows that are ready; raise if one before the last of them can't be read."""
        pieces, wanted = [], rows
        for piece in self._ready:
            pieces.append(Piece(piece.table.slice(0, wanted), piece.numbers[:wanted], []))
            wanted -= len(pieces[-1].numbers)
            if not wanted:
                break
        is_last = self._ended and sum(len(piece.numbers) for piece in self._ready) <= rows
        numbers = np.concatenate([np.empty(0, np.int64), *(piece.numbers for piece in pieces)])
        reached = int(numbers[-1]) if len(numbers) else 0
        unreadable = tuple(row for row in self._unreadable if is_last or row.row_number < reached)
        if unreadable and self._on_error == "stop":
            raise unreadable[0].error(self.name)
        return TableBatch(join([piece.table for piece in pieces], self.columns), numbers, self.name, unreadable)


def open_table(
    path: str, *, batch_rows: int = 4096, format: str | None = None, skip_rows: int = 0, on_error: str = "stop"
) -> TableStream:
    """Open a table as a stream of batches, in memory that does not grow with it.

    Parameters
    ----------
    path : a file, or ``-`` for standard input. What is compressed by gzip or zstd is found to be so by its first bytes.
    batch_rows : rows in a batch, but for the last.
    format : ``csv``, ``tsv``, ``ndjson`` or ``parquet``. Left out, the file's name tells; if that does not either, it
        is NDJSON if it starts with ``{``, else CSV. A CSV file's delimiter is the one that its header has the most of:
        comma, semicolon or tab.
    skip_rows : rows of data to pass over, to go on where an earlier batch's `end` was.
    on_error : ``stop`` raises StreamError at a row that can't be read; ``skip`` goes on without it, the batch names it
        among its `unreadable`, and the rows after it keep their numbers.
    """
    skipped = check_integer(skip_rows, "skip_rows", 0)
    size = check_integer(batch_rows, "batch_rows", 1)
    if format is not None and format not in TABLE_FORMATS:
        raise DomainError(f"format must be one of {', '.join(TABLE_FORMATS)}, got {format!r}")
    if on_error not in ON_ERROR_CHOICES:
        raise DomainError(f"on_error must be one of {', '.join(ON_ERROR_CHOICES)}, got {on_error!r}")
    reader = _reader(path, format or named_format(path), skipped)
    try:
        return TableStream(reader, name_of(path), batch_rows=size, skip_rows=skipped, on_error=on_error)
    except BaseException:
        reader.close()
        raise


def _reader(path: str, format: str | None, skip_rows: int) -> Reader:
    """Return what reads a file of that format, or of the one it is found to have."""
    file = opened(path)
    if format == "parquet":
        file.close()  # it was opened only to say in our words if it can't be
        return ParquetReader(path, skip_rows)
    content = decompressed(file, path)
    try:
        if format is None:
            format = sniffed_format(content, path)
        refuse_what_is_not_text(content, path)
        if format == "ndjson":
            return NdjsonReader(content, name_of(path), skip_rows)
        return DelimitedReader(content, name_of(path), "\t" if format == "tsv" else None)
    except BaseException:
        content.close()
        raise
