"""Read several files with the same columns as one table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ellipack.errors import StreamError
from ellipack.tabular.arrow import pa
from ellipack.tabular.input_file import display_name
from ellipack.tabular.table_batch import Chunk, FileRow, FileStart, Reader, escape_name


class SeveralFiles:
    """Reads files one after the other. Rows are numbered from the first row of the first file.

    Parameters
    ----------
    paths : sequence of str
        Paths of the files.
    open_file : callable
        Opens the reader of a path, given whether it is the last one. Only the last file may grow.

    Attributes
    ----------
    columns : list of str
        Column names of the first file. The others must have the same columns, in any order.
    unnamed : list of str
        Names that were given to columns of the first file without a name.
    is_live, has_incomplete_row : bool
        As those of the last file that was opened.
    files : list of FileStart
        The files that were opened so far.
    """

    def __init__(self, paths: Sequence[str], open_file: Callable[[str, bool], Reader]) -> None:
        self._paths, self._open_file = paths, open_file
        self._reader, self.files = self._open(0), list[FileStart]()
        self.columns, self.unnamed = self._reader.columns, self._reader.unnamed
        self.is_live, self.has_incomplete_row = False, False

    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows of all files."""
        rows_read = 0
        for place, path in enumerate(self._paths):
            if place:
                self._reader.close()
                self._reader = self._open(place)
                self._check_columns(path)
            first, name = rows_read, display_name(path)
            self.files.append(FileStart(name, first))
            for table, numbers, unreadable in self._reader.chunks():
                columns = [table.column(name) for name in self.columns]
                shifted = [
                    replace(row, row_number=first + row.row_number, file_row=FileRow(name, row.row_number))
                    for row in unreadable
                ]
                yield Chunk(
                    pa.RecordBatch.from_arrays(columns, names=self.columns), first + np.asarray(numbers), shifted
                )
                last = [int(numbers[-1])] if len(numbers) else []
                rows_read = max([rows_read, *(first + row for row in [*last, *(row.row_number for row in unreadable)])])
        self.has_incomplete_row = self._reader.has_incomplete_row

    def wait(self, seconds: float) -> bool:
        """Return True: nothing has to be waited for."""
        return True

    def close(self) -> None:
        """Close the file that is open."""
        self._reader.close()

    def _open(self, place: int) -> Reader:
        return self._open_file(self._paths[place], place == len(self._paths) - 1)

    def _check_columns(self, path: str) -> None:
        missing = [name for name in self.columns if name not in self._reader.columns]
        if missing:
            names = ", ".join(map(escape_name, missing[:20]))
            raise StreamError(f"{path} must have the columns of {self._paths[0]}, but it lacks: {names}")
