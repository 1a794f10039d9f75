"""Charts of the report page: Plotly figures as plain data, with their titles, legends and descriptions."""

from dataclasses import dataclass, field
from typing import Any, Final

PlotlyObject = dict[str, Any]
"""Part of a Plotly figure, as in JSON. Tests validate all of them against Plotly's schema."""

TRANSPARENT: Final = "rgba(0,0,0,0)"
NUMBER_FORMAT: Final = ",.4~r"
"""Four significant digits with thousands separators, in d3's notation."""

SERIES_COLORS: Final = ("--blue", "--vermilion", "--green", "--pink", "--orange", "--sky")
"""Colors of lines and areas, in order of use, by their names in ``page.css``.

They are those of Okabe and Ito, which people with any kind of color vision can tell apart.
"""

_FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend.

    Attributes
    ----------
    name : str
        What is drawn.
    color : str
        Name of its color in ``page.css``.
    mark : {"line", "dash", "dot", "area"}, default "line"
        How it is drawn.
    opacity : float, default 1.0
        Opacity of the mark.
    value : str, default ""
        Number beside the name.
    """

    name: str
    color: str
    mark: str = "line"
    opacity: float = 1.0
    value: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes
    ----------
    title : str
        Text above the chart.
    description : str
        What the chart shows, for screen readers.
    data : list of dict
        Traces of the Plotly figure. Colors are CSS variables of ``page.css``.
    layout : dict
        Layout of the Plotly figure.
    height : int, default 320
        Height in pixels.
    legend : list of LegendEntry
        Legend, may be empty.
    note : str, default ""
        Text below the chart.
    narrow_layout : dict
        Entries of the layout that replace others on a narrow screen, by path.
    wide : bool, default False
        Whether the chart takes the whole width of the page.
    """

    title: str
    description: str
    data: list[PlotlyObject]
    layout: PlotlyObject
    height: int = 320
    legend: list[LegendEntry] = field(default_factory=list)
    note: str = ""
    narrow_layout: PlotlyObject = field(default_factory=dict)
    wide: bool = False


def css_color(name: str) -> str:
    """Return a reference to a CSS variable, which the page resolves for light and dark mode."""
    return f"var({name})"


def layout(x: PlotlyObject, y: PlotlyObject, **others: Any) -> PlotlyObject:
    """Return a layout with two axes, in the colors of the page."""
    return {
        "font": {"family": _FONT, "size": 12, "color": css_color("--soft")},
        "paper_bgcolor": css_color("--card"),
        "plot_bgcolor": TRANSPARENT,
        "margin": {"l": 56, "r": 14, "t": 14, "b": 46},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": css_color("--card"),
            "bordercolor": css_color("--soft"),
            "font": {"family": _FONT, "size": 13, "color": css_color("--ink")},
            "align": "left",
            "namelength": -1,
        },
        "modebar": {"bgcolor": TRANSPARENT, "color": css_color("--rest"), "activecolor": css_color("--ink")},
        "xaxis": x,
        "yaxis": y,
        **others,
    }


def axis(title: str, **others: Any) -> PlotlyObject:
    """Return a numeric axis."""
    return {
        "title": {"text": title, "standoff": 8},
        "automargin": True,
        "gridcolor": css_color("--rule"),
        "linecolor": css_color("--rule"),
        "zeroline": False,
        "separatethousands": True,
        "exponentformat": "power",
        "minexponent": 6,
        "nticks": 6,
        **others,
    }


def row_axis(last: int) -> PlotlyObject:
    """Return an axis of row numbers from 0 to `last`."""
    return axis("row", range=[0, max(1, last)], showgrid=False, ticks="outside", tickcolor=css_color("--rule"))


def date_axis(first: str, last: str) -> PlotlyObject:
    """Return an axis of dates."""
    return axis("", type="date", range=[first, last], showgrid=False, ticks="outside", tickcolor=css_color("--rule"))


def log_row_axis(first: int, last: int) -> PlotlyObject:
    """Return an axis of row numbers on a log scale. Phases get longer and longer, so it spaces them evenly."""
    ticks = log_ticks(first, last)
    return axis(
        "row (log scale)",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick:,}" for tick in ticks],
        showgrid=False,
        ticks="outside",
        tickcolor=css_color("--rule"),
    )


def log_ticks(first: int, last: int, max_ticks: int = 6) -> list[int]:
    """Return round numbers between `first` and `last` as ticks of a log scale.

    Examples
    --------
    >>> log_ticks(20, 1500), log_ticks(1, 10**9), log_ticks(7, 7)
    ([20, 50, 100, 200, 500, 1000], [1, 100, 10000, 1000000, 100000000], [7])
    """
    for digits, step in (((1, 2, 5), 1), ((1,), 1), ((1,), 2), ((1,), 3), ((1,), 5)):
        powers = range(0, len(str(last)), step)
        ticks = [digit * 10**power for power in powers for digit in digits if first <= digit * 10**power <= last]
        if len(ticks) <= max_ticks:
            break
    return ticks or [first]
