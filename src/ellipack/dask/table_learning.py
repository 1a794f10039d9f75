"""A `TableRegressor` from the rows of a Dask data frame or of Parquet files.

The encoding of a row depends on all rows before it, so that this process encodes the rows. It holds one batch of them,
and the next partition of a data frame.
"""

from collections.abc import Iterator
from typing import Any

import dask.dataframe as dd
import numpy as np
import pyarrow.parquet as pq
from distributed import Client

from ellipack.dask.learned_stream import LearnedStream, StreamIntervals, Wanted, concatenate
from ellipack.dask.progress import ProgressBar
from ellipack.dask.sources import find_parquet_files
from ellipack.dask.workers import ClusterWorkers
from ellipack.errors import InputError
from ellipack.evaluation.run import BatchResult
from ellipack.evaluation.worker_batches import worker_batches
from ellipack.tables.regressor import TableRegressor, aligned
from ellipack.tabular import TableBatch, open_table


def learn_tables(model: TableRegressor, X: Any, workers: ClusterWorkers, wanted: Wanted) -> LearnedStream:
    """Predict and learn the rows of a Dask data frame or of Parquet files; see `progressive`."""
    if model.target is None:
        raise InputError("target must name the column of the labels: TableRegressor(target=...)")
    coverage = None if wanted.coverages is None else wanted.coverages.tolist()
    if isinstance(X, dd.DataFrame):
        frames = _frames(X, workers.client, wanted.progress)
        results = model.progressive_batches(frames, coverage=coverage, workers=workers)
    else:
        paths = [str(path) for path in find_parquet_files(X)]
        rows = sum(pq.read_metadata(path).num_rows for path in paths)
        stream = open_table(paths, on_error=model.on_error)
        batches = _shown(worker_batches(stream, workers.sharding.shards), rows, wanted.progress)
        results = model.learn_stream(batches, coverage=coverage, workers=workers)
    predictions = concatenate([aligned(each, each.predictions) for each in results])
    return LearnedStream(model, predictions, _intervals(results, wanted))


def _frames(X: Any, client: Client, progress: bool) -> Iterator[Any]:
    """Yield the partitions of a data frame, of which the next one is computed meanwhile."""
    bar = ProgressBar(int(X.map_partitions(len).compute().sum())) if progress else None
    parts, done = X.to_delayed(), 0
    ahead = client.compute(parts[0])
    for number in range(len(parts)):
        frame = ahead.result()
        ahead = client.compute(parts[number + 1]) if number + 1 < len(parts) else None
        yield frame
        done += len(frame)
        if bar is not None:
            bar.show(done)


def _shown(batches: Iterator[TableBatch], rows: int, progress: bool) -> Iterator[TableBatch]:
    """Yield batches; show how many rows are learned."""
    bar = ProgressBar(rows) if progress else None
    for batch in batches:
        yield batch
        if bar is not None:
            bar.show(batch.last_row)


def _intervals(results: list[BatchResult], wanted: Wanted) -> StreamIntervals | None:
    """Return the intervals of all rows as Dask arrays."""
    if wanted.coverages is None:
        return None
    ends = [aligned(each, each.interval_ends) for each in results]
    lower, upper = ([np.ascontiguousarray(each[:, side::2]) for each in ends] for side in (0, 1))
    if wanted.coverages.ndim == 0:
        lower, upper = ([each[:, 0] for each in side] for side in (lower, upper))
    return StreamIntervals(concatenate(lower), concatenate(upper))
