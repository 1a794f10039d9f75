"""Workers of a cluster of Dask that learn rows which this process holds."""

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future, KilledWorker, wait

from ellipack.errors import WorkerError
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.learners.metric.sharding import Sharding
from ellipack.learners.metric.shards import LearnedShard, Shard
from ellipack.learners.metric.state import MetricState

_ATTEMPTS = 3  # to run a step whose state was lost with the workers that held it


@dataclass(frozen=True)
class ClusterWorkers(Workers):
    """Workers of a cluster. The state of a step is sent to each of them once. Create it with `cluster_workers`.

    Attributes
    ----------
    client : distributed.Client
        Client of the cluster.
    """

    client: Client = field(kw_only=True)

    @contextmanager
    def share(self, state: MetricState) -> Iterator[Any]:
        """Send the state to all workers."""
        yield self._scatter(state, broadcast=True)

    def send(self, shards: list[Shard]) -> Any:
        """Send shards to a worker. The scheduler would hold them if they were arguments of a task."""
        return self._scatter([shards])[0]

    def _scatter(self, data: Any, **options: Any) -> Any:
        try:
            return self.client.scatter(data, hash=False, **options)
        except TimeoutError as error:
            raise WorkerError(f"no worker is left to learn rows: {error}") from error

    def learn_shards(self, state: MetricState, shards: list[Shard], *, with_intervals: bool) -> list[LearnedShard]:
        """Learn shards at the same time, and again if the workers that held the state have ended."""
        for _ in range(_ATTEMPTS - 1):
            with suppress(CancelledError, KilledWorker):
                return super().learn_shards(state, shards, with_intervals=with_intervals)
        try:
            return super().learn_shards(state, shards, with_intervals=with_intervals)
        except (CancelledError, KilledWorker) as error:
            raise WorkerError(
                f"workers end again and again while they learn rows that follow row {state.clock} ({error}); "
                f"the learner has learned {state.clock} rows"
            ) from error


def cluster_workers(client: Client, sharding: Sharding | None = None, timeout: float | None = None) -> ClusterWorkers:
    """Return the workers of a cluster, for the parameter `workers` of `MetricRegressor`.

    This process holds the rows and sends each worker its shards. For collections that are larger than its memory, see
    `ellipack.dask.progressive`.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    sharding : Sharding, optional
        How rows are cut into shards. The result depends on it.
    timeout : float, optional
        Seconds after which a step that is not done is an error. By default, there is no limit.

    Returns
    -------
    workers : ClusterWorkers

    Examples
    --------
    >>> import numpy as np
    >>> from distributed import Client
    >>> from ellipack import MetricRegressor
    >>> X = np.random.default_rng(0).normal(size=(1000, 2))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as client:
    ...     learner = MetricRegressor().fit(X, X[:, 0], workers=cluster_workers(client))
    >>> round(float(learner.predict([[1.0, 0.0]])[0]), 1)
    1.0
    """
    return ClusterWorkers(client.get_executor(pure=False), sharding or Sharding(), timeout=timeout, client=client)


def wait_for(futures: Sequence["Future[Any]"], rows: tuple[int, int], client: Client, timeout: float | None) -> None:
    """Wait for tasks; raise `WorkerError` if they take too long.

    Parameters
    ----------
    futures : sequence of Future
        Tasks.
    rows : pair of int
        Numbers of their first row and of the row after their last one, for the message.
    client : distributed.Client
        Client of the cluster.
    timeout : float or None
        Limit in seconds.
    """
    try:
        wait(futures, timeout=timeout)
    except TimeoutError as error:
        busy = sorted(worker for worker, tasks in client.processing().items() if tasks)
        raise WorkerError(
            f"workers must learn rows {rows[0]} to {rows[1] - 1} within timeout = {timeout:g} s, still at work: "
            f"{', '.join(busy) or 'none'}; the learner has learned those before"
        ) from error
