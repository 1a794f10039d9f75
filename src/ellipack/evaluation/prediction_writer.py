"""Predictions position as they are made, so that a run that was killed goes on with none lost and none twice.

They are only ever appended to a file. A saved run remembers how many bytes of it there are, after they were brought to
the disk; going on from there begins by cutting off whatever was position later.
"""

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from ellipack.errors import InputError, StreamError
from ellipack.evaluation.append_only_file import AppendOnlyFile, OutputPosition, OutputStream, StandardOutput
from ellipack.tabular.arrow import pa, parquet
from ellipack.validation import Floats, Ints

LABELED_COLUMNS, UNLABELED_COLUMNS = ("prediction", "label"), ("prediction",)
"""What there is of each row, besides its number."""

_GROUP_ROWS = 65_536
_PARQUET, _COMPRESSED = (".parquet", ".pq"), (".gz", ".zst")


class PredictionWriter(ABC):
    """Where predictions go: `add` them, `settle` what was added, and `finish`."""

    @abstractmethod
    def write(self, rows: Ints, *values: Floats) -> None:
        """Append a record for each row."""

    @abstractmethod
    def sync(self) -> OutputPosition:
        """Bring to the disk what was added; return how much there is."""

    @abstractmethod
    def finish(self) -> None:
        """Make the file whole, after the last row."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the file, whole or not."""


class NullPredictionWriter(PredictionWriter):
    """Predictions that nobody asked for."""

    def write(self, rows: Ints, *values: Floats) -> None:
        """Forget them."""

    def sync(self) -> OutputPosition:
        """Return that there are none."""
        return OutputPosition()

    def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class CsvPredictionWriter(PredictionWriter):
    """A line of text for each row, all digits of each number given."""

    def __init__(self, output: OutputStream, names: tuple[str, ...]) -> None:
        self._output = output
        if output.position.size == 0:
            output.write(f"{','.join(('row', *names))}\n".encode())

    def write(self, rows: Ints, *values: Floats) -> None:
        """Append a line for each row."""
        records = zip(rows.tolist(), *(column.tolist() for column in values), strict=True)
        self._output.write("".join(f"{','.join(map(repr, record))}\n" for record in records).encode())

    def sync(self) -> OutputPosition:
        """Bring to the disk what was added."""
        return self._output.sync()

    def finish(self) -> None:
        """Bring the last lines to the disk."""
        self.sync()

    def close(self) -> None:
        """Let go of the file."""
        self._output.close()


class ParquetPredictionWriter(PredictionWriter):
    """A Parquet file, which can't be appended to: records gather in a file beside it until the last row."""

    def __init__(self, path: str, names: tuple[str, ...], position: OutputPosition) -> None:
        self._path, self._dtype = Path(path), np.dtype([("row", "<i8"), *((name, "<f8") for name in names)])
        self._row_file = self._path.with_name(f".{self._path.name}.rows")
        self._partial = self._path.with_name(f".{self._path.name}.partial")
        if position.size and not self._row_file.exists() and self._path.exists():
            self._read_back_parquet()  # it was made whole, and now goes on
        self._output = AppendOnlyFile(self._row_file, position)
        self._keep_row_file = position.size > 0

    def write(self, rows: Ints, *values: Floats) -> None:
        """Append a record for each row."""
        records = np.empty(len(rows), dtype=self._dtype)
        for name, column in zip(self._dtype.names or (), (rows, *values), strict=True):
            records[name] = column
        self._output.write(records.tobytes())

    def sync(self) -> OutputPosition:
        """Bring to the disk what was added."""
        self._keep_row_file = True
        return self._output.sync()

    def finish(self) -> None:
        """Write the Parquet file, whole or not at all."""
        self.sync()
        try:
            self._write_parquet()
        except OSError as error:
            self._partial.unlink(missing_ok=True)
            raise StreamError(f"{self._path} can't be written: {error.strerror or error}") from error
        self._keep_row_file = False

    def close(self) -> None:
        """Let go of the records gathered, and remove them if no saved run can go on with them."""
        self._output.close()
        if not self._keep_row_file:
            self._row_file.unlink(missing_ok=True)

    def _write_parquet(self) -> None:
        """Write the records as Parquet."""
        names = self._dtype.names or ()
        schema = pa.schema([(name, pa.int64() if name == "row" else pa.float64()) for name in names])
        empty = not self._row_file.stat().st_size
        records: Any = np.empty(0, self._dtype) if empty else np.memmap(self._row_file, self._dtype, "r")
        with self._partial.open("wb") as file:
            with parquet.ParquetWriter(file, schema) as writer:
                for start in range(0, len(records), _GROUP_ROWS):
                    part = records[start : start + _GROUP_ROWS]
                    writer.write_table(pa.table({name: np.array(part[name]) for name in names}, schema))
            file.flush()
            os.fsync(file.fileno())
        self._partial.replace(self._path)

    def _read_back_parquet(self) -> None:
        """Write the rows of the Parquet file as records."""
        try:
            rows = parquet.ParquetFile(self._path)
            with self._partial.open("wb") as file:
                for batch in rows.iter_batches(_GROUP_ROWS):
                    records = np.empty(batch.num_rows, dtype=self._dtype)
                    for name in self._dtype.names or ():
                        records[name] = batch.column(name).to_numpy()
                    file.write(records.tobytes())
        except (pa.ArrowException, KeyError, OSError) as error:
            self._partial.unlink(missing_ok=True)
            raise StreamError(f"{self._path} holds no predictions to go on with: {error}") from error
        self._partial.replace(self._row_file)


def open_prediction_writer(
    path: str | None, names: tuple[str, ...], position: OutputPosition | None = None
) -> PredictionWriter:
    """Return where predictions go: by its name a CSV or a Parquet file, ``-`` for standard output, nowhere if None.

    Parameters
    ----------
    path : the file.
    names : of the numbers that there are for each row.
    position : how much of it a run that goes on has position; if nothing, the file begins anew.
    """
    position = position or OutputPosition()
    if path is None:
        return NullPredictionWriter()
    if path.endswith(_PARQUET):
        return ParquetPredictionWriter(path, names, position)
    if path.endswith(_COMPRESSED):
        raise InputError(f"predictions must go to a .csv or .parquet file, which are not compressed, got {path!r}")
    return CsvPredictionWriter(StandardOutput(position) if path == "-" else AppendOnlyFile(path, position), names)
