"""Workers that learn the rows of a table together: ``ellipack run --workers``."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from ellipack.cli.messages import print_message
from ellipack.cli.options import (
    DEFAULT_LEARNER,
    DEFAULT_SHARD_ROWS,
    DEFAULT_SHARDS,
    DEFAULT_WORKER_TIMEOUT,
    Options,
)
from ellipack.errors import InputError
from ellipack.learners.metric.sharded_learning import Workers
from ellipack.learners.metric.sharding import Sharding
from ellipack.report.formatting import format_count


def check_worker_options(options: Options) -> None:
    """Raise InputError if the options of workers contradict others."""
    if options.workers is not None and options.scheduler is not None:
        raise InputError("--workers and --scheduler can't both be given: the scheduler has workers of its own")
    if not options.has_workers:
        _check_has_no_options_of_workers(options)
        return
    if "-" in options.paths:
        raise InputError("--workers and --scheduler need files: rows of standard input are learned as they come")
    if (options.learner or DEFAULT_LEARNER) != DEFAULT_LEARNER:
        raise InputError(f"--workers and --scheduler need --learner {DEFAULT_LEARNER}, got {options.learner}")


def _check_has_no_options_of_workers(options: Options) -> None:
    """Raise InputError if an option is given that only workers use."""
    given = {
        "--shards": options.shards != DEFAULT_SHARDS,
        "--shard-rows": options.shard_rows != DEFAULT_SHARD_ROWS,
        "--worker-timeout": options.worker_timeout != DEFAULT_WORKER_TIMEOUT,
    }
    for name, is_given in given.items():
        if is_given:
            raise InputError(f"{name} needs --workers or --scheduler")


@contextmanager
def open_workers(options: Options) -> Iterator[Workers | None]:
    """Start workers, or connect to those of a scheduler, and end them after the block. None if none are wanted."""
    if not options.has_workers:
        yield None
        return
    try:
        dask = import_module("ellipack.dask")  # not at the top, because it takes a second
    except ModuleNotFoundError as error:
        raise InputError(f"--workers and --scheduler can't be used: {error}") from error
    connected = dask.connect(options.scheduler) if options.scheduler else dask.start_local_cluster(options.workers)
    with connected as client:
        workers = format_count(len(client.nthreads()), "worker")
        print_message(f"{workers}; {format_count(options.shards, 'shard')} of rows are learned at the same time")
        sharding = Sharding(options.shards, min_rows=options.shard_rows)
        yield dask.cluster_workers(client, sharding, options.worker_timeout)
