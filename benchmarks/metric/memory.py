"""What it costs to remember less: the error with a part of the rows as centres, chosen or simply the latest.

"The latest" is the same learner with the same metric, experts and phases, but when its memory is full it forgets the
oldest quarter of its rows, where ours forgets those that others can stand for: what is compared is only which are kept.
"""

from dataclasses import replace

import numpy as np
from rich.table import Table

from benchmarks.command_line import Verdict, figures
from benchmarks.streams import Stream, late_nrmse
from ellipack import MetricRegressor
from ellipack.learners.metric.eviction import with_centers
from ellipack.learners.metric.state import MetricState
from ellipack.validation import Floats

PARTS = (2, 4, 8)
_FORGOTTEN = 4  # one in so many


def chosen(stream: Stream, max_centers: int, views: int) -> float:
    """Return the late error with so many centres, those gone that others can stand for."""
    learner = MetricRegressor(max_centers, views=views)
    return late_nrmse(learner.progressive(stream.X, stream.y), stream.y)


def latest(stream: Stream, max_centers: int, views: int) -> float:
    """Return the late error with at most so many centres, always the latest rows."""
    # Room for one more, so that it is never full when its oldest rows are forgotten here.
    learner = MetricRegressor(max_centers + 1, views=views)
    made: list[Floats] = []
    done = 0
    while done < len(stream.y):
        held = learner.n_centers_ if made else 0
        if held == max_centers:
            held -= max_centers // _FORGOTTEN
            forget(learner.state_, held)
        part = slice(done, done + max_centers - held)
        made.append(learner.progressive(stream.X[part], stream.y[part]))
        done += len(made[-1])
    return late_nrmse(np.concatenate(made), stream.y)


def forget(state: MetricState, kept: int) -> None:
    """Let a learner keep only its latest centers."""
    latest_centers = np.arange(state.n_centers) >= state.n_centers - kept
    state.phase = replace(state.phase, core=with_centers(state.core, latest_centers))


def compare(stream: Stream, views: int = 1) -> list[tuple[int, float, float]]:
    """Return the errors, chosen and latest, for each part of the rows as centres; all of them first."""
    everything = chosen(stream, len(stream.y) + 1, views)
    compared = [(1, everything, everything)]
    for part in PARTS:
        most = len(stream.y) // part
        compared.append((part, chosen(stream, most, views), latest(stream, most, views)))
    return compared


def table_of(compared: dict[str, list[tuple[int, float, float]]]) -> Table:
    """Lay out errors, a stream after the other."""
    title = "Late NRMSE with a part of the rows as centres"
    table = figures(title, ("stream", "part", "chosen", "latest rows", "ratio"))
    for name, errors in compared.items():
        for part, ours, theirs in errors:
            ratio = f"{ours / theirs:.3f}" if part > 1 else "-"
            table.add_row(name if part == 1 else "", f"1/{part}", f"{ours:.3f}", f"{theirs:.3f}", ratio)
    return table


def verdicts(compared: dict[str, list[tuple[int, float, float]]]) -> list[Verdict]:
    """Say of each stream whether choosing is better than keeping the latest rows, however few centres there are."""
    said = []
    for name, errors in compared.items():
        worst = max(ours / theirs for part, ours, theirs in errors if part > 1)
        said.append(
            Verdict(f"error over that of keeping the latest rows, {name}", f"{worst:.3f}", "below 1", worst < 1)
        )
    return said
