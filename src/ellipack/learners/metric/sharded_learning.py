"""Learning of rows in memory on the workers of an executor: threads, processes or a cluster."""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from time import monotonic
from typing import Any

from numpy.typing import ArrayLike

from ellipack.errors import InputError, WorkerError
from ellipack.learners.intervals import Predictions
from ellipack.learners.metric.learner import check_width, run_rounds
from ellipack.learners.metric.row_checks import NO_KEYS, Rows, check_all
from ellipack.learners.metric.shard_start import MAX_RECENT_ROWS, WARM_UP_ROWS
from ellipack.learners.metric.sharding import Sharding, split
from ellipack.learners.metric.shards import LearnedShard, Shard, advance_past, learn_shard, merge
from ellipack.learners.metric.shared_state import share_state
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import thread_count
from ellipack.validation import Ints, check_in_range, check_integer


@dataclass(frozen=True)
class Workers:
    """Workers that learn rows together.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Executor that runs tasks: a pool of threads or processes, or `client.get_executor()` of a cluster of Dask. The
        result does not depend on it.
    sharding : Sharding, optional
        How rows are cut into shards. The result depends on it.
    tasks : int, optional
        Number of tasks of a step, among which its shards are divided. By default, each shard is a task. A pool of
        processes reads the state from a file, once for each process; other executors get it with each task.
    timeout : float, optional
        Seconds after which a step that is not done is an error. By default, there is no limit.

    Raises
    ------
    InputError
        If a parameter is not valid.

    Examples
    --------
    >>> import numpy as np
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from ellipack import MetricRegressor, Sharding, Workers
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = X[:, 0] - X[:, 1]
    >>> with ThreadPoolExecutor(2) as executor:
    ...     workers = Workers(executor, Sharding(shards=2, exchange=0.25, min_rows=64))
    ...     predictions = MetricRegressor().progressive(X, y, workers=workers)
    >>> bool(np.std(predictions[1000:] - y[1000:]) < 0.1)
    True
    """

    executor: Executor
    sharding: Sharding = field(default_factory=Sharding)
    tasks: int | None = None
    timeout: float | None = None

    def __post_init__(self) -> None:
        if not callable(getattr(self.executor, "submit", None)):
            raise InputError(f"executor must have a method submit, like a ThreadPoolExecutor, got {self.executor!r}")
        if not isinstance(self.sharding, Sharding):
            raise InputError(f"sharding must be a Sharding, got {self.sharding!r}")
        if self.tasks is not None:
            check_integer(self.tasks, "tasks", 1)
        if self.timeout is not None:
            check_in_range(self.timeout, "timeout", 0.001, 1e9)

    @contextmanager
    def share(self, state: MetricState) -> Iterator[Any]:
        """Provide what tasks get as the state before a step: the state, or a reference to it for other processes."""
        with share_state(state) if isinstance(self.executor, ProcessPoolExecutor) else nullcontext(state) as shared:
            yield shared

    def send(self, shards: list[Shard]) -> Any:
        """Return what a task gets as its shards. Here the executor sends them with the task."""
        return shards

    def learn_shards(self, state: MetricState, shards: list[Shard], *, with_intervals: bool) -> list[LearnedShard]:
        """Learn shards at the same time, and return what was learned from each."""
        groups = split(len(shards), min(len(shards), self.tasks or len(shards)))
        with self.share(state) as shared:
            futures = [
                self.executor.submit(_learn_group, shared, self.send(shards[group]), with_intervals=with_intervals)
                for group in groups
            ]
            deadline = None if self.timeout is None else monotonic() + self.timeout
            try:
                return list(chain.from_iterable(self._result(future, state.clock, deadline) for future in futures))
            finally:
                for future in futures:
                    future.cancel()  # those that have not begun

    def _result(self, future: "Future[Any]", clock: int, deadline: float | None) -> Any:
        try:
            return future.result(None if deadline is None else max(0.0, deadline - monotonic()))
        except TimeoutError as error:
            if future.done():
                raise
            raise WorkerError(
                f"a worker must learn its rows, which follow row {clock}, within timeout = {self.timeout:g} s: "
                "it hangs, or the limit is too low"
            ) from error
        except BrokenExecutor as error:
            raise WorkerError(
                f"a worker ended while it learned rows that follow row {clock}; the learner has learned {clock} rows: "
                "continue with them and a new executor"
            ) from error


def _learn_group(state: MetricState, shards: list[Shard], *, with_intervals: bool) -> list[LearnedShard]:
    return [learn_shard(state, shard, with_intervals=with_intervals) for shard in shards]


def cut_step(state: MetricState, rows: Rows, sizes: list[int]) -> Iterator[Shard]:
    """Yield the shards of a step.

    Parameters
    ----------
    state : MetricState
        State before the step.
    rows : Rows
        Rows of the step.
    sizes : list of int
        Number of rows of each shard; see `Sharding.next_step`.

    Yields
    ------
    shard : Shard
    """
    past, known = None, 0
    for first, last in pairwise(accumulate(sizes, initial=0)):
        warm_up = max(0, first - WARM_UP_ROWS)
        before = rows.part(slice(known, warm_up))
        past, known = advance_past(state, past, before.keys, before.y), warm_up
        yield Shard(
            first, rows.part(slice(first, last)), rows.part(slice(max(0, first - MAX_RECENT_ROWS), first)), past
        )


def learn_in_shards(
    state: MetricState,
    X: ArrayLike,
    y: ArrayLike,
    predictions: Predictions,
    workers: Workers,
    n_jobs: int | None = 1,
    keys: Ints = NO_KEYS,
) -> None:
    """Predict and learn rows on many workers, and write the predictions into arrays, as `learn_into` does.

    Predictions and state depend on how rows are cut into shards (`workers.sharding`), bit for bit, not on the number or
    the kind of workers. An error or an interrupt leaves the state of a completed step.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    predictions : Predictions
        Arrays for the predictions. Without rows of bounds, intervals are not wanted.
    workers : Workers
        Who learns them.
    n_jobs : int or None, default 1
        Number of threads that score candidates for the metric, as in scikit-learn.
    keys : array of int64, shape (n,), optional
        Key of each row, if the learner has keys.

    Raises
    ------
    InputError
        If `X` or `y` is not valid. The state is unchanged.
    ShapeError
        If another thread has added features. Completed steps are kept.
    WorkerError
        If a worker ends, or takes too long.
    """
    rows = check_all(state.core, X, y, keys)
    threads, done = thread_count(n_jobs), 0
    while done < len(rows.y):
        with state.learn_lock.turn:
            check_width(state, rows.X.shape[1])
            sizes = workers.sharding.next_step(state.clock, state.phase.end, len(rows.y) - done)
            part = slice(done, done + sum(sizes))
            step, out = rows.part(part), predictions.part(part)
            if len(sizes) == 1:
                run_rounds(state, step, out, threads)
            else:
                _run_step(state, list(cut_step(state, step, sizes)), workers, threads, out)
        done = part.stop


def _run_step(state: MetricState, shards: list[Shard], workers: Workers, n_jobs: int, predictions: Predictions) -> None:
    """Learn the shards of a step, update the state and fill in the predictions."""
    learned = workers.learn_shards(state, shards, with_intervals=len(predictions.bounds) > 0)
    phase = merge(state, [each.learned for each in learned], n_jobs).phase
    for shard, each in zip(shards, learned, strict=True):
        out = predictions.part(slice(shard.first, shard.first + len(shard.rows.y)))
        out.values[:], out.bounds[:] = each.predictions
    state.phase = phase
