"""One learner from the rows of a Dask collection, learned on many workers.

Steps and shards are those of `ellipack.learners.metric.sharding`, by the numbers of the rows: the result does not
depend on partitions, on the number of workers, or on failures. Rows stay on workers, in partitions that are read when a
step needs them and released afterwards. In each step, the state is sent to all workers once, each shard is a task, and
this process merges what was learned. Neither the scheduler nor this process holds rows, only predictions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from dask.delayed import Delayed
from distributed import Future, KilledWorker

from ellipack.dask.learned_stream import LearnedStream, PredictedChunks, Wanted
from ellipack.dask.progress import ProgressBar
from ellipack.dask.sources import Source, read_rows, state_before
from ellipack.dask.workers import ClusterWorkers, wait_for
from ellipack.errors import WorkerError
from ellipack.estimators import MetricRegressor
from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.metric import learner as metric_learner
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.metric.shard_start import MAX_RECENT_ROWS, WARM_UP_ROWS
from ellipack.learners.metric.shards import LearnedShard, Shard, advance_past, merge
from ellipack.learners.metric.shards import learn_shard as learn_rows
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import thread_count
from ellipack.validation import Floats

_ATTEMPTS = 3  # to run a step whose state was lost with the workers that held it


def learn_collection(
    learner: MetricRegressor, source: Source, workers: ClusterWorkers, wanted: Wanted
) -> LearnedStream:
    """Predict and learn the rows of a source; see `progressive`."""
    state = state_before(learner, source)
    learner._check_by(state)
    run = _Run(source, workers, wanted.coverages)
    names = np.array(source.columns.features, dtype=object) if source.columns.features else None
    bar = ProgressBar(run.rows) if wanted.progress else None
    while run.done < run.rows:
        state = run.learn_step(state, thread_count(learner.n_jobs))
        learner._fitted = state, names
        if bar is not None:
            bar.show(run.done)
    return LearnedStream(learner, *run.predictions.collect())


class _Slices(NamedTuple):
    """Consecutive rows, as slices of consecutive partitions."""

    first: int  # number of the first partition
    slices: tuple[slice, ...]

    @property
    def partitions(self) -> range:
        """Numbers of the partitions."""
        return range(self.first, self.first + len(self.slices))


class _Run:
    """A run over a source: which rows are done, the partitions that are on workers, and the predictions."""

    def __init__(self, source: Source, workers: ClusterWorkers, coverages: Floats | None) -> None:
        self.client, self.sharding, self.timeout = workers.client, workers.sharding, workers.timeout
        self.partitions, self.columns, self.starts = source.partitions, source.columns, source.starts
        self.done = 0
        self._rows: dict[int, Future[Rows]] = {}
        self._labels: dict[int, Future[Rows]] = {}
        self.predictions = PredictedChunks(coverages)

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return self.starts[-1]

    def learn_step(self, state: MetricState, n_jobs: int) -> MetricState:
        """Learn the rows of a step, and return the state afterwards."""
        sizes = self.sharding.next_step(state.clock, state.phase.end, self.rows - self.done)
        after, predictions = self._retry_step(state, sizes, n_jobs)
        self.predictions.append(predictions)
        self.done += sum(sizes)
        for number in [number for number in self._rows if self.starts[number + 1] <= self.done]:
            del self._rows[number], self._labels[number]
        return after

    def _retry_step(self, state: MetricState, sizes: list[int], n_jobs: int) -> tuple[MetricState, Predictions]:
        """Run a step, and again if the workers that held its state have ended. Dask replaces all other workers."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._run_step(state, sizes, n_jobs)
            except (CancelledError, KilledWorker):
                self._rows.clear()
                self._labels.clear()
        try:
            return self._run_step(state, sizes, n_jobs)
        except (CancelledError, KilledWorker) as error:
            raise WorkerError(
                f"workers end again and again while they learn rows {self.done} to {self.done + sum(sizes) - 1} "
                f"({error}); the learner has learned those before"
            ) from error

    def _run_step(self, state: MetricState, sizes: list[int], n_jobs: int) -> tuple[MetricState, Predictions]:
        """Run a step, and return the state afterwards and the predictions."""
        shared = self.client.scatter(state, broadcast=True, hash=False)
        if len(sizes) == 1:
            rows = self._slices(self.done, self.done + sizes[0])
            task = self._submit(learn_alone, shared, rows.slices, self._read(rows), self.predictions.has_intervals)
            self._wait([task], sizes)
            result: tuple[MetricState, Predictions] = task.result()
            return result
        ends = pairwise(accumulate(sizes, initial=self.done))
        tasks = [self._submit_shard(shared, state.core.has_past, *first_and_last) for first_and_last in ends]
        self._wait(tasks, sizes)
        results: list[LearnedShard] = self.client.gather(tasks)
        after = merge(state, [each.learned for each in results], n_jobs)
        return after, Predictions(*map(np.concatenate, zip(*(each.predictions for each in results), strict=True)))

    def _submit_shard(self, shared: Any, has_past: bool, first: int, last: int) -> "Future[Any]":
        """Submit a shard. Labels of all rows of the step before it are its past."""
        recent = max(self.done, first - MAX_RECENT_ROWS)
        rows = self._slices(recent, last)
        before = self._slices(self.done, max(self.done, first - WARM_UP_ROWS) if has_past else self.done)
        labels = [self._labels_of(number) for number in before.partitions]
        numbers = first - self.done, first - recent
        arguments = numbers, (rows.slices, self._read(rows)), (before.slices, labels)
        return self._submit(learn_shard, shared, *arguments, self.predictions.has_intervals)

    def _slices(self, first: int, last: int) -> _Slices:
        """Return rows from number `first` to `last` - 1."""
        if first == last:
            return _Slices(0, ())
        begin, end = bisect_right(self.starts, first) - 1, bisect_left(self.starts, last)
        starts = self.starts[begin:end]
        return _Slices(
            begin,
            tuple(
                slice(max(0, first - start), min(last - start, self.partitions[begin + k].size))
                for k, start in enumerate(starts)
            ),
        )

    def _read(self, rows: _Slices) -> list["Future[Rows]"]:
        """Return the partitions of rows, which are read if they are not on workers yet."""
        for number in rows.partitions:
            if number not in self._rows:
                partition = self.partitions[number]
                content = self.client.compute(partition.read) if isinstance(partition.read, Delayed) else None
                named = partition if content is None else partition._replace(read=None)
                self._rows[number] = self._submit(read_rows, named, self.columns, content)
                self._labels[number] = self._submit(labels_of, self._rows[number])
        return [self._rows[number] for number in rows.partitions]

    def _labels_of(self, number: int) -> "Future[Rows]":
        self._read(_Slices(number, (slice(0),)))
        return self._labels[number]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        return self.client.submit(function, *arguments, pure=False)

    def _wait(self, futures: list["Future[Any]"], sizes: list[int]) -> None:
        """Wait for the tasks of a step; raise if they take too long."""
        wait_for(futures, (self.done, self.done + sum(sizes)), self.client, self.timeout)


def labels_of(rows: Rows) -> Rows:
    """Return the labels and keys of rows, without their features."""
    return rows._replace(X=rows.X[:, :0].copy())


def learn_alone(
    state: MetricState, slices: tuple[slice, ...], parts: list[Rows], with_intervals: bool
) -> tuple[MetricState, Predictions]:
    """Learn rows on one worker, through the ends of phases. Return the state afterwards and the predictions."""
    rows = _take(parts, slices)
    after = MetricState(replace(state.phase, core=state.core.copy()), state.config, state.random_state)
    predictions = empty_predictions(len(rows.y), with_intervals)
    metric_learner.learn_into(after, rows.X, rows.y, predictions, keys=rows.keys)
    return after, predictions


def learn_shard(
    state: MetricState,
    numbers: tuple[int, int],
    rows: tuple[tuple[slice, ...], list[Rows]],
    before: tuple[tuple[slice, ...], list[Rows]],
    with_intervals: bool,
) -> LearnedShard:
    """Learn a shard on a worker, and return what was learned and the predictions.

    Parameters
    ----------
    state : MetricState
        State before the step.
    numbers : pair of int
        Number of rows of the step before the shard, and how many of them are given as its first rows.
    rows : pair of slices and partitions
        The last rows before the shard, and its own.
    before : pair of slices and partitions
        Labels of the rows of the step before it, which are its past.
    with_intervals : bool
        Whether the intervals of the predictions are returned.
    """
    first, recent = numbers
    given = _take(rows[1], rows[0])
    past = None
    if first > 0 and state.core.has_past:
        labels = _take(before[1], before[0]) if before[0] else given.part(slice(0))
        past = advance_past(state, None, labels.keys, labels.y)
    shard = Shard(first, given.part(slice(recent, None)), given.part(slice(recent)), past)
    return learn_rows(state, shard, with_intervals=with_intervals)


def _take(parts: list[Rows], slices: tuple[slice, ...]) -> Rows:
    """Return rows of several partitions."""
    taken = [part.part(rows) for part, rows in zip(parts, slices, strict=True)]
    return taken[0] if len(taken) == 1 else Rows(*(np.concatenate(each) for each in zip(*taken, strict=True)))
