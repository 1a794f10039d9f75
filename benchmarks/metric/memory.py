"""Error with a limit on centers: eviction of redundant centers against keeping the latest rows.

The baseline is the same learner with the same metric, experts and phases. When its memory is full, it drops the oldest
quarter of its rows, where MetricRegressor evicts redundant centers. Only the choice of centers differs.
"""

from dataclasses import replace

import numpy as np
from rich.table import Table

from benchmarks.command_line import TargetResult, new_table
from benchmarks.streams import Stream, late_nrmse
from ellipack import MetricRegressor
from ellipack._core import CoreParts, MetricCore
from ellipack.learners.metric.eviction import keep_centers
from ellipack.learners.metric.state import MetricState, replace_parts
from ellipack.validation import Floats

DIVISORS = (2, 4, 8)
"""Numbers of rows per center."""

_DROPPED_FRACTION = 0.25  # of the rows, when memory is full


def error_with_eviction(stream: Stream, max_centers: int, views: int) -> float:
    """Return the late error with at most so many centers and eviction of redundant ones."""
    learner = MetricRegressor(max_centers, views=views)
    return late_nrmse(learner.progressive(stream.X, stream.y), stream.y)


def error_of_latest(stream: Stream, max_centers: int, views: int) -> float:
    """Return the late error with at most so many centers, always the latest rows."""
    # One more than needed, so that the learner itself never evicts.
    learner = MetricRegressor(max_centers + 1, views=views)
    predictions: list[Floats] = []
    done = 0
    while done < len(stream.y):
        held = learner.n_centers_ if predictions else 0
        if held == max_centers:
            held -= int(_DROPPED_FRACTION * max_centers)
            keep_latest(learner.state_, held)
        part = slice(done, done + max_centers - held)
        predictions.append(learner.progressive(stream.X[part], stream.y[part]))
        done += len(predictions[-1])
    return late_nrmse(np.concatenate(predictions), stream.y)


def keep_latest(state: MetricState, kept: int) -> None:
    """Drop all but the latest centers of a learner."""
    parts, latest = state.core.parts().plain, np.arange(state.n_centers - kept, state.n_centers)
    centers, index = keep_centers(parts.centers, latest, parts.views)
    parts = replace_parts(parts, centers=centers, index=index)
    state.phase = replace(state.phase, core=MetricCore(state.core.settings, CoreParts(parts, None)))


def compare(stream: Stream, views: int = 1) -> list[tuple[int, float, float]]:
    """Return divisors of the number of rows, and both errors with that limit on centers; without a limit first."""
    everything = error_with_eviction(stream, len(stream.y) + 1, views)
    compared = [(1, everything, everything)]
    for divisor in DIVISORS:
        max_centers = len(stream.y) // divisor
        compared.append(
            (divisor, error_with_eviction(stream, max_centers, views), error_of_latest(stream, max_centers, views))
        )
    return compared


def errors_table(compared: dict[str, list[tuple[int, float, float]]]) -> Table:
    """Return a table of errors."""
    title = "Late NRMSE with a fraction of the rows as centers"
    table = new_table(title, ("stream", "fraction", "eviction", "latest rows", "ratio"))
    for name, errors in compared.items():
        for divisor, evicting, latest in errors:
            ratio = f"{evicting / latest:.3f}" if divisor > 1 else "-"
            table.add_row(name if divisor == 1 else "", f"1/{divisor}", f"{evicting:.3f}", f"{latest:.3f}", ratio)
    return table


def targets(compared: dict[str, list[tuple[int, float, float]]]) -> list[TargetResult]:
    """Compare eviction with the latest rows on each stream, at the limit where eviction does worst."""
    results = []
    for name, errors in compared.items():
        worst = max(evicting / latest for divisor, evicting, latest in errors if divisor > 1)
        what = f"error over that of keeping the latest rows, {name}"
        results.append(TargetResult(what, f"{worst:.3f}", "below 1", worst < 1))
    return results
