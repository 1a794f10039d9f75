"""Reader of Parquet files. Row groups that are skipped entirely are not read.

The file is not memory-mapped: a file that is truncated while it is mapped kills the process.
"""

from collections.abc import Iterator

import numpy as np

from ellipack.errors import StreamError
from ellipack.memory_errors import raise_if_memory_ran_out
from ellipack.tabular.arrow import pa, parquet
from ellipack.tabular.input_file import ReadableFile
from ellipack.tabular.table_batch import Chunk, check_column_names

_CHUNK_ROWS, _BUFFER_BYTES = 1 << 14, 1 << 18


class ParquetReader:
    """Reads a Parquet file.

    Parameters
    ----------
    file : ReadableFile
        The file.
    source : str
        Name of the source in messages.
    skip_rows : int
        Number of rows that the caller skips. Row groups that end before are not read.

    Attributes
    ----------
    columns : list of str
        Column names.
    unnamed : list of str
        Empty: all columns must have names.
    is_live : bool
        False: a Parquet file is not read from a pipe.
    has_incomplete_row : bool
        False: a Parquet file is complete, or can't be read.
    """

    is_live = has_incomplete_row = False

    def __init__(self, file: ReadableFile, source: str, skip_rows: int) -> None:
        self._source, self._skip_rows = source, skip_rows
        self.unnamed: list[str] = []
        try:
            # Pre-buffering, or no buffer, would hold a whole row group in memory.
            self._file = parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise_if_memory_ran_out(error)
            raise self._read_error(error, 0) from error
        try:
            self.columns = check_column_names(self._file.schema_arrow.names, source)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise_if_memory_ran_out(error)
            raise self._read_error(error, 0) from error

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows, without reading row groups that are skipped entirely."""
        sizes = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        ends = np.cumsum(sizes, dtype=np.int64)
        groups = [i for i, end in enumerate(ends) if end > self._skip_rows] or list(range(len(sizes)))[-1:]
        rows_read = int(ends[groups[0]] - sizes[groups[0]]) if groups else 0
        try:
            for table in self._file.iter_batches(_CHUNK_ROWS, row_groups=groups, use_threads=False):
                table.validate(full=True)  # strings may not be UTF-8
                yield Chunk(table, np.arange(rows_read + 1, rows_read + table.num_rows + 1), [])
                rows_read += table.num_rows
        except (pa.ArrowException, OSError) as error:
            raise_if_memory_ran_out(error)
            raise self._read_error(error, rows_read) from error

    def wait(self, seconds: float) -> bool:
        """Return True: nothing has to be waited for."""
        return True

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)

    def _read_error(self, error: Exception, rows_read: int) -> StreamError:
        """Return the error for a file that is not valid Parquet."""
        place = f", after row {rows_read:,}" if rows_read else ""
        return StreamError(f"{self._source}{place}: can't be read as Parquet ({str(error).splitlines()[0]})")
