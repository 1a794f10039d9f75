"""Workers of a cluster that end, without a cluster."""

from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import numpy as np
import pytest

from ellipack import MetricRegressor, Sharding
from ellipack.dask import ClusterWorkers
from ellipack.errors import WorkerError
from ellipack.learners.metric.state import MetricState


class FailingExecutor(Executor):
    """Loses the first tasks, as a cluster does when the workers that hold the state have ended."""

    def __init__(self, lost: int) -> None:
        self.lost = lost

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self.lost -= 1
        if self.lost >= 0:
            future.set_exception(CancelledError())
        else:
            future.set_result(fn(*args, **kwargs))
        return future


class LocalClient:
    """Sends nothing."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def scatter(self, data: Any, **_: Any) -> Any:
        self.sent.append(data)
        return data


class LonelyClient:
    """Has no worker to send the state to."""

    def scatter(self, state: Any, **_: Any) -> Any:
        raise TimeoutError("No valid workers found")


X = np.random.default_rng(0).normal(size=(640, 2))
SHARDING = Sharding(shards=2, exchange=0.25, min_rows=40)


def predictions(lost: int, client: Any) -> bytes:
    workers = ClusterWorkers(FailingExecutor(lost), SHARDING, client=client)
    return MetricRegressor(past=False).progressive(X, X[:, 0], workers=workers).tobytes()


def test_a_step_is_run_again_if_its_state_is_lost() -> None:
    assert predictions(2, LocalClient()) == predictions(0, LocalClient())


def test_shards_are_sent_to_workers_and_not_to_the_scheduler() -> None:
    client = LocalClient()
    predictions(0, client)
    assert isinstance(client.sent[0], MetricState)
    assert [len(shard.rows.y) for [[shard]] in client.sent[1:]] == [42, 43]  # to the end of the phase


def test_workers_that_end_again_and_again_are_an_error() -> None:
    with pytest.raises(WorkerError, match=r"follow row 512 .* has learned 512 rows"):
        predictions(100, LocalClient())


def test_a_cluster_without_workers_is_an_error() -> None:
    with pytest.raises(WorkerError, match=r"no worker is left .* No valid workers found"):
        predictions(0, LonelyClient())
