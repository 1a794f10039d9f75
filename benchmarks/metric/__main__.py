"""Measure MetricRegressor: ``python -m benchmarks.metric``.

With ``--data FOLDER``: the late NRMSE on each stream of a folder of CSV files, in one pass; with ``--peers FILE``, next
to the errors of peers. If River is installed, also the cost per round next to its AMF.

Always, on synthetic streams: growth of the cost, cost with many features, latency of calls, error of the learned
directions, error on pure noise, and error with a limit on centers. Everything runs on one thread.
"""

import argparse
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.command_line import (
    TargetResult,
    at_least,
    at_most,
    make_parser,
    new_table,
    show_activity,
    targets_table,
    track_progress,
)
from benchmarks.comparison.models import TREES
from benchmarks.metric import accuracy, cost, many_features, memory
from benchmarks.metric.accuracy import (
    BATCH_PEERS,
    INSTALL_RIVER,
    STREAMING_PEERS,
    Errors,
    amf_cost,
    best_error,
    our_costs,
    read_peers,
)
from benchmarks.streams import Stream, late_nrmse, low_rank_stream, read_folder
from ellipack import MetricRegressor

_MAX_OVER_STREAMING, _MAX_OVER_BATCH, _MIN_SPEEDUP = 0.43, 0.97, 10.0
_LIMITED_STREAMS = 2  # number of streams of the folder on which centers are limited


class Score(NamedTuple):
    """Error and cost on a stream."""

    stream: Stream
    error: float
    cost: float
    over_streaming: float
    over_batch: float


def score(stream: Stream, views: int, peers: Errors) -> Score:
    """Return the late error and the microseconds per round on a stream, and ratios to the best peers."""
    start = time.perf_counter()
    predictions = MetricRegressor(views=views).progressive(stream.X, stream.y)
    microseconds = 1e6 * (time.perf_counter() - start) / len(stream.y)
    error = late_nrmse(predictions, stream.y)
    return Score(
        stream, error, microseconds, error / best_error(peers, STREAMING_PEERS), error / best_error(peers, BATCH_PEERS)
    )


def errors_table(scores: Iterable[Score], views: int) -> Table:
    """Return a table of errors and costs, a stream in each row."""
    heads = ("stream", "d", "rows", "late NRMSE", "us per round", "over streaming", "over batch")
    table = new_table(f"MetricRegressor, {views} view{'s'[: views - 1]}", heads)
    for stream, error, microseconds, *ratios in scores:
        shape = str(stream.X.shape[1]), f"{len(stream.y):,}"
        shown = ("-" if np.isnan(ratio) else f"{ratio:.3f}" for ratio in ratios)
        table.add_row(stream.name, *shape, f"{error:.4f}", f"{microseconds:.0f}", *shown)
    return table


def error_targets(scores: Iterable[Score]) -> Iterator[TargetResult]:
    """Compare the geometric means of the ratios to the best peers, if there are any, with their targets."""
    ratios = np.array([(each.over_streaming, each.over_batch) for each in scores])
    means = [
        np.exp(np.log(column[np.isfinite(column)]).mean()) if np.isfinite(column).any() else np.nan
        for column in ratios.T
    ]
    if np.isfinite(means[0]):
        yield at_most("geometric mean over the best streaming peers", means[0], _MAX_OVER_STREAMING)
        worst = float(np.nanmax(ratios[:, 0]))
        yield TargetResult("worst stream over its best streaming peer", f"{worst:.3g}", "below 1", worst < 1)
    if np.isfinite(means[1]):
        yield at_most("geometric mean over the best batch models", means[1], _MAX_OVER_BATCH)


def cost_table(streams: Iterable[Stream], views: int) -> tuple[Table, list[TargetResult]]:
    """Return a table of the cost per round next to that of AMF, which grows with the number of rows."""
    heads = ("stream", "rows", "AMF", "ours", "ratio", "ours, one row per call", "ratio", "")
    table = new_table(f"Microseconds per round, River's AMF ({TREES} trees) and MetricRegressor, one thread", heads)
    ratios, most = [], 0
    for stream in streams:
        theirs, (ours, row_by_row) = amf_cost(stream), our_costs(stream, views)
        target = at_least(stream.name, theirs / ours, _MIN_SPEEDUP)
        ratios.append(theirs / ours)
        costs = f"{theirs:.0f}", f"{ours:.0f}", f"{target.value}x", f"{row_by_row:.0f}", f"{theirs / row_by_row:.3g}x"
        table.add_row(stream.name, f"{len(stream.y):,}", *costs, target.status)
        most = max(most, len(stream.y))
    mean = float(np.exp(np.log(ratios).mean()))
    return table, [at_least(f"times cheaper than AMF over at most {most:,} rows, geometric mean", mean, _MIN_SPEEDUP)]


def measure_folder(streams: list[Stream], options: argparse.Namespace, console: Console) -> list[TargetResult]:
    """Measure on the streams of a folder; print tables, return targets."""
    peers = read_peers(options.peers) if options.peers else {}
    scores = [score(stream, options.views, peers.get(stream.name, {})) for stream in _track(streams)]
    console.print(errors_table(scores, options.views))
    targets = list(error_targets(scores))
    if options.amf:
        try:
            table, more = cost_table(_track(stream.head(options.amf) for stream in streams), options.views)
        except ImportError:
            console.print(INSTALL_RIVER, highlight=False)
        else:
            console.print(table)
            targets += more
    return targets


def measure_synthetic(streams: list[Stream], options: argparse.Namespace, console: Console) -> list[TargetResult]:
    """Measure on synthetic streams, and eviction also on some of the folder; print tables, return targets."""
    with show_activity("growth"):
        growth = cost.measure_growth(options.views)
    with show_activity("many features"):
        many = many_features.measure_many_features()
    with show_activity("noise"):
        targets = [*cost.targets(growth), *many_features.targets(many), *accuracy.noise_targets(options.views)]
    limited = [low_rank_stream(8, 3, 8_000), *streams[:_LIMITED_STREAMS]]
    compared = {each.name: memory.compare(each, options.views) for each in _track(limited)}
    console.print(*cost.cost_tables(growth), many_features.cost_table(many), memory.errors_table(compared), sep="\n")
    return [*targets, *memory.targets(compared)]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = make_parser("metric", __doc__)
    parser.add_argument("--data", type=Path, help="a folder of CSV files, plain or gzip, label y in the last column")
    parser.add_argument("--peers", type=Path, help="a table of the late NRMSE of peers, Markdown or CSV")
    parser.add_argument("--rows", type=int, help="maximal number of rows of each stream")
    parser.add_argument("--views", type=int, default=1, help="views of MetricRegressor (default: %(default)s)")
    parser.add_argument(
        "--amf",
        type=int,
        default=5000,
        help="rows over which River's AMF is timed, 0 to skip it (default: %(default)s)",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print tables and targets."""
    options = parse(arguments)
    console = Console(width=120)
    streams = [each.head(options.rows) for each in read_folder(options.data)] if options.data else []
    targets = []
    with threadpool_limits(1):
        with show_activity("warming up"):
            warm_up(options.views)
        if streams:
            targets += measure_folder(streams, options, console)
        targets += measure_synthetic(streams, options, console)
    console.print(targets_table(targets, "Targets"))


def warm_up(views: int) -> None:
    """Run everything once before anything is timed."""
    stream = low_rank_stream(8, 3, 300)
    learner = MetricRegressor(100, views=views).fit(stream.X, stream.y)
    learner.predict(stream.X)


def _track(streams: Iterable[Stream]) -> Iterator[Stream]:
    """Yield streams and show progress."""
    return track_progress((stream.name, stream) for stream in streams)


if __name__ == "__main__":
    main()
