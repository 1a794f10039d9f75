"""One learner on many workers: ``python -m benchmarks.scale``, or `make bench-scale`.

Costs are processor times of this process after ROWS rows: of a round, to write and read a state, of the start of a
shard, of a merge and of the end of a phase, and the bytes of a state and of what a shard learned. From them follows a
model of the time to learn ten million rows with 1 to 64 workers. Then a step is learned with one and with two processes
(`benchmarks.worker_speed`). Errors are late NRMSE with several numbers of shards over that of one machine, on a
drifting stream and on the streams in ``--data FOLDER``; shards have at least 32 rows, far fewer than by default.
``--only costs``, ``speed`` or ``errors`` omits the rest. ``--stream 10000000`` learns that many rows on a cluster of
Dask with two processes, and prints the memory of all processes over time; it takes its time.
"""

import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.command_line import make_parser, new_table, require_positive
from benchmarks.streams import Stream, late_nrmse, low_rank_stream, read_folder
from benchmarks.worker_speed import PROCESSES, measure_speeds, speed_table
from ellipack import MetricRegressor, Sharding, Workers
from ellipack.learners.metric import learner
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.metric.sharded_learning import cut_step
from ellipack.learners.metric.shards import learn_shard, merge

ROWS, MAX_CENTERS, SHARDS = 20_000, 100_000, 8
LINES = 20  # of the table of memory
WORKERS = (1, 2, 4, 8, 16, 32, 64)
TEN_MILLION, BYTES_PER_SECOND = 10_000_000, 1e9  # of the model; a network of 10 gigabits per second
ERROR_SHARDING = {shards: Sharding(shards, min_rows=32) for shards in (2, 8, 32)}


class Costs(NamedTuple):
    """Seconds of processor time, and bytes, after a number of rows."""

    centers: int
    round: float
    transfer: float  # to write and read a state
    start: float  # of a shard: everything but its own rounds
    merge: float  # of a step with `SHARDS` shards
    phase_end: float
    state_bytes: int
    learned_bytes: int  # of a shard


class InlineExecutor(Executor):
    """Runs tasks at once, in this process."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Run a task."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def _seconds(function: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least processor time of a function."""
    least = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        function()
        least = min(least, time.process_time() - start)
    return least


def measure_costs(stream: Stream, rows: int, max_centers: int = MAX_CENTERS) -> Costs:
    """Measure the costs after the first `rows` of a stream, over the next 1/16 of them."""
    model = MetricRegressor(max_centers, n_jobs=1).fit(stream.X[:rows], stream.y[:rows])
    state, size = model.state_, rows // 16
    step = Rows(stream.X[rows : rows + size], stream.y[rows : rows + size])
    saved = pickle.dumps(state)
    read = _seconds(lambda: pickle.loads(saved))
    rounds = _seconds(lambda: learner.learn(pickle.loads(saved), step.X, step.y)) - read
    sizes = [each.stop - each.start for each in _equal(size, SHARDS)]
    shards = list(cut_step(state, step, sizes))
    learned = [learn_shard(state, shard).learned for shard in shards]
    shard = _seconds(lambda: learn_shard(state, shards[-1]))
    parts = merge(state, learned).core.parts()
    return Costs(
        state.n_centers,
        rounds / size,
        read + _seconds(lambda: pickle.dumps(state)),
        shard - rounds * sizes[-1] / size,
        _seconds(lambda: merge(state, learned)),
        _seconds(lambda: next_phase(state.phase, parts, state.config, state.random_state)),
        len(saved),
        len(pickle.dumps(learned[-1])),
    )


def _equal(rows: int, parts: int) -> list[slice]:
    return [slice(*ends) for ends in pairwise(np.linspace(0, rows, parts + 1).astype(int).tolist())]


class Modeled(NamedTuple):
    """Seconds that a number of workers takes for all rows, by the model."""

    workers: int
    total: float
    rounds: float
    starts: float
    merges: float
    transport: float


def model_time(costs: Costs, workers: int, rows: int = TEN_MILLION) -> Modeled:
    """Return the time of `rows` rows with as many shards as workers.

    The costs of transfers, starts, merges and transport are proportional to the number of centers, which is that of the
    rows until memory is full. A merge also grows with the number of shards; the state goes to all workers one after the
    other.
    """
    sharding, clock, end = Sharding(max(workers, 1)), 0, 4
    rounds = starts = merges = transport = 0.0
    while clock < rows:
        sizes = sharding.next_step(clock, end, rows - clock)
        share = min(1.0, clock / MAX_CENTERS) * MAX_CENTERS / costs.centers
        if len(sizes) > 1:
            starts += (costs.transfer + costs.start) * share
            merges += costs.merge * share * (0.5 + 0.5 * len(sizes) / SHARDS)
            transport += (costs.state_bytes * share + costs.learned_bytes) * len(sizes) / BYTES_PER_SECOND
        rounds += costs.round * max(sizes)
        clock += sum(sizes)
        while end <= clock:
            merges += costs.phase_end
            end += max(4, end // 2)
    return Modeled(workers, rounds + starts + merges + transport, rounds, starts, merges, transport)


def drifting_stream(rows: int, d: int = 5, seed: int = 0) -> Stream:
    """Return a stream whose level drifts."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, d))
    level = np.sin(np.arange(rows) / 200)
    return Stream("drifting level", X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + level + 0.1 * rng.normal(size=rows))


def error_ratios(stream: Stream) -> dict[int, float]:
    """Return late errors with several numbers of shards over that of one machine."""
    alone = late_nrmse(MetricRegressor(n_jobs=1).progressive(stream.X, stream.y), stream.y)
    ratios = {}
    for shards, sharding in ERROR_SHARDING.items():
        workers = Workers(InlineExecutor(), sharding)
        predictions = MetricRegressor(n_jobs=1).progressive(stream.X, stream.y, workers=workers)
        ratios[shards] = late_nrmse(predictions, stream.y) / alone
    return ratios


def learn_long_stream(rows: int, max_centers: int, console: Console) -> None:
    """Learn a long stream on a cluster with two processes, and print memory and speed."""
    import dask.array as da  # noqa: PLC0415  # not needed otherwise
    import psutil  # noqa: PLC0415
    from distributed import Client  # noqa: PLC0415

    from ellipack.dask import cluster_workers, progressive  # noqa: PLC0415

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
        model, done, start = MetricRegressor(max_centers), 0, time.perf_counter()
        rng, workers, part = da.random.default_rng(0), cluster_workers(client), max(1, rows // LINES)
        while done < rows:
            count = min(part, rows - done)
            X = rng.normal(size=(count, 5), chunks=(50_000, 5)).persist()
            progressive(model, X, da.sin(2 * X[:, 0]) + X[:, 1], workers=workers)
            done += count
            memory = client.run(lambda: psutil.Process().memory_info().rss)
            console.print(
                f"{done:,} rows: {done / (time.perf_counter() - start):,.0f} per second; memory of this process "
                f"{psutil.Process().memory_info().rss / 1e6:,.0f} MB, of workers "
                + ", ".join(f"{each / 1e6:,.0f} MB" for each in memory.values())
            )


def _print_costs(costs: Costs, rows: int, console: Console) -> None:
    console.print(
        f"After {rows:,} rows, with {costs.centers:,} centers: a round takes {1e6 * costs.round:.0f} us; to write and "
        f"read a state {1e3 * costs.transfer:.0f} ms; the start of a shard {1e3 * costs.start:.0f} ms; a merge of "
        f"{SHARDS} shards {1e3 * costs.merge:.0f} ms; the end of a phase {1e3 * costs.phase_end:.0f} ms. A state has "
        f"{costs.state_bytes / 1e6:.1f} MB, what a shard learned {costs.learned_bytes / 1e6:.2f} MB."
    )


def _print_model(costs: Costs, console: Console) -> None:
    headings = ("workers", "hours", "speed-up", "rounds", "starts", "merges", "transport")
    table = new_table("Model: ten million rows", headings)
    one = model_time(costs, 1).total
    for workers in WORKERS:
        each = model_time(costs, workers)
        parts = (each.rounds, each.starts, each.merges, each.transport)
        shares = [f"{part / each.total:.0%}" for part in parts]
        table.add_row(str(workers), f"{each.total / 3600:.2f}", f"{one / each.total:.1f}", *shares)
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    parser = make_parser("scale", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="rows before costs are measured")
    parser.add_argument("--max-centers", type=int, default=MAX_CENTERS, help="largest number of centers")
    parser.add_argument("--only", choices=["costs", "speed", "errors"], help="omit everything else")
    parser.add_argument("--data", type=Path, help="folder of CSV files whose errors are measured")
    parser.add_argument("--stream", type=int, help="only learn this many rows on a cluster of Dask")
    options = parser.parse_args(arguments)
    require_positive(parser, options, "rows", "max_centers", "stream")
    console = Console()
    if options.stream:
        learn_long_stream(options.stream, options.max_centers, console)
        return
    if options.only in (None, "costs"):
        costs = measure_costs(low_rank_stream(10, 2, 2 * options.rows), options.rows, options.max_centers)
        _print_costs(costs, options.rows, console)
        _print_model(costs, console)
    if options.only in (None, "speed"):
        for stream in (low_rank_stream(10, 2, 8 + 2 * options.rows), drifting_stream(8 + 2 * options.rows)):
            _print_speed(stream, options.rows, options.max_centers, console)
    if options.only in (None, "errors"):
        _print_errors(options.data, console)


def _print_speed(stream: Stream, rows: int, max_centers: int, console: Console) -> None:
    """Print the speed of a step after a number of rows and the end of their phase."""
    name, X, y = stream
    model = MetricRegressor(max_centers, n_jobs=PROCESSES).fit(X[:rows], y[:rows])
    end = model.state_.phase.end
    state = model.partial_fit(X[rows:end], y[rows:end]).state_
    sharding = Sharding(PROCESSES, min_rows=max(1, state.clock // 64))
    sizes = sharding.next_step(state.clock, state.phase.end, state.phase.end - state.clock)
    part = slice(end, end + sum(sizes))
    step = Rows(X[part], y[part])
    console.print(f"{name}, after {state.clock:,} rows, with {state.n_centers:,} centers:")
    console.print(speed_table(measure_speeds(state, step, sharding), len(step.y), sharding))


def _print_errors(data: Path | None, console: Console) -> None:
    table = new_table("Late error over that of one machine", ("stream", *(f"{n} shards" for n in ERROR_SHARDING)))
    for each in [drifting_stream(4000), *(read_folder(data) if data else [])]:
        table.add_row(each.name, *(f"{ratio:.3f}" for ratio in error_ratios(each).values()))
    console.print(table)


if __name__ == "__main__":
    main()
