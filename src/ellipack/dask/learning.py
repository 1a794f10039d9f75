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

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from distributed import Client, Future, KilledWorker, get_client, wait

from ellipack.dask.progress import ProgressBar
from ellipack.dask.sources import Source, open_source, read_rows
from ellipack.errors import InputError, ShapeError, WorkerError
from ellipack.estimators import MetricRegressor
from ellipack.learners.metric import learner as metric_learner
from ellipack.learners.metric.merging.learned import Learned
from ellipack.learners.metric.shard_rounds import Rows
from ellipack.learners.metric.shard_start import MAX_RECENT_ROWS, WARM_UP_ROWS
from ellipack.learners.metric.sharding import Sharding
from ellipack.learners.metric.shards import Shard, advance_past, merge
from ellipack.learners.metric.shards import learn_shard as learn_rows
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import thread_count
from ellipack.validation import Floats, check_in_range

_ATTEMPTS = 3  # to run a step whose state was lost with the workers that held it


class LearnedStream(NamedTuple):
    """What `progressive` returns.

    Attributes
    ----------
    learner : MetricRegressor
        The learner, after all rows.
    predictions : Dask array of shape (n,)
        The prediction of each row, made before its label was learned. This process holds its chunks, one per step,
        because those on workers would be lost with them.
    """

    learner: MetricRegressor
    predictions: da.Array


def progressive(
    learner: MetricRegressor,
    X: Any,
    y: Any = None,
    *,
    target: str | None = None,
    sharding: Sharding | None = None,
    client: Client | None = None,
    timeout: float | None = None,
    progress: bool = False,
) -> LearnedStream:
    """Predict each row as the next one, then learn from its label, on the workers of a cluster.

    Parameters
    ----------
    learner : MetricRegressor
        The learner, which continues if it has learned rows before. It is updated after each step, so that it keeps the
        completed steps if an error occurs. The columns `by` of data frames and files may be of any kind; those that are
        not numbers are keys only, not features.
    X : Dask array of shape (n, d), Dask data frame, or path of Parquet files
        Rows, in their order. A path is a file, a folder, a pattern such as ``"data/*.parquet"`` or a list of them. All
        workers must be able to read it. All columns must hold numbers.
    y : Dask array of shape (n,), optional
        Labels, if `X` is an array.
    target : str, optional
        Name of the column of the labels, if `X` is not an array.
    sharding : Sharding, optional
        How rows are cut into shards. The result depends on it.
    client : distributed.Client, optional
        Client of the cluster. By default, the current one.
    timeout : float, optional
        Seconds after which a step that is not done is an error. By default, there is no limit.
    progress : bool, default False
        Whether a bar is written to standard error.

    Returns
    -------
    learned : LearnedStream
        The learner and the predictions.

    Raises
    ------
    InputError
        If an argument is not valid.
    StreamError
        If a row cannot be learned. The message names the file or the partition, the row and the column.
    WorkerError
        If workers are lost again and again, or take too long.
    """
    if not isinstance(learner, MetricRegressor):
        raise InputError(f"learner must be a MetricRegressor, got {type(learner).__name__}")
    if timeout is not None:
        check_in_range(timeout, "timeout", 0.001, 1e9)
    source = open_source(X, y, target, learner.by)
    state = _initial_state(learner, source)
    run = _Run(client or get_client(), source, sharding or Sharding(), timeout)
    names = np.array(source.columns.features, dtype=object) if source.columns.features else None
    bar = ProgressBar(run.rows) if progress else None
    while run.done < run.rows:
        state = run.learn_step(state, thread_count(learner.n_jobs))
        learner._fitted = state, names
        if bar is not None:
            bar.show(run.done)
    return LearnedStream(learner, run.predictions())


def _initial_state(learner: MetricRegressor, source: Source) -> MetricState:
    """Return the state from which the learner continues."""
    if not source.partitions:
        raise ShapeError("X must have at least one row, got none")
    if not learner.__sklearn_is_fitted__():
        return learner._initial_state(source.dimension)
    if learner.n_features_in_ != source.dimension:
        raise ShapeError(f"X must have {learner.n_features_in_} features, as before, got {source.dimension}")
    known, names = getattr(learner, "feature_names_in_", None), source.columns.features
    if known is not None and names and list(known) != list(names):
        raise InputError(f"columns must be {', '.join(known)}, as before, got {', '.join(names)}")
    learner._check_by(learner.state_)
    return learner.state_


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

    def __init__(self, client: Client, source: Source, sharding: Sharding, timeout: float | None) -> None:
        self.client, self.sharding, self.timeout = client, sharding, timeout
        self.partitions, self.columns, self.starts = source.partitions, source.columns, source.starts
        self.done = 0
        self._rows: dict[int, Future[Rows]] = {}
        self._labels: dict[int, Future[Rows]] = {}
        self._predictions: list[Floats] = []

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return self.starts[-1]

    def predictions(self) -> da.Array:
        """Return the predictions of all rows."""
        whole: da.Array = da.concatenate([da.from_array(part, chunks=-1, name=False) for part in self._predictions])
        return whole

    def learn_step(self, state: MetricState, n_jobs: int) -> MetricState:
        """Learn the rows of a step, and return the state afterwards."""
        sizes = self.sharding.next_step(state.clock, state.phase.end, self.rows - self.done)
        after, predictions = self._retry_step(state, sizes, n_jobs)
        self._predictions.append(predictions)
        self.done += sum(sizes)
        for number in [number for number in self._rows if self.starts[number + 1] <= self.done]:
            del self._rows[number], self._labels[number]
        return after

    def _retry_step(self, state: MetricState, sizes: list[int], n_jobs: int) -> tuple[MetricState, Floats]:
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

    def _run_step(self, state: MetricState, sizes: list[int], n_jobs: int) -> tuple[MetricState, Floats]:
        """Run a step, and return the state afterwards and the predictions."""
        shared = self.client.scatter(state, broadcast=True, hash=False)
        if len(sizes) == 1:
            rows = self._slices(self.done, self.done + sizes[0])
            task = self._submit(learn_alone, shared, rows.slices, self._read(rows))
            self._wait([task], sizes)
            result: tuple[MetricState, Floats] = task.result()
            return result
        ends = pairwise(accumulate(sizes, initial=self.done))
        tasks = [self._submit_shard(shared, state.core.has_past, *first_and_last) for first_and_last in ends]
        self._wait(tasks, sizes)
        results: list[tuple[Learned, Floats]] = self.client.gather(tasks)
        return merge(state, [each[0] for each in results], n_jobs), np.concatenate([each[1] for each in results])

    def _submit_shard(self, shared: Any, has_past: bool, first: int, last: int) -> "Future[Any]":
        """Submit a shard. Labels of all rows of the step before it are its past."""
        recent = max(self.done, first - MAX_RECENT_ROWS)
        rows = self._slices(recent, last)
        before = self._slices(self.done, max(self.done, first - WARM_UP_ROWS) if has_past else self.done)
        labels = [self._labels_of(number) for number in before.partitions]
        numbers = first - self.done, first - recent
        return self._submit(learn_shard, shared, numbers, (rows.slices, self._read(rows)), (before.slices, labels))

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
        try:
            wait(futures, timeout=self.timeout)
        except TimeoutError as error:
            busy = sorted(worker for worker, tasks in self.client.processing().items() if tasks)
            raise WorkerError(
                f"workers must learn rows {self.done} to {self.done + sum(sizes) - 1} within timeout = "
                f"{self.timeout:g} s, still at work: {', '.join(busy) or 'none'}; the learner has learned those before"
            ) from error


def labels_of(rows: Rows) -> Rows:
    """Return the labels and keys of rows, without their features."""
    return rows._replace(X=rows.X[:, :0].copy())


def learn_alone(state: MetricState, slices: tuple[slice, ...], parts: list[Rows]) -> tuple[MetricState, Floats]:
    """Learn rows on one worker, through the ends of phases. Return the state afterwards and the predictions."""
    rows = _take(parts, slices)
    after = MetricState(replace(state.phase, core=state.core.copy()), state.config, state.random_state)
    return after, metric_learner.learn(after, rows.X, rows.y, keys=rows.keys)


def learn_shard(
    state: MetricState,
    numbers: tuple[int, int],
    rows: tuple[tuple[slice, ...], list[Rows]],
    before: tuple[tuple[slice, ...], list[Rows]],
) -> tuple[Learned, Floats]:
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
    """
    first, recent = numbers
    given = _take(rows[1], rows[0])
    past = None
    if first > 0 and state.core.has_past:
        labels = _take(before[1], before[0]) if before[0] else given.part(slice(0))
        past = advance_past(state, None, labels.keys, labels.y)
    shard = Shard(first, given.part(slice(recent, None)), given.part(slice(recent)), past)
    learned = learn_rows(state, shard)
    return learned.learned, learned.predictions.values


def _take(parts: list[Rows], slices: tuple[slice, ...]) -> Rows:
    """Return rows of several partitions."""
    taken = [part.part(rows) for part, rows in zip(parts, slices, strict=True)]
    return taken[0] if len(taken) == 1 else Rows(*(np.concatenate(each) for each in zip(*taken, strict=True)))
