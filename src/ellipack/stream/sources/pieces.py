"""What the readers of the formats have in common: rows in pieces of whatever size suits the format."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ellipack.errors import StreamError
from ellipack.stream.arrow import pa, pc
from ellipack.stream.sources.batch import BadRow
from ellipack.stream.sources.cells import as_text, shown
from ellipack.validation import Ints


class Piece(NamedTuple):
    """Some rows, their numbers in the file, and those among and before them that could not be read."""

    table: pa.RecordBatch
    numbers: Ints
    unreadable: list[BadRow]

    def after(self, skipped: int) -> "Piece":
        """Return the part of the piece that comes after the first `skipped` rows of the file."""
        cut = int(np.searchsorted(self.numbers, skipped, side="right"))
        later = [row for row in self.unreadable if row.number > skipped]
        return Piece(self.table.slice(cut), self.numbers[cut:], later)


class Reader(Protocol):
    """A file of one format: what its columns are called, and its rows in order."""

    columns: list[str]

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows; raise StreamError where the file can't be read on."""

    def close(self) -> None:
        """Let go of the file."""


def distinct_names(names: list[str], source: str) -> list[str]:
    """Return column names if there are any, none is empty and no two are the same."""
    if not names:
        raise StreamError(f"{source} has no columns")
    seen = set()
    for place, name in enumerate(names, start=1):
        if not name.strip():
            raise StreamError(f"{source}: column {place} of {len(names)} has no name: name it in the header")
        if name in seen:
            raise StreamError(f"{source}: two columns are called {shown(name)}: rename one of them")
        seen.add(name)
    return names


def join(tables: list[pa.RecordBatch], names: list[str]) -> pa.RecordBatch:
    """Return tables one below the other; a column that is of several types becomes text."""
    if len(tables) == 1:
        return tables[0]
    columns = [_join([table.column(i) for table in tables]) for i in range(len(names))]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _join(arrays: list[pa.Array]) -> pa.Array:
    types = {array.type for array in arrays if not pa.types.is_null(array.type)}
    if not arrays:
        return pa.nulls(0)
    if len(types) > 1:
        arrays = [as_text(array) for array in arrays]
    elif types:
        arrays = [pc.cast(array, next(iter(types))) for array in arrays]
    return pa.concat_arrays(arrays)
