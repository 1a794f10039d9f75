"""The pictures of a race: error over time, a panel a stream; and error against cost, a point a learner."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from benchmarks.comparison.models import BATCH, OURS, PAPER, STREAMING, SUBJECT, TRIVIAL
from benchmarks.comparison.summary import Standings
from benchmarks.plotting import grid, logarithmic, name_points, sample, save, shared_legend
from ellipack.report.plots import COLORS, style_axes
from ellipack.validation import Floats

_BLUE, _RED, _GREEN, _PINK, *_ = COLORS
_PAINT = {OURS: _RED, PAPER: _PINK, STREAMING: _BLUE, BATCH: _GREEN, TRIVIAL: "#8C8C8C"}
_NAMES = {OURS: "ellipack", PAPER: "the paper's", STREAMING: "streaming", BATCH: "batch, retrained", TRIVIAL: "trivial"}
_COLUMNS, _PANEL, _WIDE = 3, (4.6, 3.0), (8.4, 5.2)  # of panels; inches of one, and of the picture of costs
_SMOOTH = 5  # parts of the stream that a point of a curve is the mean of
_HIGHEST = 1.6  # what a panel shows at most
_INK = "#333333"


def errors(standings: Standings, path: Path) -> None:
    """Draw the error over time: every learner in the colour of its kind, the best of each kind and ours stronger."""
    streams = standings.streams
    columns = min(_COLUMNS, len(streams))
    rows = -(-len(streams) // columns)
    figure, panels = grid(rows, columns, _PANEL)
    for axes, stream in zip(panels, streams, strict=False):
        _panel(axes, standings, stream)
    for axes in panels[len(streams) :]:
        axes.set_visible(False)
    figure.supylabel("error, in deviations of the labels", fontsize=11, color=_INK)
    kinds = _kinds(standings)
    shared_legend(figure, [sample(_PAINT[kind], _NAMES[kind]) for kind in kinds], len(kinds))
    save(figure, path)


def costs(standings: Standings, path: Path) -> None:
    """Draw error against cost, geometric means over streams, and the front of those that none beats in both."""
    figure, (axes,) = grid(1, 1, _WIDE)
    points = {
        learner: (standings.typical(learner, "mean_us"), standings.typical(learner, "late"))
        for learner in standings.learners
        if all(not standings.failure(stream, learner) for stream in standings.streams)
    }
    steps = np.array([points[learner] for learner in front(points)])
    axes.step(steps[:, 0], steps[:, 1], where="post", color=_INK, linewidth=1, linestyle=":", zorder=1)
    for learner, (cost, error) in points.items():
        kind = standings.kinds[learner]
        axes.scatter(cost, error, s=110 if kind == OURS else 45, color=_PAINT[kind], zorder=3, edgecolor="white")
    _dress_costs(axes)
    dots = [sample(_PAINT[kind], _NAMES[kind], "", "o") for kind in _kinds(standings)]
    axes.legend(handles=[*dots, sample(_INK, "no learner is better in both", ":")], frameon=False, loc="best")
    name_points(axes, points, bold=SUBJECT)
    save(figure, path)


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


def _panel(axes: Axes, standings: Standings, stream: str) -> None:
    about = next(each for each in standings.figures["streams"] if each["name"] == stream)
    leads = {standings.best(stream, _of(standings, kind)) for kind in _PAINT}
    highest = 0.0
    for learner, kind in standings.kinds.items():
        curves = standings.all_of(stream, learner, "curve")
        if not curves:
            continue
        curve = smoothed(np.sqrt(np.mean(np.square(curves), axis=0)))
        at = (np.arange(len(curve)) + 0.5) * about["rows"] / len(curve)
        width, alpha = (2.2, 1.0) if learner == SUBJECT else (1.2, 0.9) if learner in leads else (0.7, 0.3)
        axes.plot(at, curve, color=_PAINT[kind], linewidth=width, alpha=alpha, zorder=3 if kind == OURS else 2)
        if learner in leads:
            highest = max(highest, curve[len(curve) // 8 :].max())
    style_axes(axes, stream, "row", "")
    best = standings.best_of(stream, "streaming")
    axes.set_title(f"best streaming: {best}" if best else "", fontsize=10, loc="right", color=_INK)
    axes.set_ylim(0, min(_HIGHEST, 1.1 * highest) or 1)
    axes.set_xlim(0, about["rows"])
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _dress_costs(axes: Axes) -> None:
    x, y = "microseconds a round, one row a call, training included", "late error, geometric mean over the streams"
    logarithmic(axes, "", x, y)
    axes.margins(x=0.12, y=0.1)
    # Errors are seldom ten times apart: what lies between powers of ten is told as well.
    axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    axes.tick_params(axis="y", which="minor", labelsize=10, labelcolor=_INK, length=0)
    axes.grid(axis="y", which="minor", color="#F2F2F2", linewidth=0.7)


def _kinds(standings: Standings) -> list[str]:
    return [kind for kind in _PAINT if kind in standings.kinds.values()]


def _of(standings: Standings, kind: str) -> list[str]:
    return [name for name, its in standings.kinds.items() if its == kind]
