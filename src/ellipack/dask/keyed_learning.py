"""A `KeyedRegressor` from the rows of a Dask collection, partitioned by key.

The learner of all keys learns the partitions of the collection one after the other, each as a task on a worker. The
rows of a partition are then divided by key, on the worker that holds them. The keys of each part are learned as a task,
while the learner of all keys learns the next partition. This process holds the learner of all keys, the learners of the
keys (the least recently used ones on disk), and predictions, but no rows. The result is that of
`KeyedRegressor.progressive`, bit for bit.
"""

from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from distributed import Future, KilledWorker

from ellipack.dask.learned_stream import LearnedStream, PredictedChunks, Wanted
from ellipack.dask.progress import ProgressBar
from ellipack.dask.sources import Source, read_keyed_rows, state_before
from ellipack.dask.workers import ClusterWorkers, wait_for
from ellipack.errors import WorkerError
from ellipack.estimators import KeyedRegressor
from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.keyed.learner import KeyedState
from ellipack.learners.keyed.partitions import (
    KeyLearners,
    LearnedPartition,
    Partition,
    keep_learned,
    learn_partition,
    partition_numbers,
    select_partition,
)
from ellipack.learners.metric import learner as metric_learner
from ellipack.learners.metric.learner import BothPredictions
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.metric.state import MetricState
from ellipack.row_keys import RowKeys
from ellipack.validation import Ints

_ATTEMPTS = 3  # to learn a partition whose learner was lost with the workers that held it


def learn_keyed(learner: KeyedRegressor, source: Source, workers: ClusterWorkers, wanted: Wanted) -> LearnedStream:
    """Predict and learn the rows of a source; see `progressive`."""
    state: KeyedState = state_before(learner, source)
    names = np.array(source.columns.features, dtype=object) if source.columns.features else None
    run, chunks = _Run(state, source, workers), PredictedChunks(wanted.coverages)
    bar = ProgressBar(source.starts[-1]) if wanted.progress else None
    with state.lock.turn:
        state.complete_batch()
        for number in range(len(source.partitions)):
            chunks.append(run.learn_block(number))
            learner._fitted = state, names
            if bar is not None:
                bar.show(source.starts[number + 1])
    return LearnedStream(learner, *chunks.collect())


class _Block(NamedTuple):
    """Tasks of a partition of the collection."""

    pooled: "Future[MetricState]"  # the learner of all keys afterwards
    parts: "list[Future[Partition]]"  # the rows of each task
    keys: "list[Future[tuple[list[int], Ints]]]"  # the keys and the numbers of these rows


class _Run:
    """A run over a source."""

    def __init__(self, state: KeyedState, source: Source, workers: ClusterWorkers) -> None:
        self.state, self.source, self.workers = state, source, workers
        self.client = workers.client
        self._ahead: dict[int, _Block] = {}

    def learn_block(self, number: int) -> Predictions:
        """Learn a partition, and again if the workers that held its learner have ended."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._learn_block(number)
            except (CancelledError, KilledWorker):
                self._ahead.clear()
        try:
            return self._learn_block(number)
        except (CancelledError, KilledWorker) as error:
            raise WorkerError(
                f"workers end again and again while they learn {self.source.partitions[number].name} ({error}); the "
                "learner has learned the partitions before"
            ) from error

    def _learn_block(self, number: int) -> Predictions:
        """Learn a partition, while the learner of all keys learns the next one."""
        if number not in self._ahead:
            pooled = self.client.scatter(self.state.pooled, hash=False)
            self._ahead[number] = self._submit_block(number, pooled)
        block = self._ahead[number]
        if number + 1 < len(self.source.partitions):
            self._ahead[number + 1] = self._submit_block(number + 1, block.pooled)
        self._wait(block.keys, number)
        keys: list[tuple[list[int], Ints]] = self.client.gather(block.keys)
        known = [KeyLearners.of(self.state, each) for each, _ in keys]
        tasks = [self._submit(learn_partition, *each) for each in zip(block.parts, known, strict=True)]
        self._wait(tasks, number)
        results: list[LearnedPartition] = self.client.gather(tasks)
        predictions = empty_predictions(self.source.partitions[number].size, with_intervals=True)
        for (_, places), result in zip(keys, results, strict=True):
            predictions.values[places], predictions.bounds[places] = result.predictions
        keep_learned(self.state, block.pooled.result(), results)
        del self._ahead[number]
        return predictions

    def _submit_block(self, number: int, pooled: "Future[MetricState]") -> _Block:
        """Read a partition, let the learner of all keys learn it, and divide its rows by key."""
        partition = self.source.partitions[number]
        content = self.client.compute(partition.read) if isinstance(partition.read, Delayed) else None
        named = partition if content is None else partition._replace(read=None)
        rows = self._submit(read_keyed_rows, named, self.source.columns, content)
        learned = self._submit(learn_pooled, pooled, rows)
        count = self.workers.sharding.shards
        parts = [self._submit(select_part, rows, learned, (part, count)) for part in range(count)]
        keys = [self._submit(keys_of, rows, (part, count)) for part in range(count)]
        return _Block(self._submit(first_of, learned), parts, keys)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        return self.client.submit(function, *arguments, pure=False)

    def _wait(self, futures: "list[Future[Any]]", number: int) -> None:
        starts = self.source.starts
        wait_for(futures, (starts[number], starts[number + 1]), self.client, self.workers.timeout)


def learn_pooled(state: MetricState, keyed: tuple[Rows, RowKeys]) -> tuple[MetricState, BothPredictions]:
    """Learn rows with the learner of all keys, on a worker. The state is not changed."""
    rows, keys = keyed
    after = MetricState(replace(state.phase, core=state.core.copy()), state.config, state.random_state)
    return after, metric_learner.learn_both(after, rows.X, rows.y, keys=keys.hashes)


def first_of(learned: tuple[MetricState, BothPredictions]) -> MetricState:
    """Return the learner of all keys."""
    return learned[0]


def select_part(
    keyed: tuple[Rows, RowKeys], learned: tuple[MetricState, BothPredictions], part: tuple[int, int]
) -> Partition:
    """Return the rows of a part, by its number and the number of parts."""
    (rows, keys), (number, count) = keyed, part
    places = np.flatnonzero(partition_numbers(keys.hashes, count) == number)
    return select_partition(rows.X, rows.y, keys, learned[1], places)


def keys_of(keyed: tuple[Rows, RowKeys], part: tuple[int, int]) -> tuple[list[int], Ints]:
    """Return the keys and the numbers of the rows of a part."""
    number, count = part
    places = np.flatnonzero(partition_numbers(keyed[1].hashes, count) == number)
    return np.unique(keyed[1].hashes[places]).tolist(), places
