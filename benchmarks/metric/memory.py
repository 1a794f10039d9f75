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
from ellipack._core import MetricCore
from ellipack.learners.metric.eviction import keep_centers
from ellipack.learners.metric.state import MetricState
from ellipack.validation import Floats

FRACTIONS = (2, 4, 8)
_DROPPED = 4  # when full, one quarter of the rows


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
            held -= max_centers // _DROPPED
            keep_latest(learner.state_, held)
        part = slice(done, done + max_centers - held)
        predictions.append(learner.progressive(stream.X[part], stream.y[part]))
        done += len(predictions[-1])
    return late_nrmse(np.concatenate(predictions), stream.y)


def keep_latest(state: MetricState, kept: int) -> None:
    """Drop all but the latest centers of a learner."""
    latest_centers = np.arange(state.n_centers) >= state.n_centers - kept
    state.phase = replace(
        state.phase, core=MetricCore(state.core.settings, keep_centers(state.core.parts(), latest_centers))
    )


def compare(stream: Stream, views: int = 1) -> list[tuple[int, float, float]]:
    """Return both errors for each fraction of the rows as limit; without a limit first."""
    everything = error_with_eviction(stream, len(stream.y) + 1, views)
    compared = [(1, everything, everything)]
    for part in FRACTIONS:
        max_centers = len(stream.y) // part
        compared.append(
            (part, error_with_eviction(stream, max_centers, views), error_of_latest(stream, max_centers, views))
        )
    return compared


def errors_table(compared: dict[str, list[tuple[int, float, float]]]) -> Table:
    """Return a table of errors."""
    title = "Late NRMSE with a fraction of the rows as centers"
    table = new_table(title, ("stream", "fraction", "eviction", "latest rows", "ratio"))
    for name, errors in compared.items():
        for part, ours, theirs in errors:
            ratio = f"{ours / theirs:.3f}" if part > 1 else "-"
            table.add_row(name if part == 1 else "", f"1/{part}", f"{ours:.3f}", f"{theirs:.3f}", ratio)
    return table


def targets(compared: dict[str, list[tuple[int, float, float]]]) -> list[TargetResult]:
    """Compare eviction with the latest rows on each stream, at the fraction where eviction does worst."""
    results = []
    for name, errors in compared.items():
        worst = max(ours / theirs for part, ours, theirs in errors if part > 1)
        results.append(
            TargetResult(f"error over that of keeping the latest rows, {name}", f"{worst:.3f}", "below 1", worst < 1)
        )
    return results
