import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plotly import graph_objects

from ellipack.report.chart import SERIES_COLORS, Chart, log_ticks
from ellipack.report.page import build_sections
from ellipack.report.record import Record
from tests.report import records

STYLE_SHEET = (files("ellipack.report") / "page.css").read_text(encoding="utf-8")
RECORDS = (records.full, records.hostile, records.wide, records.one_row, records.empty)


def colors_of(selector: str) -> dict[str, str]:
    """Return the colors that the style sheet defines in its first rule for a selector."""
    _, _, rule = STYLE_SHEET.partition(f"{selector} {{")
    return dict(re.findall(r"(--\w+): (#[0-9a-f]{6});", rule.partition("}")[0]))


LIGHT, DARK = colors_of(":root"), colors_of(":root:not(.printing)")


def charts(record: Record) -> list[Chart]:
    return [chart for section in build_sections(record) for chart in section.charts]


def resolve_colors(value: Any) -> Any:
    """Return part of a figure with CSS variables replaced by colors."""
    if isinstance(value, dict):
        return {key: resolve_colors(each) for key, each in value.items()}
    if isinstance(value, list):
        return [resolve_colors(each) for each in value]
    name = re.fullmatch(r"var\((--\w+)\)", value) if isinstance(value, str) else None
    return LIGHT[name[1]] if name else value


@pytest.mark.parametrize("make", RECORDS, ids=lambda make: make.__name__)
def test_charts_are_valid_plotly_figures(make: Callable[[], Record]) -> None:
    for chart in charts(make()):
        graph_objects.Figure(resolve_colors(chart.data), resolve_colors(chart.layout))  # raises on unknown properties
        assert all(path.split(".")[0] in chart.layout for path in chart.narrow_layout)
        assert all(key.color in LIGHT and key.mark in ("line", "dash", "dot", "area") for key in chart.legend)


def test_full_record_has_every_chart_and_one_row_has_one() -> None:
    assert [chart.title for chart in charts(records.full())] == [
        "Error over time",
        "Importance of columns",
        "Effect of temperature",
        "Effect of hour, hour of the day",
        "Spectrum of the metric",
        "Effective rank by phase",
        "Leading directions",
        "Weight of each expert",
        "Labels and predictions",
        "Predictions against labels",
        "Histogram of residuals",
        "Residuals over time",
        "Centers in memory",
        "Speed",
    ]
    assert [chart.title for chart in charts(records.one_row())] == []
    assert charts(records.empty()) == []


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_log_ticks_are_few_and_inside_the_range(one: int, other: int) -> None:
    first, last = sorted((one, other))
    ticks = log_ticks(first, last)
    assert 1 <= len(ticks) <= 6
    assert ticks == sorted(set(ticks))
    assert first <= ticks[0]
    assert ticks[-1] <= last


def luminance(color: str) -> float:
    """Return the relative luminance as defined by WCAG."""
    channels = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_colors_have_enough_contrast(colors: dict[str, str]) -> None:
    for ground in ("--ground", "--card"):
        for text in ("--ink", "--soft", "--blue"):
            assert contrast(colors[text], colors[ground]) >= 4.5, (text, ground)
    for line in ("--blue", "--vermilion", "--green", "--rest"):
        assert contrast(colors[line], colors["--card"]) >= 3, line
    assert len({colors[name] for name in SERIES_COLORS}) == len(SERIES_COLORS)


def test_light_and_dark_mode_define_every_color_that_is_used() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(LIGHT) == 14
    assert set(re.findall(r"var\((--\w+)\)", STYLE_SHEET)) <= LIGHT.keys()
    assert STYLE_SHEET.count("{") == STYLE_SHEET.count("}")
