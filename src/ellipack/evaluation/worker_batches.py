"""Batches of a table for many workers."""

from collections.abc import Iterator

from ellipack.tabular import TableBatch, TableStream

_MIN_BATCH_ROWS = 1024
_BATCH_DIVISOR = 4  # a batch has a quarter of the rows before it: several steps, so that few steps are cut short
_MAX_SHARD_ROWS = 8192  # a signal stops the run after a batch, within a few seconds
_MAX_BATCH_CELLS = 1 << 24


def worker_batch_rows(position: int, shards: int, columns: int) -> int:
    """Return the number of rows of a batch.

    How rows are cut into shards depends on batches, and must be the same for any files or partitions, and after a run
    was killed and resumed. So the size of a batch follows from the number of rows before it.

    Parameters
    ----------
    position : int
        Number of rows before the batch.
    shards : int
        Largest number of shards of a step.
    columns : int
        Number of columns of the table.

    Returns
    -------
    rows : int

    Examples
    --------
    >>> [worker_batch_rows(position, shards=8, columns=10) for position in (0, 10_000, 1_000_000)]
    [1024, 2500, 65536]
    """
    most = max(1, min(_MAX_SHARD_ROWS * shards, _MAX_BATCH_CELLS // columns))
    return min(most, max(_MIN_BATCH_ROWS, position // _BATCH_DIVISOR))


def worker_batches(source: TableStream, shards: int) -> Iterator[TableBatch]:
    """Yield the batches of a table for workers, and close it."""
    position = source.skipped_rows
    try:
        while True:
            source.batch_rows = worker_batch_rows(position, shards, len(source.columns))
            batch = next(source, None)
            if batch is None:
                return
            yield batch
            position = batch.last_row
    finally:
        source.close()
