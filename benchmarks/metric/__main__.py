"""The practical learner: its error beside its peers', and what a round costs. Run as ``python -m benchmarks.metric``.

With ``--data FOLDER`` on each stream in a folder (see `benchmarks.streams`), progressively and in one pass, by the
late NRMSE. With ``--peers FILE`` beside others' errors on the same streams. If River is installed, a round's cost
beside that of its AMF. And always on streams made here: how cost grows, how long a caller waits, which directions are
found, what noise does, and what it costs to remember less. All on one thread.
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

from benchmarks.command_line import Verdict, at_least, at_most, figures, following, table_of, telling
from benchmarks.comparison.models import TREES
from benchmarks.metric import accuracy, cost, memory
from benchmarks.metric.accuracy import BATCH, INSTALL_RIVER, STREAMING, Errors, amf_cost, best_of, our_costs, read_peers
from benchmarks.streams import Stream, late_nrmse, low_rank, read_folder
from ellipack import MetricRegressor

_OVER_STREAMING, _OVER_BATCH, _CHEAPER = 0.43, 0.97, 10.0
_SHRUNK = 2  # streams of the folder on which memory is bounded


class Score(NamedTuple):
    """How the learner did on a stream."""

    stream: Stream
    error: float
    cost: float
    over_streaming: float
    over_batch: float


def score(stream: Stream, views: int, peers: Errors) -> Score:
    """Play a stream and return the late error and microseconds a round, beside the best peers."""
    start = time.perf_counter()
    predictions = MetricRegressor(views=views).progressive(stream.X, stream.y)
    microseconds = 1e6 * (time.perf_counter() - start) / len(stream.y)
    error = late_nrmse(predictions, stream.y)
    return Score(stream, error, microseconds, error / best_of(peers, STREAMING), error / best_of(peers, BATCH))


def errors_table(scores: Iterable[Score], views: int) -> Table:
    """Lay out errors and costs, a stream a row."""
    heads = ("stream", "d", "rows", "late NRMSE", "us a round", "over streaming", "over batch")
    table = figures(f"MetricRegressor, {views} view{'s'[: views - 1]}", heads)
    for stream, error, microseconds, *ratios in scores:
        shape = str(stream.X.shape[1]), f"{len(stream.y):,}"
        shown = ("-" if np.isnan(ratio) else f"{ratio:.3f}" for ratio in ratios)
        table.add_row(stream.name, *shape, f"{error:.4f}", f"{microseconds:.0f}", *shown)
    return table


def error_verdicts(scores: Iterable[Score]) -> Iterator[Verdict]:
    """Judge the geometric means of the ratios to the best peers, as far as peers are known."""
    ratios = np.array([(each.over_streaming, each.over_batch) for each in scores])
    means = [
        np.exp(np.log(column[np.isfinite(column)]).mean()) if np.isfinite(column).any() else np.nan
        for column in ratios.T
    ]
    if np.isfinite(means[0]):
        yield at_most("geometric mean over the best streaming peers", means[0], _OVER_STREAMING)
        worst = float(np.nanmax(ratios[:, 0]))
        yield Verdict("worst stream over its best streaming peer", f"{worst:.3g}", "below 1", worst < 1)
    if np.isfinite(means[1]):
        yield at_most("geometric mean over the best batch models", means[1], _OVER_BATCH)


def cost_table(streams: Iterable[Stream], views: int) -> tuple[Table, list[Verdict]]:
    """Lay out the cost of a round beside AMF's; AMF's grows with the rows, so that over more the ratio is larger."""
    heads = ("stream", "rows", "AMF", "ours", "ratio", "ours, a call a row", "ratio", "")
    table = figures(f"Microseconds a round, River's AMF ({TREES} trees) and ours, one thread", heads)
    ratios, most = [], 0
    for stream in streams:
        theirs, (ours, singly) = amf_cost(stream), our_costs(stream, views)
        verdict = at_least(stream.name, theirs / ours, _CHEAPER)
        ratios.append(theirs / ours)
        costs = f"{theirs:.0f}", f"{ours:.0f}", f"{verdict.figure}x", f"{singly:.0f}", f"{theirs / singly:.3g}x"
        table.add_row(stream.name, f"{len(stream.y):,}", *costs, verdict.word)
        most = max(most, len(stream.y))
    mean = float(np.exp(np.log(ratios).mean()))
    return table, [at_least(f"times cheaper than AMF over at most {most:,} rows, geometric mean", mean, _CHEAPER)]


def on_streams(streams: list[Stream], options: argparse.Namespace, console: Console) -> list[Verdict]:
    """Measure on the streams of a folder; print tables, return verdicts."""
    peers = read_peers(options.peers) if options.peers else {}
    scores = [score(stream, options.views, peers.get(stream.name, {})) for stream in _followed(streams)]
    console.print(errors_table(scores, options.views))
    verdicts = list(error_verdicts(scores))
    if options.amf:
        try:
            table, more = cost_table(_followed(stream.head(options.amf) for stream in streams), options.views)
        except ImportError:
            console.print(INSTALL_RIVER, highlight=False)
        else:
            console.print(table)
            verdicts += more
    return verdicts


def on_made(streams: list[Stream], options: argparse.Namespace, console: Console) -> list[Verdict]:
    """Measure on streams made here, memory on some of the folder's as well; print tables, return verdicts."""
    with telling("growth"):
        grown = cost.grow(options.views)
    with telling("noise"):
        verdicts = [*cost.verdicts(grown), *accuracy.noise_verdicts(options.views)]
    shrunk = [low_rank(8, 3, 8_000), *streams[:_SHRUNK]]
    compared = {each.name: memory.compare(each, options.views) for each in _followed(shrunk)}
    console.print(*cost.tables(grown), memory.table_of(compared), sep="\n")
    return [*verdicts, *memory.verdicts(compared)]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metric", description="Measure the practical learner.")
    parser.add_argument("--data", type=Path, help="a folder of CSV files, plain or compressed, the label y last")
    parser.add_argument("--peers", type=Path, help="a table of others' late NRMSE, in Markdown or as CSV")
    parser.add_argument("--rows", type=int, help="play at most so many rows of each stream")
    parser.add_argument("--views", type=int, default=1, help="the learner's views, 1 unless told")
    parser.add_argument("--amf", type=int, default=5000, help="rows over which River's AMF is timed; 0: not at all")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, and say which targets were reached."""
    options = parse(arguments)
    console = Console(width=120)
    streams = [each.head(options.rows) for each in read_folder(options.data)] if options.data else []
    verdicts = []
    with threadpool_limits(1):
        with telling("compiling"):
            warm_up(options.views)
        if streams:
            verdicts += on_streams(streams, options, console)
        verdicts += on_made(streams, options, console)
    console.print(table_of(verdicts, "Targets"))


def warm_up(views: int) -> None:
    """Let everything be compiled before anything is timed."""
    stream = low_rank(8, 3, 300)
    learner = MetricRegressor(100, views=views).fit(stream.X, stream.y)
    learner.predict(stream.X)


def _followed(streams: Iterable[Stream]) -> Iterator[Stream]:
    """Yield streams, saying which and how far."""
    return following((stream.name, stream) for stream in streams)


if __name__ == "__main__":
    main()
