"""A call a row: what `predict_one` and `learn_one` cost beside River's KNN. Run as ``python -m benchmarks.river``.

All play the same rows of ten features, in turns of a hundred, on one thread; what counts is the time that the thread
was at work, not what else the machine did. KNN keeps a thousand rows, searched by its default engine (a graph) and by
the plain one, which is cheaper at that size; ours holds a thousand centres or more. Two figures each: over all rows,
ends of phases included, in the mean; and of a turn in the median, which between two ends of phases is what a caller
waits for.
"""

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped,unused-ignore]

from benchmarks.command_line import Verdict, at_least, figures, table_of
from benchmarks.comparison.models import WINDOW, river_knn
from benchmarks.streams import Stream, corners
from ellipack.river import MetricRegressor, PackingRegressor
from ellipack.river.base import RiverRegressor

D, TURN = 10, 100

Rows = list[tuple[dict[str, float], float]]


class Cost(NamedTuple):
    """Microseconds a pair of `predict_one` and `learn_one`: in the mean over all rows, and of a turn in the median."""

    mean: float
    median: float


class Race(NamedTuple):
    """What learners cost on the same rows."""

    name: str
    centers: int
    ours: Cost
    theirs: dict[str, Cost]  # by the engine


def named(stream: Stream) -> Rows:
    """Return a stream's rows as River has them: features by name."""
    names = [f"feature {k}" for k in range(stream.X.shape[1])]
    pairs = zip(stream.X.tolist(), stream.y.tolist(), strict=True)
    return [(dict(zip(names, row, strict=True)), label) for row, label in pairs]


def play(model: Any, rows: Rows) -> float:
    """Return the seconds that predicting and learning these rows take."""
    start = time.thread_time()
    for x, label in rows:
        model.predict_one(x)
        model.learn_one(x, label)
    return time.thread_time() - start


def race(name: str, model: RiverRegressor, warm_up: int, rows: int) -> Race:
    """Return what a learner costs from one row on, beside KNN."""
    played = named(corners(D, warm_up + rows))
    peers = {"graph": river_knn("graph"), "plain": river_knn("plain")}
    for x, label in played[:warm_up]:
        model.predict_one(x)
        model.learn_one(x, label)
    for x, label in played[max(0, warm_up - WINDOW) : warm_up]:
        for peer in peers.values():
            peer.learn_one(x, label)
    turns = [played[start : start + TURN] for start in range(warm_up, warm_up + rows, TURN)]
    racers = (model, *peers.values())
    seconds = np.array([[play(racer, turn) for racer in racers] for turn in turns]).T * 1e6 / TURN
    ours, *theirs = (Cost(float(np.mean(each)), float(np.median(each))) for each in seconds)
    return Race(name, model.n_centers, ours, dict(zip(peers, theirs, strict=True)))


def verdicts(raced: Race, target: float) -> Iterator[Verdict]:
    """Judge how many times cheaper than KNN it was."""
    for engine, theirs in raced.theirs.items():
        yield at_least(f"{raced.name}, all rows, {engine} search", theirs.mean / raced.ours.mean, target, "x")
        yield at_least(f"{raced.name}, a turn, {engine} search", theirs.median / raced.ours.median, target, "x")


def main() -> None:
    """Measure, print, and say which targets were reached."""
    console = Console(width=120)
    with threadpool_limits(1):
        races = [
            (race("PackingRegressor", PackingRegressor(), 4000, 4000), 40.0),
            (race("MetricRegressor", MetricRegressor(), 1000, 4000), 5.0),
            (race("MetricRegressor, 16 neighbours", MetricRegressor(neighbors=16), 1000, 4000), 5.0),
        ]
    heads = ("learner", "centres", "KNN's search", "mean", "KNN's", "ratio", "median", "KNN's", "ratio")
    table = figures(f"Microseconds a row, predict_one and learn_one, {D} features; KNN over {WINDOW:,} rows", heads)
    for raced, _ in races:
        for engine, theirs in raced.theirs.items():
            pairs = zip(raced.ours, theirs, strict=True)
            shown = [figure for a, b in pairs for figure in (f"{a:.1f}", f"{b:.0f}", f"{b / a:.1f}x")]
            table.add_row(raced.name, f"{raced.centers:,}", engine, *shown)
    console.print(table)
    judged = [verdict for raced, target in races for verdict in verdicts(raced, target)]
    console.print(table_of(judged, "Times cheaper than River's KNNRegressor"))


if __name__ == "__main__":
    main()
