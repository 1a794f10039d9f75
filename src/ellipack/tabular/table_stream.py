"""Tables as streams of batches, whatever the file: `open_table`."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np

from ellipack.choices import ON_ERROR_CHOICES, TABLE_FORMATS
from ellipack.errors import DomainError, StreamError
from ellipack.tabular.csv_reader import CsvReader
from ellipack.tabular.input_file import (
    check_is_text,
    decompress,
    detect_format,
    display_name,
    format_from_extension,
    open_input,
)
from ellipack.tabular.ndjson_reader import NdjsonReader
from ellipack.tabular.parquet_reader import ParquetReader
from ellipack.tabular.table_batch import BadRow, Chunk, Reader, TableBatch, concat_tables
from ellipack.validation import check_integer

_MAX_PENDING_UNREADABLE = 10_000  # waiting to be told at once, if there are even fewer that can be read


class TableStream:
    """The rows of a table in batches of one size, the last one maybe smaller; a context manager, to be iterated once.

    Attributes
    ----------
    name : what messages call it.
    columns : the names of its columns.
    """

    def __init__(self, reader: Reader, name: str, *, batch_rows: int, skip_rows: int, on_error: str) -> None:
        self.name, self.columns = name, reader.columns
        self._reader, self._chunks, self._ended = reader, reader.chunks(), False
        self._batch_rows, self._skip_rows, self._on_error = batch_rows, skip_rows, on_error
        self._pending_chunks: list[Chunk] = []
        self._pending_unreadable: list[BadRow] = []
        self._has_rows = False
        self._fetch(1)
        if not self._has_rows:
            raise (
                self._pending_unreadable[0].to_error(name)
                if self._pending_unreadable
                else StreamError(f"{name} has columns but no rows")
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
        self._pending_chunks = [
            chunk for each in self._pending_chunks if len((chunk := each.after_row(batch.last_row)).row_numbers)
        ]
        self._pending_unreadable = self._pending_unreadable[len(batch.unreadable_rows) :]
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
        while not self._ended and sum(len(chunk.row_numbers) for chunk in self._pending_chunks) < rows:
            chunk = next(self._chunks, None)
            if chunk is None:
                self._ended = True
                break
            self._has_rows |= len(chunk.row_numbers) > 0
            left = chunk.after_row(self._skip_rows)
            self._pending_unreadable += left.unreadable_rows
            if len(left.row_numbers):
                self._pending_chunks.append(left)
            if len(self._pending_unreadable) > max(
                _MAX_PENDING_UNREADABLE, sum(len(chunk.row_numbers) for chunk in self._pending_chunks)
            ):
                first, count = self._pending_unreadable[0], len(self._pending_unreadable)
                reason = f"{count:,} rows from row {first.row_number:,} on can't be read; that one {first.reason}"
                raise StreamError(f"{self.name}: {reason}: is it a table?")

    def _batch(self, rows: int) -> TableBatch:
        """Return the first `rows` rows that are ready; raise if one before the last of them can't be read."""
        chunks, wanted = [], rows
        for chunk in self._pending_chunks:
            chunks.append(Chunk(chunk.table.slice(0, wanted), chunk.row_numbers[:wanted], []))
            wanted -= len(chunks[-1].row_numbers)
            if not wanted:
                break
        is_last = self._ended and sum(len(chunk.row_numbers) for chunk in self._pending_chunks) <= rows
        numbers = np.concatenate([np.empty(0, np.int64), *(chunk.row_numbers for chunk in chunks)])
        reached = int(numbers[-1]) if len(numbers) else 0
        unreadable = tuple(row for row in self._pending_unreadable if is_last or row.row_number < reached)
        if unreadable and self._on_error == "stop":
            raise unreadable[0].to_error(self.name)
        return TableBatch(
            concat_tables([chunk.table for chunk in chunks], self.columns), numbers, self.name, unreadable
        )


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
    reader = _open_reader(path, format or format_from_extension(path), skipped)
    try:
        return TableStream(reader, display_name(path), batch_rows=size, skip_rows=skipped, on_error=on_error)
    except BaseException:
        reader.close()
        raise


def _open_reader(path: str, format: str | None, skip_rows: int) -> Reader:
    """Return what reads a file of that format, or of the one it is found to have."""
    file = open_input(path)
    if format == "parquet":
        file.close()  # it was open_input only to say in our words if it can't be
        return ParquetReader(path, skip_rows)
    content = decompress(file, path)
    try:
        if format is None:
            format = detect_format(content, path)
        check_is_text(content, path)
        if format == "ndjson":
            return NdjsonReader(content, display_name(path), skip_rows)
        return CsvReader(content, display_name(path), "\t" if format == "tsv" else None)
    except BaseException:
        content.close()
        raise
