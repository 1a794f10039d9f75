"""Readers of files that are not text: Feather, Excel, SQLite and DuckDB. Excel and DuckDB need their packages."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from ellipack.errors import StreamError
from ellipack.memory_errors import raise_if_memory_ran_out
from ellipack.tabular.arrow import pa
from ellipack.tabular.cell_arrays import cells_to_array
from ellipack.tabular.table_batch import Chunk, check_column_names, name_columns, quote_value

_CHUNK_ROWS = 1 << 14
_PACKAGES = {"excel": ("openpyxl", "an Excel file"), "duckdb": ("duckdb", "a DuckDB database")}


class BatchReader:
    """Reads a table that a library returns in batches.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        The rows.
    columns : list of str
        Column names.
    source : str
        Name of the source in messages.
    close : callable
        Closes the file.

    Attributes
    ----------
    columns : list of str
        Column names.
    unnamed : list of str
        Names that were given to columns without a name.
    is_live, has_incomplete_row : bool
        False: such a file is complete, and is not read from a pipe.
    """

    is_live = has_incomplete_row = False

    def __init__(
        self, batches: Iterator[pa.RecordBatch], columns: list[str], source: str, close: Callable[[], object]
    ) -> None:
        self._batches, self._source, self._close = batches, source, close
        names, self.unnamed = name_columns(columns)
        self.columns = check_column_names(names, source)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows."""
        rows_read = 0
        try:
            for table in self._batches:
                table.validate(full=True)
                named = pa.RecordBatch.from_arrays(table.columns, names=self.columns)
                yield Chunk(named, np.arange(rows_read + 1, rows_read + table.num_rows + 1), [])
                rows_read += table.num_rows
        except (pa.ArrowException, sqlite3.Error, OSError) as error:
            raise_if_memory_ran_out(error)
            reason = str(error).splitlines()[0]
            raise StreamError(f"{self._source}, after row {rows_read:,}: can't be read ({reason})") from error

    def wait(self, seconds: float) -> bool:
        """Return True: nothing has to be waited for."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._close()


def open_whole_table(path: str, source: str, format: str, sheet: str | None) -> BatchReader:
    """Open a file of a format that is not text.

    Parameters
    ----------
    path : str
        Path of the file.
    source : str
        Name of the file in messages.
    format : {"feather", "excel", "sqlite", "duckdb"}
        Format of the file.
    sheet : str or None
        Sheet of an Excel file or table of a database. None if there is only one.

    Raises
    ------
    StreamError
        If the file can't be read, a package is missing, or the sheet must be chosen.
    """
    openers = {"feather": _open_feather, "excel": _open_excel, "sqlite": _open_sqlite, "duckdb": _open_duckdb}
    try:
        return openers[format](path, source, sheet)
    except ModuleNotFoundError as error:
        package, what = _PACKAGES[format]
        raise StreamError(f"{source}: this is {what}: pip install {package}, or export it as CSV") from error
    except (pa.ArrowException, sqlite3.Error, OSError, ValueError, KeyError) as error:
        raise_if_memory_ran_out(error)
        raise StreamError(f"{source}: can't be read as {format} ({str(error).splitlines()[0]})") from error


def _open_feather(path: str, source: str, sheet: str | None) -> BatchReader:
    file = pa.OSFile(path)
    reader = pa.ipc.open_file(file)
    batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
    return BatchReader(batches, reader.schema.names, source, file.close)


def _open_sqlite(path: str, source: str, sheet: str | None) -> BatchReader:
    address = f"{Path(path).resolve().as_uri()}?mode=ro"  # read only
    connection = sqlite3.connect(address, uri=True, check_same_thread=False)
    with closing(connection.execute("select name from sqlite_master where type in ('table', 'view')")) as found:
        table = _choose([name for (name,) in found if not name.startswith("sqlite_")], source, sheet)
    rows = connection.execute(f"select * from {_quoted(table)}")
    names = [column[0] for column in rows.description]
    return BatchReader(_to_batches(rows, names), names, source, connection.close)


def _open_duckdb(path: str, source: str, sheet: str | None) -> BatchReader:
    duckdb = import_module("duckdb")
    try:
        connection = duckdb.connect(path, read_only=True)
        table = _choose([name for (name,) in connection.execute("show tables").fetchall()], source, sheet)
        reader = pa.RecordBatchReader.from_stream(connection.sql(f"select * from {_quoted(table)}"))
    except duckdb.Error as error:
        raise OSError(str(error)) from error
    return BatchReader(iter(reader), reader.schema.names, source, connection.close)


def _open_excel(path: str, source: str, sheet: str | None) -> BatchReader:
    openpyxl = import_module("openpyxl")
    with _any_error_as_os_error():
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    rows = _excel_rows(book[_choose(book.sheetnames, source, sheet)])
    header = next((row for row in rows if any(cell is not None for cell in row)), ())
    names = ["" if name is None else str(name).strip() for name in header]
    while names and not names[-1]:
        names.pop()
    return BatchReader(_to_batches((row[: len(names)] for row in rows), names), names, source, book.close)


def _excel_rows(sheet: Any) -> Iterator[Any]:
    """Yield the rows of a sheet."""
    with _any_error_as_os_error():
        yield from sheet.iter_rows(values_only=True)


@contextmanager
def _any_error_as_os_error() -> Iterator[None]:
    """Raise OSError for the many errors by which openpyxl says that a file is damaged."""
    try:
        yield
    except Exception as error:
        raise OSError(str(error) or type(error).__name__) from error


def _choose(names: list[str], source: str, sheet: str | None) -> str:
    """Return the sheet or table to read; raise StreamError if it has to be chosen, or does not exist."""
    if sheet is None and len(names) == 1:
        return names[0]
    if sheet not in names:
        wanted = f"no table {quote_value(sheet)}" if sheet is not None else f"{len(names):,} tables"
        raise StreamError(f"{source} has {wanted}: choose one with --sheet: {', '.join(names[:20])}")
    return str(sheet)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _to_batches(rows: Iterator[Any], names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield rows of Python objects as batches. Rows without any value do not count."""
    filled = (row for row in rows if any(cell is not None for cell in row))
    while block := list(islice(filled, _CHUNK_ROWS)):
        columns = [cells_to_array([row[i] for row in block]) for i in range(len(names))]
        yield pa.RecordBatch.from_arrays(columns, names=names)
