"""What a chart is: a Plotly figure as plain data, with what is said of it."""

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

PlotlyObject = dict[str, Any]
"""Part of a Plotly figure, as JSON has it. Its validator holds all of them to Plotly's schema in the tests."""

TRANSPARENT: Final = "rgba(0,0,0,0)"
NUMBER_FORMAT: Final = ",.4~r"
"""Four digits that count, thousands apart, in d3's notation."""

_FONT: Final = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


@dataclass(frozen=True)
class LegendEntry:
    """An entry of a legend: what is drawn, in which color, as which mark (line, dash, dot or area), and how much."""

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
    title : stands above it.
    description : what it shows, for those who can't see it.
    data, layout : Plotly's, with names of colors for colors.
    height : in pixels.
    keys : the legend.
    note : stands below it.
    narrow : entries of the layout that are other on a narrow screen, by path.
    wide : whether it takes the whole width.
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


def layout(x: PlotlyObject, y: PlotlyObject, **others: Any) -> PlotlyObject:
    """Return a layout in the colors of the page, with two axes."""
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
    """Return an axis for numbers."""
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
    """Return an axis of row numbers from 0 to the last."""
    return axis("row", range=[0, max(1, last)], showgrid=False, ticks="outside", tickcolor=css_color("--rule"))


def log_row_axis(first: int, last: int) -> PlotlyObject:
    """Return an axis of row numbers on a log scale, for phases, each of which is longer than the one before."""
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


SERIES_COLORS: Final = ("--blue", "--vermilion", "--green", "--pink", "--orange", "--sky")
"""Colours that lines and areas are told apart by, in order of use: Okabe and Ito's, for any kind of color vision."""

LIGHT: Final = {
    "--ground": "#f4f6f8",
    "--card": "#ffffff",
    "--ink": "#1a212b",
    "--soft": "#566072",
    "--rule": "#dfe4ea",
    "--blue": "#0072b2",
    "--vermilion": "#d55e00",
    "--green": "#008a64",
    "--pink": "#b85f92",
    "--orange": "#e69f00",
    "--sky": "#56b4e9",
    "--rest": "#8b94a1",
    "--wash": "#e3f0f8",
    "--middle": "#f5f6f8",
}
DARK: Final = {
    "--ground": "#0e1217",
    "--card": "#171d25",
    "--ink": "#e9edf3",
    "--soft": "#a5afbe",
    "--rule": "#2c3540",
    "--blue": "#56b4e9",
    "--vermilion": "#f0813a",
    "--green": "#2cc295",
    "--pink": "#dd92be",
    "--orange": "#f0c04a",
    "--sky": "#2f6fb5",
    "--rest": "#7d8896",
    "--wash": "#1a2c3a",
    "--middle": "#222a34",
}


def css_color(name: str) -> str:
    """Return what stands for a color until the page knows whether it is day or night."""
    return f"var({name})"


def style_sheet() -> str:
    """Return the style sheet. Paper is always light; so is the screen while a print is being made."""
    night = f"@media screen and (prefers-color-scheme: dark) {{ :root:not(.printing) {_block(DARK)} }}"
    sheet = (files("ellipack.report") / "page.css").read_text(encoding="utf-8")
    return f":root {_block(LIGHT)}\n{night}\n{sheet}"


def _block(colors: dict[str, str]) -> str:
    scheme = "dark" if colors is DARK else "light"
    return "{ " + "".join(f"{name}: {value}; " for name, value in colors.items()) + f"color-scheme: {scheme}; }}"
