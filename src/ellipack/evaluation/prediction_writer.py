"""Write predictions to a file so that an interrupted run can resume without losing or repeating any.

Predictions are only appended. A saved run contains the position up to which the file was synced to disk. Resuming
truncates the file to that position.
"""

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from ellipack.errors import InputError, StreamError
from ellipack.evaluation.append_only_file import (
    AppendOnlyFile,
    OutputPosition,
    OutputStream,
    StandardOutput,
    read_position,
)
from ellipack.memory_errors import raise_if_memory_ran_out
from ellipack.serialization.atomic_file import atomic_file, check_is_replaceable, hidden_sibling
from ellipack.tabular.arrow import pa, parquet
from ellipack.validation import Floats, Ints

LABELED_COLUMNS, UNLABELED_COLUMNS = ("prediction", "label"), ("prediction",)
"""Columns of a prediction file besides the row number, with and without labels."""

Kept = Sequence[Sequence[str | None]]
"""The cells of each column that is passed through to the predictions."""

_GROUP_ROWS = 65_536
_CSV, _PARQUET = (".csv", ""), (".parquet", ".pq")
_POSITION_KEY = b"ellipack.position"  # in a Parquet file, of its row file


class PredictionWriter(ABC):
    """Writer of predictions. Call `write` for each batch, `sync` before saving a run, and `finish` at the end."""

    @abstractmethod
    def write(self, rows: Ints, *values: Floats, kept: Kept = ()) -> None:
        """Append rows.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers.
        *values : ndarray of float
            One array for each column; NaN where there is no value.
        kept : sequence of sequence of str or None, default ()
            Cells of each column that is passed through.
        """

    @abstractmethod
    def sync(self) -> OutputPosition:
        """Sync the rows written so far to disk and return the position."""

    @abstractmethod
    def finish(self) -> None:
        """Complete the file after the last row."""

    @abstractmethod
    def close(self) -> None:
        """Close the file, complete or not."""


class NullPredictionWriter(PredictionWriter):
    """Writer that discards predictions."""

    def write(self, rows: Ints, *values: Floats, kept: Kept = ()) -> None:
        """Discard rows."""

    def sync(self) -> OutputPosition:
        """Return the position at the start."""
        return OutputPosition()

    def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class CsvPredictionWriter(PredictionWriter):
    """Writer of a CSV file, with enough digits to restore each float exactly.

    Parameters
    ----------
    output : OutputStream
        Where to write.
    names : sequence of str
        Column names, starting with ``row``.
    """

    def __init__(self, output: OutputStream, names: Sequence[str]) -> None:
        self._output = output
        if output.position.size == 0:
            output.write(_format_header(names))

    def write(self, rows: Ints, *values: Floats, kept: Kept = ()) -> None:
        """Append a line for each row."""
        self._output.write(_format_rows(rows.tolist(), [column.tolist() for column in values], kept))

    def sync(self) -> OutputPosition:
        """Sync the rows written so far to disk."""
        return self._output.sync()

    def finish(self) -> None:
        """Sync the last rows to disk."""
        self.sync()

    def close(self) -> None:
        """Close the file."""
        self._output.close()


def _format_header(names: Sequence[str]) -> bytes:
    return f"{','.join(map(_format_text, names))}\n".encode()


def _format_rows(rows: list[int], values: Sequence[list[float]], kept: Kept) -> bytes:
    """Return rows as lines of a CSV file: the number, the cells that are passed through, then the values."""
    columns: list[Iterable[str]] = [map(str, rows), *(map(_format_text, column) for column in kept)]
    columns += [map(_format_number, column) for column in values]
    return "".join(f"{','.join(cells)}\n" for cells in zip(*columns, strict=True)).encode()


def _format_number(value: float) -> str:
    return "" if math.isnan(value) else repr(value)


def _format_text(value: str | None) -> str:
    """Return a cell, in quotes if it has special characters or is empty. A missing value has no quotes."""
    if value is None:
        return ""
    if value and not any(each in value for each in ',"\r\n'):
        return value
    return '"' + value.replace('"', '""') + '"'


class ParquetPredictionWriter(PredictionWriter):
    """Writer of a Parquet file.

    Parquet files cannot be appended to. Rows are collected in a hidden row file beside it, and `finish` converts them.
    Each line of the row file is a row as a JSON array; the first one has the names.

    Parameters
    ----------
    path : str
        Path of the Parquet file.
    names : sequence of str
        Column names, starting with ``row``.
    n_kept : int
        Number of columns after ``row`` that are passed through as text.
    position : OutputPosition
        Where to resume in the row file.
    """

    def __init__(self, path: str, names: Sequence[str], n_kept: int, position: OutputPosition) -> None:
        self._path = Path(path)
        types = [pa.int64(), *[pa.string()] * n_kept, *[pa.float64()] * (len(names) - 1 - n_kept)]
        self._schema = pa.schema(list(zip(names, types, strict=True)))
        self._row_file = hidden_sibling(self._path, "rows")
        try:
            check_is_replaceable(Path(os.path.realpath(path)))
        except OSError as error:
            raise StreamError(f"{path} can't be written: {error}") from error
        if position.size and not self._row_file.exists() and self._path.exists():
            self._read_back_parquet()  # the Parquet file is complete, and the run continues
        self._keep_row_file = position.size > 0
        self._output = AppendOnlyFile(self._row_file, position)
        if position.size == 0:
            self._output.write(_json_lines([names]))

    def write(self, rows: Ints, *values: Floats, kept: Kept = ()) -> None:
        """Append a line for each row."""
        numbers = [[None if math.isnan(each) else each for each in column.tolist()] for column in values]
        self._output.write(_json_lines(zip(rows.tolist(), *kept, *numbers, strict=True)))

    def sync(self) -> OutputPosition:
        """Sync the rows written so far to disk."""
        self._keep_row_file = True
        return self._output.sync()

    def finish(self) -> None:
        """Write the Parquet file atomically."""
        position = self.sync()
        try:
            self._write_parquet(position)
        except OSError as error:
            raise StreamError(f"{self._path} can't be written: {error.strerror or error}") from error
        except ValueError as error:
            raise_if_memory_ran_out(error)
            raise
        self._keep_row_file = False

    def close(self) -> None:
        """Close the row file, and remove it unless a saved run may need it."""
        self._output.close()
        if not self._keep_row_file:
            self._row_file.unlink(missing_ok=True)

    def _write_parquet(self, position: OutputPosition) -> None:
        """Convert the row file to Parquet."""
        schema = self._schema.with_metadata({_POSITION_KEY: _describe(position)})
        with (
            self._row_file.open("rb") as lines,
            atomic_file(self._path) as file,
            # If a dictionary gets no memory, Arrow may write a wrong value without an error.
            parquet.ParquetWriter(file, schema, use_dictionary=False) as writer,
        ):
            next(lines)  # the names
            while group := b",".join(islice(lines, _GROUP_ROWS)):
                columns = map(pa.array, zip(*json.loads(b"[%b]" % group), strict=True), schema.types)
                writer.write_batch(pa.RecordBatch.from_arrays(list(columns), schema=schema))

    def _read_back_parquet(self) -> None:
        """Convert the Parquet file back to a row file."""
        try:
            with self._path.open("rb") as source, atomic_file(self._row_file) as file:
                file.write(_json_lines([self._schema.names]))
                table = parquet.ParquetFile(source, pre_buffer=False)
                for batch in table.iter_batches(_GROUP_ROWS, columns=self._schema.names, use_threads=False):
                    columns = (column.to_pylist() for column in batch.cast(self._schema).columns)
                    file.write(_json_lines(zip(*columns, strict=True)))
        except (pa.ArrowException, ValueError, OSError) as error:
            raise_if_memory_ran_out(error)
            raise StreamError(f"{self._path} contains no predictions to resume: {error}") from error


def _json_lines(rows: Iterable[Sequence[object]]) -> bytes:
    """Return a line for each row, with enough digits to restore each float exactly."""
    return "".join(f"{json.dumps(cells)}\n" for cells in rows).encode()


def _describe(position: OutputPosition) -> bytes:
    return f"{position.size} {position.checksum}".encode()


def holds_predictions(path: str | None, position: OutputPosition) -> bool:
    """Return whether a file holds the predictions up to a position. A Parquet file says so itself."""
    if path in (None, "-") or not position.size or not os.path.isfile(path):
        return False
    if not _is_parquet(path):
        return read_position(path, position.size) == position
    try:
        return bool((parquet.read_metadata(path).metadata or {}).get(_POSITION_KEY) == _describe(position))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_memory_ran_out(error)  # otherwise another table could overwrite the predictions
        return False


def check_prediction_path(path: str) -> None:
    """Raise `InputError` if the extension of a file is not that of an uncompressed CSV or Parquet file.

    Examples
    --------
    >>> check_prediction_path("p.xlsx")
    Traceback (most recent call last):
        ...
    ellipack.errors.InputError: predictions must go to an uncompressed .csv or .parquet file, or to one without an \
extension, got 'p.xlsx'
    """
    file = Path(path)
    if file.suffix.lower() not in (*_CSV, *_PARQUET) and (file.is_file() or not file.exists()):
        rule = "an uncompressed .csv or .parquet file, or to one without an extension"
        raise InputError(f"predictions must go to {rule}, got {path!r}")


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(_PARQUET)


def open_prediction_writer(
    path: str | None, names: tuple[str, ...], position: OutputPosition | None = None, keep: tuple[str, ...] = ()
) -> PredictionWriter:
    """Open a writer of predictions.

    Parameters
    ----------
    path : str or None
        Path of a CSV or Parquet file, which the extension determines. Without one it is CSV, and so is standard output,
        ``-``. If None,
        predictions are discarded.
    names : tuple of str
        Column names besides ``row``.
    position : OutputPosition or None, default None
        Where a resumed run continues. If None, the file is overwritten.
    keep : tuple of str, default ()
        Names of the columns that are passed through. They come after ``row``.

    Returns
    -------
    PredictionWriter
        The writer.

    Raises
    ------
    InputError
        If the extension is not one of them.
    StreamError
        If the file cannot be written or is not the one to resume.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     writer = open_prediction_writer(str(path), UNLABELED_COLUMNS)
    ...     writer.write(np.array([1, 2]), np.array([0.5, 0.25]))
    ...     writer.finish()
    ...     writer.close()
    ...     print(path.read_text().split())
    ['row,prediction', '1,0.5', '2,0.25']
    """
    position, columns = position or OutputPosition(), ("row", *keep, *names)
    if path is None:
        return NullPredictionWriter()
    check_prediction_path(path)
    if _is_parquet(path):
        return ParquetPredictionWriter(path, columns, len(keep), position)
    return CsvPredictionWriter(StandardOutput(position) if path == "-" else AppendOnlyFile(path, position), columns)
