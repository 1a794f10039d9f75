"""Plots of a comparison: error over time, with a panel for each stream; and error against cost."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from benchmarks.comparison.models import BATCH, OURS, PAPER, STREAMING, SUBJECT, TRIVIAL
from benchmarks.comparison.summary import Summary
from benchmarks.plotting import label_points, legend_line, panel_grid, save_figure, shared_legend, style_log_axes
from ellipack.report.plots import COLORS, style_axes
from ellipack.validation import Floats

_BLUE, _RED, _GREEN, _PINK, *_ = COLORS
_KIND_COLORS = {OURS: _RED, PAPER: _PINK, STREAMING: _BLUE, BATCH: _GREEN, TRIVIAL: "#8C8C8C"}
_KIND_NAMES = {OURS: "ellipack", PAPER: "paper", STREAMING: "streaming", BATCH: "batch, retrained", TRIVIAL: "trivial"}
_COLUMNS, _PANEL, _WIDE_PANEL = 3, (4.6, 3.0), (8.4, 5.2)
_SMOOTHING = 5  # number of parts of the stream in a moving mean
_HIGHEST_ERROR = 1.6
_TEXT_COLOR = "#333333"


def plot_errors(summary: Summary, path: Path) -> None:
    """Plot the error over time; MetricRegressor and the best model of each kind have thicker lines."""
    streams = summary.streams
    columns = min(_COLUMNS, len(streams))
    rows = -(-len(streams) // columns)
    figure, panels = panel_grid(rows, columns, _PANEL)
    for axes, stream in zip(panels, streams, strict=False):
        _plot_stream(axes, summary, stream)
    for axes in panels[len(streams) :]:
        axes.set_visible(False)
    figure.supylabel("error, in standard deviations of the labels", fontsize=11, color=_TEXT_COLOR)
    kinds = _kinds(summary)
    shared_legend(figure, [legend_line(_KIND_COLORS[kind], _KIND_NAMES[kind]) for kind in kinds], len(kinds))
    save_figure(figure, path)


def plot_costs(summary: Summary, path: Path) -> None:
    """Plot error against cost, geometric means over streams, and the Pareto front."""
    figure, (axes,) = panel_grid(1, 1, _WIDE_PANEL)
    points = {
        learner: (summary.geometric_mean(learner, "mean_us"), summary.geometric_mean(learner, "late_nrmse"))
        for learner in summary.learners
        if all(not summary.failure(stream, learner) for stream in summary.streams)
    }
    steps = np.array([points[learner] for learner in pareto_front(points)])
    axes.step(steps[:, 0], steps[:, 1], where="post", color=_TEXT_COLOR, linewidth=1, linestyle=":", zorder=1)
    for learner, (cost, error) in points.items():
        kind = summary.kinds[learner]
        axes.scatter(cost, error, s=110 if kind == OURS else 45, color=_KIND_COLORS[kind], zorder=3, edgecolor="white")
    _style_cost_axes(axes)
    dots = [legend_line(_KIND_COLORS[kind], _KIND_NAMES[kind], "", "o") for kind in _kinds(summary)]
    axes.legend(handles=[*dots, legend_line(_TEXT_COLOR, "Pareto front", ":")], frameon=False, loc="best")
    label_points(axes, points, bold=SUBJECT)
    save_figure(figure, path)


def pareto_front(points: dict[str, tuple[float, float]]) -> list[str]:
    """Return the points that no other beats in both cost and error, the cheapest first."""
    kept: list[str] = []
    for learner in sorted(points, key=lambda name: points[name]):
        if not kept or points[learner][1] < points[kept[-1]][1]:
            kept.append(learner)
    return kept


def smoothed(curve: Floats) -> Floats:
    """Return the root of the moving mean of squares; the window is shorter at both ends."""
    ones = np.ones(min(_SMOOTHING, len(curve)))
    return np.asarray(np.sqrt(np.convolve(curve**2, ones, "same") / np.convolve(np.ones(len(curve)), ones, "same")))


def _plot_stream(axes: Axes, summary: Summary, stream: str) -> None:
    rows = next(each["rows"] for each in summary.results["streams"] if each["name"] == stream)
    best_of_kinds = {summary.best(stream, _of_kind(summary, kind)) for kind in _KIND_COLORS}
    highest = 0.0
    for learner, kind in summary.kinds.items():
        curves = summary.values(stream, learner, "error_curve")
        if not curves:
            continue
        curve = smoothed(np.sqrt(np.mean(np.square(curves), axis=0)))
        x = (np.arange(len(curve)) + 0.5) * rows / len(curve)
        width, alpha = (2.2, 1.0) if learner == SUBJECT else (1.2, 0.9) if learner in best_of_kinds else (0.7, 0.3)
        axes.plot(x, curve, color=_KIND_COLORS[kind], linewidth=width, alpha=alpha, zorder=3 if kind == OURS else 2)
        if learner in best_of_kinds:
            highest = max(highest, curve[len(curve) // 8 :].max())
    style_axes(axes, stream, "row", "")
    best = summary.best_peer(stream, "streaming")
    axes.set_title(f"best streaming: {best}" if best else "", fontsize=10, loc="right", color=_TEXT_COLOR)
    axes.set_ylim(0, min(_HIGHEST_ERROR, 1.1 * highest) or 1)
    axes.set_xlim(0, rows)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _style_cost_axes(axes: Axes) -> None:
    x, y = "microseconds per round, one row per call, training included", "late error, geometric mean over the streams"
    style_log_axes(axes, "", x, y)
    axes.margins(x=0.12, y=0.1)
    # Errors rarely span a factor of ten, so the ticks between powers of ten get labels, too.
    axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}"))
    axes.tick_params(axis="y", which="minor", labelsize=10, labelcolor=_TEXT_COLOR, length=0)
    axes.grid(axis="y", which="minor", color="#F2F2F2", linewidth=0.7)


def _kinds(summary: Summary) -> list[str]:
    return [kind for kind in _KIND_COLORS if kind in summary.kinds.values()]


def _of_kind(summary: Summary, kind: str) -> list[str]:
    return [name for name, its_kind in summary.kinds.items() if its_kind == kind]
