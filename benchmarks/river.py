"""Cost of `predict_one` and `learn_one` next to River's KNN: ``python -m benchmarks.river``.

All models run on the same rows of ten features, in turns of a hundred rows, on one thread. Cost is the processor time
of the thread. KNN keeps a thousand rows, with its default search (a graph) and with linear search, which is cheaper at
that size; ellipack has a thousand centers or more. There are two figures for each: the mean over all rows, phase ends
included, and the median over turns, which is the latency within a phase.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.command_line import TargetResult, at_least, new_table, targets_table
from benchmarks.comparison.models import WINDOW, river_knn
from benchmarks.streams import Stream, corner_stream
from ellipack.river import MetricRegressor, PackingRegressor
from ellipack.river.base import RiverRegressor

D, TURN = 10, 100

Rows = list[tuple[dict[str, float], float]]


class PairCost(NamedTuple):
    """Microseconds per pair of `predict_one` and `learn_one`: mean over all rows, median over turns."""

    mean: float
    median: float


class CostComparison(NamedTuple):
    """Costs of models on the same rows."""

    name: str
    centers: int
    ours: PairCost
    theirs: dict[str, PairCost]  # by the search of KNN


def named_rows(stream: Stream) -> Rows:
    """Return the rows of a stream as dictionaries with their labels."""
    names = [f"feature {k}" for k in range(stream.X.shape[1])]
    pairs = zip(stream.X.tolist(), stream.y.tolist(), strict=True)
    return [(dict(zip(names, row, strict=True)), label) for row, label in pairs]


def time_rows(model: Any, rows: Rows) -> float:
    """Return the seconds to predict and learn these rows."""
    start = time.thread_time()
    for x, label in rows:
        model.predict_one(x)
        model.learn_one(x, label)
    return time.thread_time() - start


def compare_costs(name: str, model: RiverRegressor[Any], warm_up: int, rows: int) -> CostComparison:
    """Return the cost of a learner after a warm-up, next to that of KNN."""
    pairs = named_rows(corner_stream(D, warm_up + rows))
    peers = {"graph": river_knn("graph"), "linear": river_knn("linear")}
    for x, label in pairs[:warm_up]:
        model.predict_one(x)
        model.learn_one(x, label)
    for x, label in pairs[max(0, warm_up - WINDOW) : warm_up]:
        for peer in peers.values():
            peer.learn_one(x, label)
    turns = [pairs[start : start + TURN] for start in range(warm_up, warm_up + rows, TURN)]
    models = (model, *peers.values())
    seconds = np.array([[time_rows(model, turn) for model in models] for turn in turns]).T * 1e6 / TURN
    ours, *theirs = (PairCost(float(np.mean(each)), float(np.median(each))) for each in seconds)
    return CostComparison(name, model.n_centers, ours, dict(zip(peers, theirs, strict=True)))


def targets(comparison: CostComparison, target: float) -> Iterator[TargetResult]:
    """Compare with the target how many times as cheap as KNN the learner is."""
    for engine, theirs in comparison.theirs.items():
        yield at_least(f"{comparison.name}, all rows, {engine} search", theirs.mean / comparison.ours.mean, target, "x")
        yield at_least(
            f"{comparison.name}, a turn, {engine} search", theirs.median / comparison.ours.median, target, "x"
        )


def main() -> None:
    """Measure, and print tables and targets."""
    console = Console(width=120)
    with threadpool_limits(1):
        comparisons = [
            (compare_costs("PackingRegressor", PackingRegressor(), 4000, 4000), 40.0),
            (compare_costs("MetricRegressor", MetricRegressor(), 1000, 4000), 5.0),
            (compare_costs("MetricRegressor, 16 neighbors", MetricRegressor(neighbors=16), 1000, 4000), 5.0),
        ]
    heads = ("learner", "centers", "KNN search", "mean", "KNN mean", "ratio", "median", "KNN median", "ratio")
    table = new_table(f"Microseconds per row, predict_one and learn_one, {D} features; KNN over {WINDOW:,} rows", heads)
    for comparison, _ in comparisons:
        for engine, theirs in comparison.theirs.items():
            pairs = zip(comparison.ours, theirs, strict=True)
            shown = [figure for a, b in pairs for figure in (f"{a:.1f}", f"{b:.0f}", f"{b / a:.1f}x")]
            table.add_row(comparison.name, f"{comparison.centers:,}", engine, *shown)
    console.print(table)
    results = [result for comparison, target in comparisons for result in targets(comparison, target)]
    console.print(targets_table(results, "Times cheaper than River's KNNRegressor"))


if __name__ == "__main__":
    main()
