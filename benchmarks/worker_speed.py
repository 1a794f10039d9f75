"""Speed of one learner on two processes, compared with what two processes can reach at all.

Three ways to learn the same rows from the same state take turns: one process; two processes that learn one learner
together; and two processes that learn a learner each, at the same time, without anything in common. The last one is the
limit of the machine. Processor times on the longest path (this process, with all its threads, and then the busiest of
the others) hardly depend on what else the machine does.
"""

import pickle
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import psutil
from rich.table import Table

from benchmarks.command_line import new_table
from ellipack import Sharding, Workers
from ellipack.learners.intervals import empty_predictions
from ellipack.learners.metric import learner
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.metric.sharded_learning import learn_in_shards
from ellipack.learners.metric.state import MetricState

PROCESSES = 2


class Speed(NamedTuple):
    """Seconds of a way to learn rows: by the clock, and of processor time on the longest path."""

    seconds: float
    longest: float


class Speeds(NamedTuple):
    """Speeds of the three ways."""

    alone: Speed
    together: Speed
    independent: Speed


def _learn_alone(saved: bytes, rows: Rows, n_jobs: int) -> Speed:
    state: MetricState = pickle.loads(saved)
    start, used = time.perf_counter(), time.process_time()
    learner.learn(state, rows.X, rows.y, n_jobs)
    return Speed(time.perf_counter() - start, time.process_time() - used)


def _processor_times() -> list[float]:
    return [sum(each.cpu_times()[:2]) for each in psutil.Process().children()]


def _learn_together(saved: bytes, rows: Rows, workers: Workers) -> Speed:
    state: MetricState = pickle.loads(saved)
    predictions = empty_predictions(len(rows.y), with_intervals=False)
    before, start, used = _processor_times(), time.perf_counter(), time.process_time()
    learn_in_shards(state, rows.X, rows.y, predictions, workers, PROCESSES)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    return Speed(seconds, used + max(after - each for after, each in zip(_processor_times(), before, strict=True)))


def _least(measure: Callable[[], Speed], best: Speed | None) -> Speed:
    found = measure()
    return found if best is None else Speed(*map(min, found, best))


def measure_speeds(state: MetricState, rows: Rows, sharding: Sharding, repeats: int = 3) -> Speeds:
    """Return the least times of the three ways over several turns. The state is not changed."""
    saved = pickle.dumps(state)
    alone: Speed | None = None
    together: Speed | None = None
    independent: Speed | None = None
    with ProcessPoolExecutor(PROCESSES) as pool:

        def learn_independent() -> Speed:
            tasks = [pool.submit(_learn_alone, saved, rows, 1) for _ in range(PROCESSES)]
            return Speed(*map(max, zip(*(task.result() for task in tasks), strict=True)))

        learn_independent()  # starts the processes
        workers = Workers(pool, sharding)
        for _ in range(repeats):
            alone = _least(lambda: pool.submit(_learn_alone, saved, rows, PROCESSES).result(), alone)
            together = _least(lambda: _learn_together(saved, rows, workers), together)
            independent = _least(learn_independent, independent)
    if alone is None or together is None or independent is None:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    return Speeds(alone, together, independent)


def speed_table(speeds: Speeds, rows: int, sharding: Sharding) -> Table:
    """Return a table of the speeds, relative to one process."""
    title = f"The next {rows:,} rows, with {sharding}"
    table = new_table(title, ("processes", "rows/s", "relative", "longest path", "relative"))
    for name, speed, count in (
        ("1", speeds.alone, 1),
        ("2, one learner", speeds.together, 1),
        ("2, two learners", speeds.independent, PROCESSES),
    ):
        table.add_row(
            name,
            f"{count * rows / speed.seconds:,.0f}",
            f"{count * speeds.alone.seconds / speed.seconds:.2f}",
            f"{speed.longest:.2f} s",
            f"{count * speeds.alone.longest / speed.longest:.2f}",
        )
    return table
