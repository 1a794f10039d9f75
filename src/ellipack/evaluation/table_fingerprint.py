"""Recognize a table again by its rows: digests of the first and of the last rows that a run has learned."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ellipack.errors import ModelFileError
from ellipack.serialization import Archive
from ellipack.tabular import TableBatch
from ellipack.tabular.columns import decode_column
from ellipack.tabular.table_batch import to_strings

WINDOW_ROWS = 100
"""Number of rows whose digests are kept, at the start of a table and before the current position."""

_MAX_COLUMNS = 100  # bounds the cost for wide tables


@dataclass(frozen=True)
class TableFingerprint:
    """Digests of the first and of the last rows of a table.

    It does not depend on how rows are batched.

    Attributes
    ----------
    first : tuple of int
        Digests of the readable rows with numbers up to `WINDOW_ROWS`.
    last : tuple of (int, int)
        Numbers and digests of the readable rows among the last `WINDOW_ROWS` ones.
    position : int
        Number of the last row.

    Examples
    --------
    >>> from ellipack.tabular.arrow import pa
    >>> batch = TableBatch.from_table(pa.table({"x": ["1", "2"], "y": ["5", "6"]}))
    >>> fingerprint = TableFingerprint().extended_by(batch, ["x", "y"])
    >>> fingerprint.position, fingerprint.first == digest_rows(batch, ["x", "y"])
    (2, True)
    """

    first: tuple[int, ...] = ()
    last: tuple[tuple[int, int], ...] = ()
    position: int = 0

    def extended_by(self, batch: TableBatch, columns: Sequence[str]) -> "TableFingerprint":
        """Return the fingerprint after more rows."""
        position = max(self.position, batch.last_row)
        first = self.first
        if self.position < WINDOW_ROWS:
            first += digest_rows(_rows_between(batch, 0, WINDOW_ROWS), columns)
        recent = _rows_between(batch, position - WINDOW_ROWS, position)
        last = [pair for pair in self.last if pair[0] > position - WINDOW_ROWS]
        last += zip(recent.row_numbers.tolist(), digest_rows(recent, columns), strict=True)
        # A caller may number the rows of each batch from 1, which must not make the windows longer.
        return TableFingerprint(first[:WINDOW_ROWS], tuple(last[-WINDOW_ROWS:]), position)

    def has_same_start(self, head: TableBatch, columns: Sequence[str]) -> bool:
        """Return whether the first rows of a table are those of this one, as far as both go."""
        found = digest_rows(_rows_between(head, 0, WINDOW_ROWS), columns)
        count = min(len(found), len(self.first))
        return count > 0 and found[:count] == self.first[:count]

    def has_same_end(self, rows: TableBatch, columns: Sequence[str]) -> bool:
        """Return whether rows are the last ones of this table."""
        return tuple(zip(rows.row_numbers.tolist(), digest_rows(rows, columns), strict=True)) == self.last

    def to_archive(self) -> Archive:
        """Return the fingerprint as an archive."""
        last = np.array(self.last, dtype=np.int64).reshape(-1, 2)
        return Archive({"position": self.position}, {"first": np.array(self.first, dtype=np.int64), "last": last})

    @classmethod
    def from_archive(cls, archive: Archive) -> "TableFingerprint":
        """Restore a fingerprint; raise ModelFileError if it is invalid."""
        counts = archive.shape("first", 1)[0], archive.shape("last", 2)[0]
        if max(counts) > WINDOW_ROWS:
            raise ModelFileError(f"first and last must have at most {WINDOW_ROWS} rows, got {max(counts)}")
        first, last = archive.ints("first", counts[0]), archive.ints("last", counts[1], 2)
        pairs = tuple((number, digest) for number, digest in last.tolist())
        return cls(tuple(first.tolist()), pairs, archive.integer("position", 0))


def digest_rows(batch: TableBatch, columns: Sequence[str]) -> tuple[int, ...]:
    """Return a digest of the cells of each row in the given columns, as far as the table has them."""
    names = [name for name in columns[:_MAX_COLUMNS] if name in batch.table.schema.names]
    decoded = (decode_column(batch.table.column(name), batch.source, name) for name in names)
    cells = [to_strings(column).to_pylist() for column in decoded]
    return tuple(zlib.crc32(repr(row).encode("utf-8", "surrogatepass")) for row in zip(*cells, strict=True))


def _rows_between(batch: TableBatch, above: int, most: int) -> TableBatch:
    """Return the readable rows with numbers greater than `above` and up to `most`."""
    start, stop = np.searchsorted(batch.row_numbers, [above, most], side="right").tolist()
    return TableBatch(batch.table.slice(start, stop - start), batch.row_numbers[start:stop], batch.source)
