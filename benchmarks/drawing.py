"""How the pictures of the benchmarks look, and how they are written: the same figures give the same bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter, NullLocator

from ellipack.report.figures import dress

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
    dress(axes, heading, x, y)
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
