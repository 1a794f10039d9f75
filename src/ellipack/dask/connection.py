"""Connection to a scheduler, or to a new cluster on this machine."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from distributed import Client, LocalCluster

from ellipack.errors import WorkerError

_CONNECT_SECONDS = 10.0


@contextmanager
def connect(scheduler: str) -> Iterator[Client]:
    """Connect to a scheduler; raise `WorkerError` if it does not answer, or has no workers.

    Parameters
    ----------
    scheduler : str
        Its address, such as ``tcp://host:8786``.
    """
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise WorkerError(f"no scheduler answers at {scheduler}: {error}") from error
    with client:
        if not client.nthreads():
            raise WorkerError(f"the scheduler at {scheduler} has no workers: start some with `dask worker {scheduler}`")
        yield client


@contextmanager
def start_local_cluster(workers: int) -> Iterator[Client]:
    """Start processes on this machine that learn together, and end them after the block.

    Parameters
    ----------
    workers : int
        Number of processes.
    """
    resource_tracker.ensure_running()  # starting it would unblock signals
    with _sigint_blocked():
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
    with cluster, Client(cluster) as client:
        yield client


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Block SIGINT in this thread, and for good in threads and processes that it starts.

    A terminal sends Ctrl-C to all processes of a command. Workers must go on, so that the run can be saved.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
