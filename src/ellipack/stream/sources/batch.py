"""What a source hands out: rows of a table, with the numbers that they have in the file."""

from dataclasses import dataclass

import numpy as np

from ellipack.errors import StreamError
from ellipack.stream.arrow import pa
from ellipack.validation import Ints


@dataclass(frozen=True)
class BadRow:
    """A row that can't be used.

    Attributes
    ----------
    number : its place among the rows of data, from 1.
    reason : what is wrong with it.
    column : the name of the column at fault, if it is one column's.
    """

    number: int
    reason: str
    column: str | None = None

    def error(self, source: str) -> StreamError:
        """Return the error that stops at this row."""
        place = f"{source}, row {self.number:,}" + (f", column '{self.column}'" if self.column is not None else "")
        return StreamError(f"{place}: {self.reason}: fix it, or run with --on-error skip")


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : the rows.
    numbers : for each, its place among the rows of data in the source, from 1.
    source : what messages call the source.
    unreadable : rows before the last of these that could not be read, and so are not among them.
    """

    table: pa.RecordBatch
    numbers: Ints
    source: str
    unreadable: tuple[BadRow, ...] = ()

    @classmethod
    def of(cls, table: pa.Table | pa.RecordBatch, source: str = "table", first: int = 1) -> "Batch":
        """Return a table that was not read from a source as a batch, its first row numbered `first`."""
        if isinstance(table, pa.Table):
            arrays = [column.combine_chunks() for column in table.columns]
            table = pa.RecordBatch.from_arrays(arrays, schema=table.schema)
        return cls(table, np.arange(first, first + table.num_rows), source)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def end(self) -> int:
        """The rows of the source that are behind once this batch is: where to resume, as `skip_rows`."""
        last = int(self.numbers[-1]) if len(self) else 0
        return max(last, self.unreadable[-1].number if self.unreadable else 0)
