"""How the pictures of the benchmarks look, and how they are written: the same figures give the same bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter, NullLocator

from ellipack.report.plots import style_axes

PANEL = 4.6, 3.7
"""Inches of one panel, unless told."""


def grid(down: int, across: int, panel: tuple[float, float] = PANEL) -> tuple[Figure, list[Axes]]:
    """Return a figure of panels of so many inches, row by row."""
    width, height = panel
    figure = Figure(figsize=(width * across, height * down + 0.5), dpi=110, layout="constrained")
    return figure, list(figure.subplots(down, across, squeeze=False).flat)


def logarithmic(axes: Axes, heading: str, x: str, y: str) -> None:
    """Dress a panel whose axes are both logarithmic."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    style_axes(axes, heading, x, y)
    axes.grid(axis="both", color="#E6E6E6", linewidth=0.7)
    axes.xaxis.set_minor_locator(NullLocator())
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(FuncFormatter(_plain))


def shared_legend(figure: Figure, lines: Sequence[Line2D], columns: int) -> None:
    """Put one legend under all panels."""
    figure.legend(handles=list(lines), loc="outside lower center", ncols=columns, frameon=False, fontsize=11)


def sample(colour: str, label: str, style: Literal["-", ":", ""] = "-", marker: str = "") -> Line2D:
    """Return a line for a legend, or a marker alone."""
    return Line2D([], [], color=colour, label=label, linestyle=style, linewidth=2, marker=marker, markersize=5)


def save(figure: Figure, path: Path) -> None:
    """Write a picture, with nothing in it that depends on where and when."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _plain(value: float, place: int | None) -> str:
    """Write numbers people read at a glance as they are, others as powers of ten."""
    if 0.001 <= value < 1e7:
        return f"{value:,.10g}"
    return str(LogFormatterSciNotation()(value, place))


_SIZE = 8
_AWAY = 7  # points between a name and its point
_PLACES = (
    (_AWAY, 3, "left", "bottom"),
    (_AWAY, -3, "left", "top"),
    (-_AWAY, 3, "right", "bottom"),
    (-_AWAY, -3, "right", "top"),
    (0, _AWAY, "center", "bottom"),
    (0, -_AWAY, "center", "top"),
    (_AWAY, 14, "left", "bottom"),
    (_AWAY, -14, "left", "top"),
    (-_AWAY, 14, "right", "bottom"),
    (-_AWAY, -14, "right", "top"),
)


def name_points(axes: Any, points: dict[str, tuple[float, float]], bold: str) -> None:
    """Write each point's name beside it, at the place where it covers the least of other names and points.

    Whatever is to be drawn on the axes must have been: their limits are taken as they are.
    """
    axes.figure.draw_without_rendering()
    inside = axes.get_window_extent()
    at = {name: axes.transData.transform(point) for name, point in points.items()}
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in at.values()]
    legend = axes.get_legend()
    taken += [legend.get_window_extent().extents] if legend else []
    for name in sorted(points, key=lambda each: (each != bold, each)):
        best, least, box = None, float("inf"), (0.0, 0.0, 0.0, 0.0)
        for place in _PLACES:
            text = _write(axes, name, points[name], place, "bold" if name == bold else "normal")
            extent = text.get_window_extent().extents
            outside = inside.width * inside.height * (extent[0] < inside.x0 or extent[2] > inside.x1)
            covered = outside + sum(_overlap(extent, other) for other in taken)
            if covered < least:
                best, least, box = place, covered, extent
            text.remove()
        _write(axes, name, points[name], best or _PLACES[0], "bold" if name == bold else "normal")
        taken.append(box)


def _write(axes: Any, name: str, point: tuple[float, float], place: tuple[int, int, str, str], weight: str) -> Any:
    x, y, across, up = place
    options = {"textcoords": "offset points", "fontsize": _SIZE, "weight": weight, "color": "#333333"}
    return axes.annotate(name, point, (x, y), ha=across, va=up, **options)


def _overlap(one: Any, other: Any) -> float:
    """Return the area that two boxes share."""
    across = min(one[2], other[2]) - max(one[0], other[0])
    up = min(one[3], other[3]) - max(one[1], other[1])
    return float(max(0.0, across) * max(0.0, up))
