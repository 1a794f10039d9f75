"""Read a table of any format as a stream of batches: `open_table`."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Self

import numpy as np

from ellipack.choices import ON_ERROR_CHOICES, TABLE_FORMATS
from ellipack.errors import DomainError, InputError, StreamError
from ellipack.tabular.csv_reader import CsvReader
from ellipack.tabular.file_types import detect_binary_format
from ellipack.tabular.input_file import (
    GRACE_SECONDS,
    ReadableFile,
    Utf8Reader,
    check_is_file,
    check_is_text,
    decompress,
    detect_format,
    display_name,
    format_from_extension,
    open_input,
)
from ellipack.tabular.json_array import JsonArrayFile
from ellipack.tabular.ndjson_reader import NdjsonReader
from ellipack.tabular.parquet_reader import ParquetReader
from ellipack.tabular.several_files import SeveralFiles
from ellipack.tabular.table_batch import BadRow, Chunk, Reader, TableBatch, concat_tables
from ellipack.tabular.whole_table_readers import open_whole_table
from ellipack.validation import check_integer


@dataclass(frozen=True)
class FileOptions:
    """How files are read.

    Attributes
    ----------
    delimiter : str or None, default None
        Character between the fields of a CSV file. If None, the comma, semicolon, tab or vertical bar that occurs most
        often in the header.
    sheet : str or None, default None
        Sheet of an Excel file, or table of a database. It may be None if there is only one.
    take : collection of str or None, default None
        Columns that become features. If None, all of them. The lists and objects of other columns of JSON are text.
    drop : collection of str, default ()
        Columns that do not become features.
    """

    delimiter: str | None = None
    sheet: str | None = None
    take: Collection[str] | None = None
    drop: Collection[str] = ()

    def becomes_feature(self, name: str) -> bool:
        """Return whether a column becomes a feature, unless it is the target."""
        return (self.take is None or name in self.take) and name not in self.drop

    def __post_init__(self) -> None:
        if self.delimiter is not None and (
            len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '\r\n"'
        ):
            raise DomainError(f"delimiter must be one ASCII character other than quote, got {self.delimiter!r}")


_DEFAULT_FILE = FileOptions()
_MAX_PENDING_UNREADABLE = 10_000  # give up beyond this many, if fewer rows are readable


class TableStream:
    """Iterator over the batches of a table. All batches have the same size, except that the last may be smaller.

    A pipe may be alive, and its next row long in coming. Its batches end where no more rows are there, and are never
    empty.

    Use it as a context manager to close the file. Create it with `open_table`.

    Parameters
    ----------
    reader : Reader
        Reader of the file.
    name : str
        Name of the table in messages.
    batch_rows : int
        Rows per batch.
    skip_rows : int
        Data rows to skip.
    on_error : {"stop", "skip"}
        What to do at an unreadable row.

    Attributes
    ----------
    name : str
        Name of the table in messages.
    columns : list of str
        Column names.
    is_live : bool
        Whether the rows come from a pipe.
    batch_rows : int
        Rows per batch. It may be changed between batches.
    """

    def __init__(self, reader: Reader, name: str, *, batch_rows: int, skip_rows: int, on_error: str) -> None:
        self.name, self.columns, self.is_live = name, reader.columns, reader.is_live
        self._reader, self._chunks, self._ended = reader, reader.chunks(), False
        self._unnamed = tuple(reader.unnamed)
        self._files = reader.files if isinstance(reader, SeveralFiles) else []
        self.batch_rows, self._skip_rows, self._on_error = batch_rows, skip_rows, on_error
        self._pending_chunks: list[Chunk] = []
        self._pending_unreadable: list[BadRow] = []
        self._has_rows, self._n_peeked = False, 0
        self._fetch(1)
        if not self._has_rows:
            raise self._no_rows_error()

    def peek(self, rows: int, least: int = 1) -> TableBatch:
        """Return the next `rows` rows, fewer only at the end, without consuming them.

        Of a pipe, it returns those that come within `GRACE_SECONDS`, and waits for `least` rows. The next call returns
        the same ones.
        """
        if self.is_live and self._n_peeked:
            rows = min(rows, self._n_peeked)
        self._fetch(check_integer(rows, "rows", 1), min(rows, least), GRACE_SECONDS)
        self._n_peeked = min(rows, self._n_pending)
        return self._batch(rows, self._ended and self._n_pending <= rows)

    @property
    def has_incomplete_row(self) -> bool:
        """Whether the last row has been left out, because it may be incomplete. Known after the last batch."""
        return self._reader.has_incomplete_row

    @property
    def skipped_rows(self) -> int:
        """Number of rows that are skipped at the start."""
        return self._skip_rows

    def skip_to(self, row_number: int) -> TableBatch:
        """Skip the rows up to a row number, and return the readable ones among them that were not skipped before."""
        self._fetch(row_number - self._skip_rows + 1, row_number)
        chunks = [chunk.up_to_row(row_number) for chunk in self._pending_chunks]
        numbers = np.concatenate([np.empty(0, np.int64), *(chunk.row_numbers for chunk in chunks)])
        table = concat_tables([chunk.table for chunk in chunks], self.columns)
        self._drop_to(row_number)
        self._pending_unreadable = [row for row in self._pending_unreadable if row.row_number > row_number]
        self._skip_rows = row_number
        return TableBatch(table, numbers, self.name)

    def __iter__(self) -> Iterator[TableBatch]:
        return self

    def __next__(self) -> TableBatch:
        # Fetch one row more than the batch needs, to find out whether this batch has all rows that are there.
        self._fetch(self.batch_rows + 1)
        batch = self._batch(self.batch_rows, self._n_pending <= self.batch_rows)
        if not len(batch) and not batch.unreadable_rows:
            raise StopIteration
        self._n_peeked = 0
        self._drop_to(batch.last_row)
        self._pending_unreadable = self._pending_unreadable[len(batch.unreadable_rows) :]
        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def _no_rows_error(self) -> StreamError:
        if not self._pending_unreadable:
            return StreamError(f"{self.name} has columns but no rows")
        first = self._pending_unreadable[0]
        if self._on_error == "stop":
            return first.to_error(self.name)
        return StreamError(f"{first.describe(self.name)}: no row can be read")

    def _drop_to(self, row_number: int) -> None:
        """Drop the pending rows up to a row number."""
        self._pending_chunks = [
            chunk for each in self._pending_chunks if len((chunk := each.after_row(row_number)).row_numbers)
        ]

    @property
    def _n_pending(self) -> int:
        return sum(len(chunk.row_numbers) for chunk in self._pending_chunks)

    def _fetch(self, rows: int, least: int = 1, patience: float = 0.0) -> None:
        """Read chunks until `rows` rows are pending or the file ends.

        Once `least` rows of a pipe are pending, wait for more at most `patience` seconds. An unreadable row counts.
        """
        deadline = monotonic() + patience
        while not self._ended and self._n_pending < rows:
            has_enough = self._n_pending + len(self._pending_unreadable) >= least
            if has_enough and not self._reader.wait(deadline - monotonic()):
                break
            chunk = next(self._chunks, None)
            if chunk is None:
                self._ended = True
                break
            self._has_rows |= len(chunk.row_numbers) > 0
            left = chunk.after_row(self._skip_rows)
            self._pending_unreadable += left.unreadable_rows
            if len(left.row_numbers):
                self._pending_chunks.append(left)
            if len(self._pending_unreadable) > max(_MAX_PENDING_UNREADABLE, self._n_pending):
                first, count = self._pending_unreadable[0], len(self._pending_unreadable)
                reason = f"{count:,} rows from row {first.row_number:,} on can't be read; the first one {first.reason}"
                raise StreamError(f"{self.name}: {reason}: is it a table?")

    def _batch(self, rows: int, is_last: bool) -> TableBatch:
        """Return the first `rows` pending rows; with ``on_error="stop"``, raise at an unreadable row among them.

        If they are the last ones that are there, unreadable rows after them are among them, too.
        """
        chunks, wanted = [], rows
        for chunk in self._pending_chunks:
            chunks.append(Chunk(chunk.table.slice(0, wanted), chunk.row_numbers[:wanted], []))
            wanted -= len(chunks[-1].row_numbers)
            if not wanted:
                break
        numbers = np.concatenate([np.empty(0, np.int64), *(chunk.row_numbers for chunk in chunks)])
        reached = int(numbers[-1]) if len(numbers) else 0
        unreadable = tuple(row for row in self._pending_unreadable if is_last or row.row_number < reached)
        if unreadable and self._on_error == "stop":
            raise unreadable[0].to_error(self.name)
        table, files = concat_tables([chunk.table for chunk in chunks], self.columns), tuple(self._files)
        return TableBatch(table, numbers, self.name, unreadable, files, self._unnamed, is_file=True)


def open_table(
    path: str | Sequence[str],
    *,
    batch_rows: int = 4096,
    format: str | None = None,
    skip_rows: int = 0,
    on_error: str = "stop",
    may_grow: bool = False,
    later_columns: Sequence[str] = (),
    file_options: FileOptions = _DEFAULT_FILE,
) -> TableStream:
    r"""Open a table as a stream of batches. Memory use does not depend on the size of the table.

    Parameters
    ----------
    path : str or sequence of str
        Path of a file, or ``-`` for standard input, or paths of files with the same columns, which are read one after
        the other; their rows are numbered from the first row of the first file. Compression by gzip, zstd, bzip2, xz or
        zip is detected from the first bytes.
    batch_rows : int, default 4096
        Rows per batch. The last batch may be smaller.
    format : {"csv", "tsv", "json", "ndjson", "parquet", "feather", "excel", "sqlite", "duckdb"} or None, default None
        File format. If None, the first bytes of a binary file or the extension of the path decide; otherwise, the
        format is NDJSON if the file starts with ``{``, a JSON array if it starts with ``[{``, or else CSV.
    skip_rows : int, default 0
        Data rows to skip. To resume after a batch, pass its `last_row`.
    on_error : {"stop", "skip"}, default "stop"
        At an unreadable row, "stop" raises StreamError. "skip" omits the row and adds it to the `unreadable_rows` of
        its batch; the rows after it keep their numbers.
    may_grow : bool, default False
        Whether more may be appended to the last file. If so, its last row without a line end is not read, because it
        may be incomplete. Standard input ends where it ends.
    later_columns : sequence of str, default ()
        Columns that the first rows of a pipe may lack, if it holds NDJSON: they are missing values there.
    file_options : FileOptions, default FileOptions()
        Delimiter, sheet, and columns that become features.

    Returns
    -------
    TableStream
        Iterator over the batches.

    Raises
    ------
    StreamError
        If the file cannot be read, or at an unreadable row if `on_error` is "stop".
    DomainError
        If an argument is out of range.
    InputError
        If a delimiter or a sheet is given for a file that has none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "rides.csv"
    ...     _ = path.write_text("km,minutes\n1.5,9\n3,17\n2,12\n")
    ...     with open_table(str(path), batch_rows=2) as stream:
    ...         print(stream.columns, [len(batch) for batch in stream])
    ['km', 'minutes'] [2, 1]
    """
    skipped = check_integer(skip_rows, "skip_rows", 0)
    size = check_integer(batch_rows, "batch_rows", 1)
    if format is not None and format not in TABLE_FORMATS:
        raise DomainError(f"format must be one of {', '.join(TABLE_FORMATS)}, got {format!r}")
    if on_error not in ON_ERROR_CHOICES:
        raise DomainError(f"on_error must be one of {', '.join(ON_ERROR_CHOICES)}, got {on_error!r}")
    paths = [path] if isinstance(path, str) else list(path)
    may_grow = may_grow and "-" not in paths

    def open_file(each: str, is_last: bool = True, skip_rows: int = 0) -> Reader:
        grows = may_grow and is_last
        return _open_reader(each, format, skip_rows, file_options, may_grow=grows, later_columns=later_columns)

    reader = open_file(paths[0], skip_rows=skipped) if len(paths) == 1 else SeveralFiles(paths, open_file)
    name = display_name(paths[0]) + (f" and {len(paths) - 1:,} more" if len(paths) > 1 else "")
    try:
        return TableStream(reader, name, batch_rows=size, skip_rows=skipped, on_error=on_error)
    except BaseException:
        reader.close()
        raise


def _open_reader(
    path: str,
    format: str | None,
    skip_rows: int,
    options: FileOptions,
    *,
    may_grow: bool,
    later_columns: Sequence[str],
) -> Reader:
    """Return the reader for a format; detect the format if it is None."""
    name = display_name(path)
    format = format or detect_binary_format(path, name) or format_from_extension(path)
    if format is not None:
        _check_file_options(options, format, name)
    if format in ("feather", "excel", "sqlite", "duckdb"):
        check_is_file(path, format)
        return open_whole_table(path, name, format, options.sheet)
    file = open_input(path)
    if format == "parquet":
        return _open_parquet(file, name, skip_rows)
    content = decompress(file, path)
    try:
        if format in (None, "ndjson"):
            detected = detect_format(content, path)
            format = detected if format is None or detected == "json" else format
            _check_file_options(options, format, name)
        check_is_text(content, path)
        if format == "json":
            content, format = Utf8Reader(JsonArrayFile(content, name), name), "ndjson"
        if format == "ndjson":
            return NdjsonReader(
                content,
                name,
                skip_rows,
                may_grow=may_grow,
                later_columns=later_columns,
                is_flat=options.becomes_feature,
            )
        delimiter = options.delimiter or ("\t" if format == "tsv" else None)
        return CsvReader(content, name, delimiter, may_grow=may_grow)
    except BaseException:
        content.close()
        raise


def _check_file_options(options: FileOptions, format: str, name: str) -> None:
    """Raise InputError if the delimiter or the sheet is given for a file that has none."""
    if options.delimiter is not None and format not in ("csv", "tsv"):
        raise InputError(f"--delimiter needs a CSV file, but {name} is {format}")
    if options.sheet is not None and format not in ("excel", "sqlite", "duckdb"):
        raise InputError(f"--sheet needs an Excel file or a database, but {name} is {format}")


def _open_parquet(file: ReadableFile, name: str, skip_rows: int) -> Reader:
    try:
        return ParquetReader(file, name, skip_rows)
    except BaseException:
        file.close()
        raise
