"""The section of the benchmark page about scaling."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.plotting import legend_line, panel_grid, save_figure, shared_legend, style_log_axes
from benchmarks.power_law import FittedExponent
from benchmarks.scaling.curves import CURVES, MEASURES, SCALING_LEARNERS, points_along
from ellipack.report.plots import COLORS
from ellipack.validation import Floats

_STYLES = dict(zip(SCALING_LEARNERS, zip(COLORS, "os", strict=False), strict=False))
_X_LABELS = {
    "rounds": "rounds",
    "dimension": "dimension",
    "rank": "rank of the stream",
    "centers": "centers (MetricRegressor: max_centers)",
}
_PLOTS = {
    "cost": ("microseconds", 1.0, "microseconds per round"),
    "memory": ("peak_bytes", 2.0**20, "peak memory, MiB"),
    "saved": ("file_bytes", 2.0**20, "saved file, MiB"),
}
_TEXT = """\
The streams are `LowRankStream` with 20 features, of which 2 directions are relevant; 40 features along rank. Along
rounds there are up to {rounds:,} rounds (seeds: {long_seeds}), and `MetricRegressor` keeps at most 20,000 centers.
Along dimension and rank there are {rounds_per_point:,} rounds, along centers {rounds_along_centers:,} (seeds: {seeds}).
`PackingRegressor` is Algorithm 1 with a metric of the relevant directions, so its effective rank is that of the stream.
It has no limit on centers, so its points along centers are those along rounds. By the paper, its centers grow at most
as `t^(2/3)`, up to a constant; while instances still fill the ball, the constant leaves room for faster growth.

The cost of a round is processor time: along rounds, over the rounds since the point before, elsewhere over the second
half. Memory is the peak resident size of a separate process beyond its size after imports and a warm-up. Below about
1 MiB it shows the granularity of the allocator more than the learner, so the size of the saved file is shown, too."""


def section(results: dict[str, Any], folder: Path) -> str:
    """Return the section in Markdown; write its plots into a folder next to the page."""
    for name, plot in _PLOTS.items():
        _plot(results, folder / f"scaling-{name}.png", plot)
    images = [
        f"![{title} against {', '.join(CURVES)}]({folder.name}/scaling-{name}.png)"
        for name, (_, _, title) in _PLOTS.items()
    ]
    text = _TEXT.format(**results["size"])
    return "\n\n".join(["## Scaling", text, *images, _table(results["exponents"])]) + "\n"


def _table(exponents: list[dict[str, Any]]) -> str:
    by_key = {(each["curve"], each["learner"], each["measure"]): each for each in exponents}
    lines = [
        "Exponents of a line through the logarithms of all points, with standard errors. Where a curve bends, as",
        "memory does once all centers are in use, a single exponent is not enough; see the plots.",
        "",
        f"| along | learner | {' | '.join(MEASURES.values())} |",
        f"|---|---|{'---:|' * len(MEASURES)}",
    ]
    for curve in CURVES:
        for learner in SCALING_LEARNERS:
            fitted = [by_key.get((curve, learner, measure)) for measure in MEASURES]
            cells = [str(FittedExponent(each["exponent"], each["error"])) if each else "-" for each in fitted]
            lines.append(f"| {curve} | `{learner}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _plot(results: dict[str, Any], path: Path, plot: tuple[str, float, str]) -> None:
    """Plot one measure along all curves, with a panel for each curve."""
    measure, unit, title = plot
    figure, panels = panel_grid(2, 2)
    by_key = {(each["curve"], each["learner"]): each for each in results["exponents"] if each["measure"] == measure}
    for axes, curve in zip(panels, CURVES, strict=True):
        style_log_axes(axes, f"Along {curve}", _X_LABELS[curve], title)
        exponents = []
        for learner in SCALING_LEARNERS:
            placed = points_along(results["points"], curve, learner)
            x, y = np.array([place for place, _ in placed]), np.array([each[measure] / unit for _, each in placed])
            _plot_points(axes, x, y, learner)
            if (curve, learner) in by_key:
                each = by_key[curve, learner]
                exponents.append((learner, FittedExponent(each["exponent"], each["error"])))
        _write_exponents(axes, exponents)
    lines = [legend_line(color, learner, marker=marker) for learner, (color, marker) in _STYLES.items()]
    shared_legend(figure, lines, len(lines))
    save_figure(figure, path)


def _plot_points(axes: Axes, x: Floats, y: Floats, learner: str) -> None:
    """Plot points, and a line through the medians of those at the same place."""
    color, marker = _STYLES[learner]
    positive = y > 0
    axes.plot(x[positive], y[positive], marker, color=color, markersize=4, alpha=0.5, markeredgewidth=0)
    places = np.unique(x[positive])
    axes.plot(places, [np.median(y[positive & (x == place)]) for place in places], color=color, linewidth=1.8)


def _write_exponents(axes: Axes, exponents: list[tuple[str, FittedExponent]]) -> None:
    """Write exponents above the curves of a panel, in their colors."""
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * (top / bottom) ** 0.28)
    for number, (learner, exponent) in enumerate(exponents):
        text = f"exponent {exponent}"
        axes.text(0.03, 0.96 - 0.09 * number, text, color=_STYLES[learner][0], transform=axes.transAxes, va="top")
