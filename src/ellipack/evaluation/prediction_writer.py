"""Write predictions to a file so that an interrupted run can resume without losing or repeating any.

Predictions are only appended. A saved run contains the position up to which the file was synced to disk. Resuming
truncates the file to that position.
"""

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from ellipack.errors import InputError, StreamError
from ellipack.evaluation.append_only_file import (
    AppendOnlyFile,
    OutputPosition,
    OutputStream,
    StandardOutput,
    read_position,
)
from ellipack.serialization.atomic_file import atomic_file, check_is_replaceable, hidden_sibling
from ellipack.tabular.arrow import pa, parquet
from ellipack.validation import Floats, Ints

LABELED_COLUMNS, UNLABELED_COLUMNS = ("prediction", "label"), ("prediction",)
"""Columns of a prediction file besides the row number, with and without labels."""

_GROUP_ROWS = 65_536
_ROW_BYTES = 24  # of a row with a label in a row file
_PARQUET, _COMPRESSED = (".parquet", ".pq"), (".gz", ".zst")


class PredictionWriter(ABC):
    """Writer of predictions. Call `write` for each batch, `sync` before saving a run, and `finish` at the end."""

    @abstractmethod
    def write(self, rows: Ints, *values: Floats) -> None:
        """Append rows.

        Parameters
        ----------
        rows : ndarray of int
            Row numbers.
        *values : ndarray of float
            One array for each column.
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

    def write(self, rows: Ints, *values: Floats) -> None:
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
    names : tuple of str
        Column names besides ``row``.
    """

    def __init__(self, output: OutputStream, names: tuple[str, ...]) -> None:
        self._output = output
        if output.position.size == 0:
            output.write(f"{','.join(('row', *names))}\n".encode())

    def write(self, rows: Ints, *values: Floats) -> None:
        """Append a line for each row."""
        records = zip(rows.tolist(), *(column.tolist() for column in values), strict=True)
        self._output.write("".join(f"{','.join(map(repr, record))}\n" for record in records).encode())

    def sync(self) -> OutputPosition:
        """Sync the rows written so far to disk."""
        return self._output.sync()

    def finish(self) -> None:
        """Sync the last rows to disk."""
        self.sync()

    def close(self) -> None:
        """Close the file."""
        self._output.close()


class ParquetPredictionWriter(PredictionWriter):
    """Writer of a Parquet file.

    Parquet files cannot be appended to. Rows are collected in a hidden row file beside it, and `finish` converts them.

    Parameters
    ----------
    path : str
        Path of the Parquet file.
    names : tuple of str
        Column names besides ``row``.
    position : OutputPosition
        Where to resume in the row file.
    """

    def __init__(self, path: str, names: tuple[str, ...], position: OutputPosition) -> None:
        self._path, self._dtype = Path(path), np.dtype([("row", "<i8"), *((name, "<f8") for name in names)])
        self._row_file = hidden_sibling(self._path, "rows")
        try:
            check_is_replaceable(Path(os.path.realpath(path)))
        except OSError as error:
            raise StreamError(f"{path} can't be written: {error}") from error
        if position.size and not self._row_file.exists() and self._path.exists():
            self._read_back_parquet()  # the Parquet file is complete, and the run continues
        self._output = AppendOnlyFile(self._row_file, position)
        self._keep_row_file = position.size > 0

    def write(self, rows: Ints, *values: Floats) -> None:
        """Append rows to the row file."""
        records = np.empty(len(rows), dtype=self._dtype)
        for name, column in zip(self._dtype.names or (), (rows, *values), strict=True):
            records[name] = column
        self._output.write(records.tobytes())

    def sync(self) -> OutputPosition:
        """Sync the rows written so far to disk."""
        self._keep_row_file = True
        return self._output.sync()

    def finish(self) -> None:
        """Write the Parquet file atomically."""
        self.sync()
        try:
            self._write_parquet()
        except OSError as error:
            raise StreamError(f"{self._path} can't be written: {error.strerror or error}") from error
        self._keep_row_file = False

    def close(self) -> None:
        """Close the row file, and remove it unless a saved run may need it."""
        self._output.close()
        if not self._keep_row_file:
            self._row_file.unlink(missing_ok=True)

    def _write_parquet(self) -> None:
        """Convert the row file to Parquet."""
        names = self._dtype.names or ()
        schema = pa.schema([(name, pa.int64() if name == "row" else pa.float64()) for name in names])
        with (
            self._row_file.open("rb") as rows,
            atomic_file(self._path) as file,
            parquet.ParquetWriter(file, schema) as writer,
        ):
            while data := rows.read(_GROUP_ROWS * self._dtype.itemsize):
                records: Any = np.frombuffer(data, self._dtype)
                writer.write_table(pa.table({name: np.array(records[name]) for name in names}, schema))

    def _read_back_parquet(self) -> None:
        """Convert the Parquet file back to a row file."""
        try:
            with self._path.open("rb") as source, atomic_file(self._row_file) as file:
                for batch in parquet.ParquetFile(source).iter_batches(_GROUP_ROWS):
                    records = np.empty(batch.num_rows, dtype=self._dtype)
                    for name in self._dtype.names or ():
                        records[name] = batch.column(name).to_numpy()
                    file.write(records.tobytes())
        except (pa.ArrowException, KeyError, OSError) as error:
            raise StreamError(f"{self._path} contains no predictions to resume: {error}") from error


def holds_predictions(path: str | None, position: OutputPosition) -> bool:
    """Return whether a file holds the predictions up to a position. A Parquet file is recognized by its rows."""
    if path in (None, "-") or not position.size or not os.path.isfile(path):
        return False
    if not path.endswith(_PARQUET):
        return read_position(path, position.size) == position
    try:
        return bool(parquet.read_metadata(path).num_rows * _ROW_BYTES == position.size)
    except (pa.ArrowException, OSError, ValueError):
        return False


def open_prediction_writer(
    path: str | None, names: tuple[str, ...], position: OutputPosition | None = None
) -> PredictionWriter:
    """Open a writer of predictions.

    Parameters
    ----------
    path : str or None
        Path of a CSV or Parquet file, which the extension determines; ``-`` for standard output as CSV. If None,
        predictions are discarded.
    names : tuple of str
        Column names besides ``row``.
    position : OutputPosition or None, default None
        Where a resumed run continues. If None, the file is overwritten.

    Returns
    -------
    PredictionWriter
        The writer.

    Raises
    ------
    InputError
        If the extension is that of a compressed file.
    StreamError
        If the file cannot be written or is not the one to resume.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "predictions.csv"
    ...     writer = open_prediction_writer(str(path), UNLABELED_COLUMNS)
    ...     writer.write(np.array([1, 2]), np.array([0.5, 0.25]))
    ...     writer.finish()
    ...     writer.close()
    ...     print(path.read_text().split())
    ['row,prediction', '1,0.5', '2,0.25']
    """
    position = position or OutputPosition()
    if path is None:
        return NullPredictionWriter()
    if path.endswith(_PARQUET):
        return ParquetPredictionWriter(path, names, position)
    if path.endswith(_COMPRESSED):
        raise InputError(f"predictions must go to an uncompressed .csv or .parquet file, got {path!r}")
    return CsvPredictionWriter(StandardOutput(position) if path == "-" else AppendOnlyFile(path, position), names)
