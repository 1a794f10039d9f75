"""Workers that learn the rows of a table together: ``ellipack run --workers``."""

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ellipack.cli.messages import print_message
from ellipack.cli.options import DEFAULT_LEARNER, Options
from ellipack.errors import InputError, WorkerError
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.learners.metric.sharding import Sharding
from ellipack.report.formatting import format_count
from ellipack.tabular import TableBatch, TableStream

if TYPE_CHECKING:
    from distributed import Client

_MIN_BATCH_ROWS = 1024
_BATCH_DIVISOR = 4  # a batch has a quarter of the rows before it: several steps, so that few steps are cut short
_MAX_SHARD_ROWS = 4096  # a signal stops the run after a batch, within about a second
_MAX_BATCH_CELLS = 1 << 24
_CONNECT_SECONDS = 10.0


def check_worker_options(options: Options) -> None:
    """Raise InputError if the options of workers contradict others."""
    if options.workers is not None and options.scheduler is not None:
        raise InputError("--workers and --scheduler can't both be given: the scheduler has workers of its own")
    if not options.has_workers:
        return
    if "-" in options.paths:
        raise InputError("--workers and --scheduler need files: rows of standard input are learned as they come")
    if (options.learner or DEFAULT_LEARNER) != DEFAULT_LEARNER:
        raise InputError(f"--workers and --scheduler need --learner {DEFAULT_LEARNER}, got {options.learner}")


@contextmanager
def open_workers(options: Options) -> Iterator[Workers | None]:
    """Start workers, or connect to those of a scheduler, and end them after the block. None if none are wanted."""
    if not options.has_workers:
        yield None
        return
    with _open_client(options) as client:
        count = len(client.scheduler_info()["workers"])
        if not count:
            raise WorkerError(f"the scheduler at {options.scheduler} has no workers: start some with `dask worker`")
        print_message(f"{format_count(count, 'worker')} learn {format_count(options.shards, 'shard')} at a time")
        yield Workers(client.get_executor(), Sharding(options.shards), timeout=options.worker_timeout)


@contextmanager
def _open_client(options: Options) -> Iterator["Client"]:
    """Connect to the scheduler that the options name, or to that of a new cluster on this machine."""
    from distributed import Client, LocalCluster

    if options.scheduler is not None:
        try:
            client = Client(options.scheduler, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise WorkerError(f"no scheduler answers at {options.scheduler}: {error}") from error
        with client:
            yield client
        return
    with _sigint_blocked():
        cluster = LocalCluster(
            n_workers=options.workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.CRITICAL
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


def worker_batches(source: TableStream, shards: int) -> Iterator[TableBatch]:
    """Yield the batches of a table for workers, and close it.

    How rows are cut into shards depends on batches, and must be the same after a run was killed and resumed. So the
    size of a batch follows from the number of rows before it.
    """
    most = max(1, min(_MAX_SHARD_ROWS * shards, _MAX_BATCH_CELLS // len(source.columns)))
    position = source.skipped_rows
    try:
        while True:
            source.batch_rows = min(most, max(_MIN_BATCH_ROWS, position // _BATCH_DIVISOR))
            batch = next(source, None)
            if batch is None:
                return
            yield batch
            position = batch.last_row
    finally:
        source.close()
