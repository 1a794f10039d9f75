"""The pictures of a race: error over time, a panel a stream; and error against cost, a point a learner."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.race.learners import BATCH, OURS, PAPER, STREAMING, SUBJECT, TRIVIAL
from benchmarks.race.naming import name_points
from benchmarks.race.standings import Standings
from ellipack.validation import Floats

_COLORS = {OURS: "#d62728", PAPER: "#e39802", STREAMING: "#1f77b4", BATCH: "#2ca02c", TRIVIAL: "#8c8c8c"}
_NAMES = {OURS: "ellipack", PAPER: "the paper's", STREAMING: "streaming", BATCH: "batch, retrained", TRIVIAL: "trivial"}
_COLUMNS = 4
_SMOOTH = 5  # parts of the stream that a point of a curve is the mean of
_HIGHEST = 1.6  # what a panel shows at most
_INK = "#333333"


def errors(standings: Standings, path: Path) -> None:
    """Draw the error over time: every learner in the colour of its kind, the best of each kind and ours stronger."""
    streams = standings.streams
    columns = min(_COLUMNS, len(streams))
    rows = -(-len(streams) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.7 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for panel, stream in zip(axes, streams, strict=False):
        _panel(panel, standings, stream)
    for panel in axes[len(streams) :]:
        panel.set_visible(False)
    kinds = [kind for kind in _COLORS if kind in standings.kinds.values()]
    handles = [axes[0].plot([], [], color=_COLORS[kind], linewidth=2, label=_NAMES[kind])[0] for kind in kinds]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(kinds), frameon=False)
    figure.supxlabel("rows", fontsize=9, color=_INK)
    figure.supylabel("error, in deviations of the labels", fontsize=9, color=_INK)
    _save(figure, path)


def costs(standings: Standings, path: Path) -> None:
    """Draw error against cost, geometric means over streams, and the front of those that none beats in both."""
    figure = Figure(figsize=(8.0, 5.2), layout="constrained")
    axes: Any = figure.subplots()
    points = {
        learner: (standings.typical(learner, "mean_us"), standings.typical(learner, "late"))
        for learner in standings.learners
        if all(not standings.failure(stream, learner) for stream in standings.streams)
    }
    steps = np.array([points[learner] for learner in front(points)])
    axes.step(steps[:, 0], steps[:, 1], where="post", color=_INK, linewidth=1, linestyle=":", zorder=1)
    for learner, (cost, error) in points.items():
        kind = standings.kinds[learner]
        axes.scatter(cost, error, s=110 if kind == OURS else 45, color=_COLORS[kind], zorder=3, edgecolor="white")
    for kind in (kind for kind in _COLORS if kind in standings.kinds.values()):
        axes.scatter([], [], color=_COLORS[kind], label=_NAMES[kind])
    axes.plot([], [], color=_INK, linewidth=1, linestyle=":", label="no learner is better in both")
    axes.set(xscale="log", yscale="log", xlabel="microseconds a round, one row a call, training included")
    axes.set_ylabel("late error, geometric mean over the streams")
    axes.margins(x=0.12, y=0.1)
    for axis in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        axis(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.legend(frameon=False, fontsize=8, loc="best")
    _plain(axes)
    name_points(axes, points, bold=SUBJECT)
    _save(figure, path)


def front(points: dict[str, tuple[float, float]]) -> list[str]:
    """Return those that no other beats in both cost and error, the cheapest first."""
    kept: list[str] = []
    for learner in sorted(points, key=lambda name: points[name]):
        if not kept or points[learner][1] < points[kept[-1]][1]:
            kept.append(learner)
    return kept


def smoothed(curve: Floats) -> Floats:
    """Return the root of the moving mean of the squares, over as many parts as there are at the edges."""
    ones = np.ones(min(_SMOOTH, len(curve)))
    return np.asarray(np.sqrt(np.convolve(curve**2, ones, "same") / np.convolve(np.ones(len(curve)), ones, "same")))


def _panel(axes: Any, standings: Standings, stream: str) -> None:
    about = next(each for each in standings.figures["streams"] if each["name"] == stream)
    leads = {standings.best(stream, _of(standings, kind)) for kind in _COLORS}
    highest = 0.0
    for learner, kind in standings.kinds.items():
        curves = standings.all_of(stream, learner, "curve")
        if not curves:
            continue
        curve = smoothed(np.sqrt(np.mean(np.square(curves), axis=0)))
        at = (np.arange(len(curve)) + 0.5) * about["rows"] / len(curve)
        width, alpha = (2.2, 1.0) if learner == SUBJECT else (1.2, 0.9) if learner in leads else (0.7, 0.3)
        axes.plot(at, curve, color=_COLORS[kind], linewidth=width, alpha=alpha, zorder=3 if kind == OURS else 2)
        if learner in leads:
            highest = max(highest, curve[len(curve) // 8 :].max())
    best = standings.best_of(stream, "streaming")
    axes.set_title(f"{stream} (best streaming peer: {best})" if best else stream, fontsize=8, loc="left", color=_INK)
    axes.set_ylim(0, min(_HIGHEST, 1.1 * highest) or 1)
    axes.set_xlim(0, about["rows"])
    _plain(axes)


def _of(standings: Standings, kind: str) -> list[str]:
    return [name for name, its in standings.kinds.items() if its == kind]


def _plain(axes: Any) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, colors=_INK)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.set_axisbelow(True)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110, metadata={"Software": None})  # so that the same figures are the same bytes
