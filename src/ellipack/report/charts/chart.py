"""What a chart is: a Plotly figure as plain data, with what is said of it."""

from dataclasses import dataclass, field
from typing import Any, Final

from ellipack.report.style import colour

Figure = dict[str, Any]
"""Part of a Plotly figure, as JSON has it. Its validator holds all of them to Plotly's schema in the tests."""

CLEAR: Final = "rgba(0,0,0,0)"
VALUE: Final = ",.4~r"
"""Four digits that count, thousands apart, in d3's notation."""

_FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class Key:
    """An entry of a legend: what is drawn, in which colour, as which mark (line, dash, dot or area), and how much."""

    name: str
    colour: str
    mark: str = "line"
    opacity: float = 1.0
    value: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    title : stands above it.
    spoken : what it shows, for those who can't see it.
    data, layout : Plotly's, with names of colours for colours.
    height : in pixels.
    keys : the legend.
    note : stands below it.
    narrow : entries of the layout that are other on a narrow screen, by path.
    wide : whether it takes the whole width.
    """

    title: str
    spoken: str
    data: list[Figure]
    layout: Figure
    height: int = 320
    keys: list[Key] = field(default_factory=list)
    note: str = ""
    narrow: Figure = field(default_factory=dict)
    wide: bool = False


def layout(x: Figure, y: Figure, **others: Any) -> Figure:
    """Return a layout in the colours of the page, with two axes."""
    return {
        "font": {"family": _FONT, "size": 12, "color": colour("--soft")},
        "paper_bgcolor": colour("--card"),
        "plot_bgcolor": CLEAR,
        "margin": {"l": 56, "r": 14, "t": 14, "b": 46},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": colour("--card"),
            "bordercolor": colour("--soft"),
            "font": {"family": _FONT, "size": 13, "color": colour("--ink")},
            "align": "left",
            "namelength": -1,
        },
        "modebar": {"bgcolor": CLEAR, "color": colour("--rest"), "activecolor": colour("--ink")},
        "xaxis": x,
        "yaxis": y,
        **others,
    }


def axis(title: str, **others: Any) -> Figure:
    """Return an axis for numbers."""
    return {
        "title": {"text": title, "standoff": 8},
        "automargin": True,
        "gridcolor": colour("--rule"),
        "linecolor": colour("--rule"),
        "zeroline": False,
        "separatethousands": True,
        "exponentformat": "power",
        "minexponent": 6,
        "nticks": 6,
        **others,
    }


def rows_axis(last: int) -> Figure:
    """Return an axis of row numbers from 0 to the last."""
    return axis("row", range=[0, max(1, last)], showgrid=False, ticks="outside", tickcolor=colour("--rule"))


def log_rows_axis(first: int, last: int) -> Figure:
    """Return an axis of row numbers on a log scale, for phases, each of which is longer than the one before."""
    ticks = log_ticks(first, last)
    return axis(
        "row (log scale)",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick:,}" for tick in ticks],
        showgrid=False,
        ticks="outside",
        tickcolor=colour("--rule"),
    )


def log_ticks(first: int, last: int, most: int = 5) -> list[int]:
    """Return round numbers from `first` to `last`, at most so many.

    >>> log_ticks(20, 1500), log_ticks(1, 10**9), log_ticks(7, 7)
    ([20, 50, 100, 200, 500, 1000], [1, 100, 10000, 1000000, 100000000], [7])
    """
    for digits, step in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 5)):
        powers = range(0, len(str(last)), step)
        ticks = [digit * 10**power for power in powers for digit in digits if first <= digit * 10**power <= last]
        if len(ticks) <= most + 1:
            break
    return ticks or [first]
