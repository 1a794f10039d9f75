"""Style of the plots on the benchmark page. The same data give the same bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter, NullLocator

from ellipack.report.plots import style_axes

PANEL = 4.6, 3.7
"""Default width and height of a panel, in inches."""


def panel_grid(rows: int, columns: int, panel: tuple[float, float] = PANEL) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of panels, and its axes row by row."""
    width, height = panel
    figure = Figure(figsize=(width * columns, height * rows + 0.5), dpi=110, layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def style_log_axes(axes: Axes, heading: str, x: str, y: str) -> None:
    """Style a panel with two logarithmic axes."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    style_axes(axes, heading, x, y)
    axes.grid(axis="both", color="#E6E6E6", linewidth=0.7)
    axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_format_tick))


def shared_legend(figure: Figure, lines: Sequence[Line2D], columns: int) -> None:
    """Draw one legend below all panels."""
    figure.legend(handles=list(lines), loc="outside lower center", ncols=columns, frameon=False, fontsize=11)


def legend_line(color: str, label: str, style: Literal["-", "--", ":", ""] = "-", marker: str = "") -> Line2D:
    """Return a line, or only a marker, for a legend."""
    return Line2D([], [], color=color, label=label, linestyle=style, linewidth=2, marker=marker, markersize=5)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, PNG or SVG, without anything that depends on the machine or the time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".svg":
        # Text stays text, which keeps files small. Identifiers are random without a salt.
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "ellipack"}):
            figure.savefig(path, metadata={"Date": None, "Creator": None})
    else:
        figure.savefig(path, metadata={"Software": None})


def _format_tick(value: float, place: int | None) -> str:
    """Write numbers from 0.001 to 10 million in full, others as powers of ten."""
    if 0.001 <= value < 1e7:
        return f"{value:,.10g}"
    return str(LogFormatterSciNotation()(value, place))


_FONT_SIZE = 8
_OFFSET = 7  # between a label and its point, in points
_PLACES = (
    (_OFFSET, 3, "left", "bottom"),
    (_OFFSET, -3, "left", "top"),
    (-_OFFSET, 3, "right", "bottom"),
    (-_OFFSET, -3, "right", "top"),
    (0, _OFFSET, "center", "bottom"),
    (0, -_OFFSET, "center", "top"),
    (_OFFSET, 14, "left", "bottom"),
    (_OFFSET, -14, "left", "top"),
    (-_OFFSET, 14, "right", "bottom"),
    (-_OFFSET, -14, "right", "top"),
)


def label_points(axes: Any, points: dict[str, tuple[float, float]], bold: str) -> None:
    """Write the name of each point next to it, where it overlaps other names and points least.

    Call this last: it relies on the limits and the legend of the axes.
    """
    axes.figure.draw_without_rendering()
    panel = axes.get_window_extent()
    pixels = {name: axes.transData.transform(point) for name, point in points.items()}
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in pixels.values()]
    legend = axes.get_legend()
    taken += [legend.get_window_extent().extents] if legend else []
    for name in sorted(points, key=lambda each: (each != bold, each)):
        best, least, best_box = None, float("inf"), (0.0, 0.0, 0.0, 0.0)
        for place in _PLACES:
            text = _write(axes, name, points[name], place, "bold" if name == bold else "normal")
            extent = text.get_window_extent().extents
            outside = panel.width * panel.height * (extent[0] < panel.x0 or extent[2] > panel.x1)
            covered = outside + sum(_overlap(extent, other) for other in taken)
            if covered < least:
                best, least, best_box = place, covered, extent
            text.remove()
        _write(axes, name, points[name], best or _PLACES[0], "bold" if name == bold else "normal")
        taken.append(best_box)


def _write(axes: Any, name: str, point: tuple[float, float], place: tuple[int, int, str, str], weight: str) -> Any:
    x, y, horizontal, vertical = place
    options = {"textcoords": "offset points", "fontsize": _FONT_SIZE, "weight": weight, "color": "#333333"}
    return axes.annotate(name, point, (x, y), ha=horizontal, va=vertical, **options)


def _overlap(one: Any, other: Any) -> float:
    """Return the area of the intersection of two boxes."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return float(max(0.0, width) * max(0.0, height))
