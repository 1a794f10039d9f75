"""Prediction intervals beside those of others: ``python -m benchmarks.intervals``, or `make bench-intervals`.

On each stream, all methods predict each row with an interval of 80 % and one of 95 %, made before its label. Scores are
those of the rows after the first 1,000, or after the first third of shorter streams: the fraction of labels inside, the
smallest one over 500 consecutive rows, the mean width and the interval score (Winkler), both in standard deviations of
the labels. The others are River's jackknife around the best of its three regressors on the stream, quantile regressions
of LightGBM that are trained again whenever a quarter more rows are known, and the quantiles of the last 500 errors of
ellipack's own predictions. Intervals that contain more labels than wanted do so in their worst window, too. So there is
a second version of quantiles and of River's intervals, for worst windows alone: quantiles of the last errors at a level
that is chosen in hindsight, such that they contain as many labels as ellipack's intervals. With ``--cost``, the command
prints what a round costs with intervals and without, what the calibration costs alone, and what it costs to defer it.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import lightgbm
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.console import Console
from river import conf, forest, neighbors, preprocessing

from benchmarks.command_line import (
    at_least,
    at_most,
    make_parser,
    new_table,
    require_positive,
    run_cases,
    targets_table,
)
from benchmarks.comparison.datasets import DATASETS, datasets_in_folder
from benchmarks.measurement import best_of
from benchmarks.streams import Stream
from ellipack import MetricRegressor, PackingRegressor
from ellipack._core import ConformalIntervals, DeferredCalibration
from ellipack.learners.intervals import Intervals
from ellipack.validation import Floats

ROWS = 5000
"""Default largest number of rows of a stream."""

COVERAGES: Final = (0.8, 0.95)
_WINDOW = 500  # rows of a running quantile, and of the worst window
_BURN_IN = 1000
_FIRST_FIT = 100  # rows before LightGBM is trained
_SHORT_RUNS = 100  # of learners that need about a millisecond, for each run of a longer one
_GROWTH = 1.25  # of the number of rows, after which it is trained again

OURS, QUANTILES, RIVER, LIGHTGBM = "ellipack", "quantiles of errors", "River", "LightGBM"
WITH_INTERVALS = ", with intervals"
CALIBRATION, DEFERRED = "calibration alone", "deferred calibration"
FEW_FEATURES: Final = "PackingRegressor, 3 features"
QUANTILES_IN_HINDSIGHT, RIVER_IN_HINDSIGHT = "quantiles, as many inside", "River, as many inside"


class Score(NamedTuple):
    """Scores of the intervals of one coverage; widths are in standard deviations of the labels."""

    covered: float
    worst_window: float
    width: float
    score: float


def score_intervals(intervals: Intervals, y: Floats, coverage: float) -> Score:
    """Return the scores of intervals after the first rows."""
    late = slice(min(_BURN_IN, len(y) // 3), None)
    lower, upper, labels = intervals.lower[late], intervals.upper[late], y[late]
    inside = (lower <= labels) & (labels <= upper)
    windows = sliding_window_view(inside, min(_WINDOW, len(inside))).mean(axis=1)
    missed = np.maximum(lower - labels, 0) + np.maximum(labels - upper, 0)
    unit, width = np.std(labels), np.mean(upper - lower)
    return Score(
        float(inside.mean()),
        float(windows.min()),
        float(width / unit),
        float((width + 2 / (1 - coverage) * missed.mean()) / unit),
    )


class RunningQuantiles:
    """Intervals from the quantiles of the last errors of predictions; infinite ones before the tenth label."""

    def __init__(self, predictions: Floats, y: Floats) -> None:
        self._predictions, self._labels = predictions, y
        padded = np.concatenate([np.full(_WINDOW, np.inf), y - predictions])
        self._errors = np.sort(sliding_window_view(padded, _WINDOW)[: len(y)], axis=1)
        self._known = np.minimum(np.arange(len(y)), _WINDOW)

    def intervals(self, coverage: float) -> Intervals:
        """Return the intervals of a coverage."""
        tail = (1 - coverage) / 2
        lower, upper = self._predictions + self._quantile(tail), self._predictions + self._quantile(1 - tail)
        lower[:10], upper[:10] = -np.inf, np.inf
        return Intervals(lower, upper)

    def intervals_around(self, covered: float) -> Intervals:
        """Return the intervals of the least level at which a fraction of the late labels is inside, in hindsight."""
        low, high = 0.0, 1.0
        for _ in range(20):
            level = (low + high) / 2
            inside = score_intervals(self.intervals(level), self._labels, 0.5).covered
            low, high = (level, high) if inside < covered else (low, level)
        return self.intervals(high)

    def _quantile(self, level: float) -> Floats:
        """Return a quantile of the last errors before each row, interpolated linearly; the first is infinite."""
        position = level * np.maximum(self._known - 1, 0)
        below = np.floor(position).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(self._known - 1, 0))
        near, far = (np.take_along_axis(self._errors, each[:, None], axis=1)[:, 0] for each in (below, above))
        with np.errstate(invalid="ignore"):  # inf - inf, before the first label
            return np.asarray(near + (position - below) * (far - near))


class Method(NamedTuple):
    """Predictions of a method, and its intervals of each coverage."""

    predictions: Floats
    intervals: list[Intervals]


def _ours(stream: Stream) -> Method:
    """Return the predictions and the intervals of ellipack."""
    predictions, both = MetricRegressor().progressive(stream.X, stream.y, coverage=COVERAGES)
    return Method(predictions, [Intervals(both.lower[:, k], both.upper[:, k]) for k in range(len(COVERAGES))])


def _river_models() -> dict[str, Callable[[], Any]]:
    return {
        "KNN": lambda: preprocessing.StandardScaler() | neighbors.KNNRegressor(n_neighbors=5),
        "AMF": lambda: preprocessing.StandardScaler() | forest.AMFRegressor(seed=0),
        "ARF": lambda: forest.ARFRegressor(seed=0),
    }


def _river(stream: Stream, make: Callable[[], Any]) -> Method:
    """Return the intervals of River's jackknife around a regressor, by the quantiles of its last errors."""
    wrapped = [conf.RegressionJackknife(make(), coverage, _WINDOW) for coverage in COVERAGES]
    model, ends, predictions = (
        wrapped[0].regressor,
        np.empty((len(COVERAGES), 2, len(stream.y))),
        np.empty(len(stream.y)),
    )
    rows = [dict(enumerate(row)) for row in stream.X.tolist()]
    for t, (x, y) in enumerate(zip(rows, stream.y.tolist(), strict=True)):
        predictions[t] = prediction = model.predict_one(x) or 0.0
        for k, each in enumerate(wrapped):  # they share the regressor, which learns once
            ends[k, :, t] = prediction + (each._lower.get() or 0.0), prediction + (each._upper.get() or 0.0)
            each._lower.update(y - prediction)
            each._upper.update(y - prediction)
        model.learn_one(x, y)
    return Method(predictions, [Intervals(lower, upper) for lower, upper in ends])


def _lightgbm(stream: Stream) -> list[Intervals]:
    """Return the intervals of quantile regressions that are trained again along the way."""
    ends = np.full((2 * len(COVERAGES), len(stream.y)), np.nan)
    levels = [level for coverage in COVERAGES for level in ((1 - coverage) / 2, (1 + coverage) / 2)]
    ends[0::2], ends[1::2] = -np.inf, np.inf
    start = _FIRST_FIT
    while start < len(stream.y):
        stop = min(len(stream.y), max(start + 1, int(start * _GROWTH)))
        for k, level in enumerate(levels):
            model = lightgbm.LGBMRegressor(
                objective="quantile", alpha=level, n_estimators=200, learning_rate=0.05, verbose=-1, n_jobs=1
            )
            ends[k, start:stop] = model.fit(stream.X[:start], stream.y[:start]).predict(stream.X[start:stop])
        start = stop
    return [Intervals(*np.sort(ends[2 * k : 2 * k + 2], axis=0)) for k in range(len(COVERAGES))]


def measure(stream: Stream) -> dict[str, list[Score]]:
    """Return the scores of each method, one for each coverage."""

    def score(intervals: list[Intervals]) -> list[Score]:
        return [score_intervals(each, stream.y, coverage) for each, coverage in zip(intervals, COVERAGES, strict=True)]

    ours = _ours(stream)
    own = score(ours.intervals)

    def in_hindsight(predictions: Floats) -> list[Score]:
        quantiles = RunningQuantiles(predictions, stream.y)
        return score([quantiles.intervals_around(each.covered) for each in own])

    quantiles = RunningQuantiles(ours.predictions, stream.y)
    river = [_river(stream, make) for make in _river_models().values()]
    best = min(river, key=lambda method: sum(np.log(each.score) for each in score(method.intervals)))
    return {
        OURS: own,
        QUANTILES: score([quantiles.intervals(coverage) for coverage in COVERAGES]),
        QUANTILES_IN_HINDSIGHT: in_hindsight(ours.predictions),
        RIVER: score(best.intervals),
        RIVER_IN_HINDSIGHT: in_hindsight(best.predictions),
        LIGHTGBM: score(_lightgbm(stream)),
    }


def measure_cost(rows: int, repeats: int) -> dict[str, float]:
    """Return the least time of a round in microseconds, of the calibration alone or deferred, and of learners.

    Each learner runs with intervals and without by turns, so that other work on the machine delays both alike. Short
    runs are timed by the clock: most of them are not interrupted, and processor time is not exact to microseconds.
    Those of `MetricRegressor` are long, and timed by processor time.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.25, 0.25, size=(rows, 10))
    few = 2 * X[:, :3]
    y = 0.5 + 0.6 * X[:, 0] + 0.1 * rng.uniform(size=rows)
    predictions, short = X[:, 0].copy(), _SHORT_RUNS * repeats
    calibration = DeferredCalibration()
    costs = {
        CALIBRATION: best_of(short, lambda: ConformalIntervals().learn(predictions, y))[0],
        DEFERRED: best_of(short, lambda: calibration.defer(predictions, y))[0],
    }

    def measure(learner: Callable[[], Any], X: Floats, runs: int, clock: Callable[[], float]) -> None:
        name = f"{type(learner()).__name__}, {X.shape[1]} features"
        costs[name], costs[name + WITH_INTERVALS] = best_of(
            runs,
            lambda: learner().progressive(X, y),
            lambda: learner().progressive(X, y, coverage=0.9),
            clock=clock,
        )

    measure(PackingRegressor, few, short, time.perf_counter)
    measure(PackingRegressor, X, short, time.perf_counter)
    measure(partial(MetricRegressor, n_jobs=1), few, repeats, time.process_time)
    return {name: seconds / rows * 1e6 for name, seconds in costs.items()}


def _print_cost(rows: int) -> None:
    """Print what a round costs, and how much more it costs with intervals."""
    costs = measure_cost(rows, repeats=20)
    table = new_table("Cost of a round", ["what", "microseconds"])
    for name, cost in costs.items():
        table.add_row(name, f"{cost:.3f}")
    added = {name: cost / costs[name.removesuffix(WITH_INTERVALS)] - 1 for name, cost in costs.items()}
    targets = [
        at_most(f"{name}: added to the round", 100 * added[name], 5, " %") for name in costs if WITH_INTERVALS in name
    ]
    deferred = 100 * costs[DEFERRED] / costs[FEW_FEATURES]
    targets.append(at_most(f"{FEW_FEATURES}, without intervals: share of the calibration", deferred, 1, " %"))
    Console(width=120).print(table, targets_table(targets))


def main(arguments: list[str] | None = None) -> None:
    """Print the table and the targets."""
    parser = make_parser("intervals", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="largest number of rows of a stream (default: 5000)")
    parser.add_argument("--data", type=Path, help="folder of CSV files, instead of the public streams")
    parser.add_argument("--streams", nargs="*", help="names of streams (default: all)")
    parser.add_argument("--jobs", type=int, default=1, help="number of streams at a time, in processes (default: 1)")
    parser.add_argument("--cost", action="store_true", help="measure the cost of a round instead")
    options: argparse.Namespace = parser.parse_args(arguments)
    require_positive(parser, options, "rows", "jobs")
    if options.cost:
        _print_cost(options.rows)
        return
    datasets = DATASETS if options.data is None else datasets_in_folder(options.data)
    unknown = set(options.streams or ()) - set(datasets)
    if unknown:
        parser.error(f"--streams must be some of {', '.join(datasets)}, got {', '.join(sorted(unknown))}")
    names = options.streams or list(datasets)
    cases = [(name, datasets[name].draw(0, options.rows).head(options.rows)) for name in names]
    results = dict(zip(names, run_cases(measure, cases, options.jobs), strict=True))
    console = Console(width=120)
    for k, coverage in enumerate(COVERAGES):
        headings = ["stream", "method", "inside", "worst window", "width", "score"]
        table = new_table(f"Intervals of {coverage:.0%}", headings)
        for name, methods in results.items():
            for method, scores in methods.items():
                each = scores[k]
                numbers = f"{each.covered:.3f}", f"{each.worst_window:.3f}", f"{each.width:.3f}", f"{each.score:.3f}"
                table.add_row(name, method, *numbers)
        console.print(table)
    console.print(targets_table(_targets(results)))


def _targets(results: dict[str, dict[str, list[Score]]]) -> list[Any]:
    """Compare the results with what they are to reach, at each coverage."""
    targets = []
    for k, coverage in enumerate(COVERAGES):
        scores = [{method: each[k] for method, each in methods.items()} for methods in results.values()]
        gap = 100 * max(abs(each[OURS].covered - coverage) for each in scores)
        targets.append(at_most(f"{coverage:.0%}: largest error of the coverage", gap, 1.5, " points"))
        for name, others in (
            ("streams whose worst window is the best", (QUANTILES, RIVER, LIGHTGBM)),
            ("the same, others with as many inside", (QUANTILES_IN_HINDSIGHT, RIVER_IN_HINDSIGHT, LIGHTGBM)),
        ):
            safe = _percentage(
                each[OURS].worst_window >= max(each[other].worst_window for other in others) for each in scores
            )
            targets.append(at_least(f"{coverage:.0%}: {name}", safe, 100, " %"))
        best = _percentage(
            each[OURS].score < min(each[other].score for other in (QUANTILES, RIVER, LIGHTGBM)) for each in scores
        )
        targets.append(at_least(f"{coverage:.0%}: streams with the best interval score", best, 66.7, " %"))
    return targets


def _percentage(outcomes: Iterable[bool]) -> float:
    return 100 * float(np.mean(list(outcomes)))


if __name__ == "__main__":
    main()
