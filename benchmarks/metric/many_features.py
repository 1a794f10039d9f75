"""Cost of MetricRegressor with many features, on a stream of which two features matter.

``python -m benchmarks.metric.many_features`` prints the slowest rows alone.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.command_line import TargetResult, at_most, make_parser, new_table
from benchmarks.measurement import best_of
from benchmarks.metric.cost import learn_row_by_row
from benchmarks.streams import late_nrmse
from ellipack import MetricRegressor
from ellipack.validation import Floats

DIMENSIONS, N_ROWS = (10, 100, 300), 4_000
LARGE_DIMENSIONS, N_SINGLE_ROWS = (1_000, 2_000), 300
_REPEATS = 2
_SLOWEST_DIMENSIONS = (500, 1_000, 1_500, 2_000)
_SLOWEST_HEADS = ("slowest row", "ms", "ratio to the limit")
_MAX_RATIOS, _MAX_SECONDS = (3.0, 8.0), 0.2


class SlowestRow(NamedTuple):
    """The slowest of the first rows of a stream."""

    number: int  # from 1
    seconds: float


class ManyFeaturesResult(NamedTuple):
    """What `measure_many_features` measures."""

    dimensions: tuple[int, ...]
    costs: list[float]  # microseconds per round
    errors: list[float]  # late NRMSE
    large_dimensions: tuple[int, ...]
    slowest: list[SlowestRow]  # calls of partial_fit with one row, at all dimensions


def draw(d: int, n_rows: int) -> tuple[Floats, Floats]:
    """Draw rows of d features, and labels that depend on two of them, nonlinearly."""
    rng = np.random.default_rng(d)
    X = rng.normal(size=(n_rows, d))
    first, second = X[:, rng.choice(d, 2, replace=False)].T
    return X, np.sin(first) + 0.5 * second**2 + 0.1 * rng.normal(size=n_rows)


def measure_many_features(
    dimensions: tuple[int, ...] = DIMENSIONS,
    n_rows: int = N_ROWS,
    large_dimensions: tuple[int, ...] = LARGE_DIMENSIONS,
    n_single_rows: int = N_SINGLE_ROWS,
) -> ManyFeaturesResult:
    """Measure the cost of a round at some dimensions in turns, and the longest call at larger ones."""
    streams = [draw(d, n_rows) for d in dimensions]
    runs = [partial(_run, *stream) for stream in streams]
    seconds = best_of(_REPEATS, *runs)
    return ManyFeaturesResult(
        dimensions,
        [1e6 * each / n_rows for each in seconds],
        [late_nrmse(run(), y) for run, (_, y) in zip(runs, streams, strict=True)],
        large_dimensions,
        [find_slowest_row(d, n_single_rows) for d in (*dimensions, *large_dimensions)],
    )


def find_slowest_row(d: int, n_rows: int) -> SlowestRow:
    """Learn one row per call, and return the slowest."""
    seconds = learn_row_by_row(MetricRegressor(n_jobs=1), *draw(d, n_rows))
    return SlowestRow(int(seconds.argmax()) + 1, float(seconds.max()))


def _run(X: Floats, y: Floats) -> Floats:
    return MetricRegressor(n_jobs=1).progressive(X, y)


def targets(result: ManyFeaturesResult) -> list[TargetResult]:
    """Compare the measurements with their targets."""
    least = result.costs[0]
    ratios = [
        at_most(f"cost of a round at d = {d} over that at d = {result.dimensions[0]}", each / least, target)
        for d, each, target in zip(result.dimensions[1:], result.costs[1:], _MAX_RATIOS, strict=False)
    ]
    largest = result.large_dimensions[-1]
    longest = max(row.seconds for row in result.slowest)
    return [*ratios, at_most(f"longest single call, d up to {largest:,}", longest, _MAX_SECONDS, " s")]


def cost_table(result: ManyFeaturesResult) -> Table:
    """Return a table of cost, error and slowest row by dimension."""
    table = new_table("Many features, two of them relevant", ("d", "us per round", "late NRMSE", *_SLOWEST_HEADS))
    measured = [(f"{cost:.0f}", f"{error:.3f}") for cost, error in zip(result.costs, result.errors, strict=True)]
    columns = [*measured, *(("-", "-") for _ in result.large_dimensions)]
    for d, shown, slowest in zip((*result.dimensions, *result.large_dimensions), columns, result.slowest, strict=True):
        table.add_row(f"{d:,}", *shown, *_slowest_cells(slowest))
    return table


def _slowest_cells(slowest: SlowestRow) -> tuple[str, str, str]:
    return f"{slowest.number:,}", f"{1e3 * slowest.seconds:.0f}", f"{slowest.seconds / _MAX_SECONDS:.2f}"


def main(arguments: list[str] | None = None) -> None:
    """Print the slowest row at each number of features."""
    parser = make_parser("metric.many_features", "Slowest rows of MetricRegressor with many features.")
    parser.add_argument("--features", type=int, nargs="+", default=[*_SLOWEST_DIMENSIONS], help="numbers of features")
    parser.add_argument("--rows", type=int, default=2_000, help="rows, one per call (default: %(default)s)")
    options = parser.parse_args(arguments)
    table = new_table(f"Slowest of {options.rows:,} calls of partial_fit with one row", ("d", *_SLOWEST_HEADS))
    for d in options.features:
        table.add_row(f"{d:,}", *_slowest_cells(find_slowest_row(d, options.rows)))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
