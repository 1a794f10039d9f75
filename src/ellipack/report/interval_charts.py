"""Charts of prediction intervals: the last ones as a band, coverage over time, and width over time.

Each function returns None if the record has nothing to draw.
"""

from collections.abc import Sequence

from ellipack.report.chart import NUMBER_FORMAT, Chart, LegendEntry, PlotlyObject, axis, css_color, layout, row_axis
from ellipack.report.formatting import format_count, format_percent
from ellipack.report.record import IntervalRecord, Record

_COLORS = ("--blue", "--vermilion", "--green", "--pink")


def band_chart(record: Record) -> Chart | None:
    """Return a chart of the labels of the last rows, with the widest intervals as a band."""
    widest = max(record.intervals, key=lambda each: each.coverage, default=None)
    if widest is None or len(widest.recent_rows) < 2:
        return None
    rows, band = widest.recent_rows, css_color("--blue")
    edge = {"color": band, "width": 1}
    data: list[PlotlyObject] = [
        {"type": "scatter", "mode": "lines", "name": "lower", "x": rows, "y": widest.recent_lower, "line": edge},
        {
            "type": "scatter", "mode": "lines", "name": "upper", "x": rows, "y": widest.recent_upper, "line": edge,
            "fill": "tonexty",
        },
        {
            "type": "scatter", "mode": "markers", "name": "label", "x": rows, "y": widest.recent_labels,
            "marker": {"color": css_color("--vermilion"), "size": 5},
        },
    ]  # fmt: skip
    for trace in data:
        trace["hovertemplate"], trace["xhoverformat"] = f"%{{y:{NUMBER_FORMAT}}}", ",d"
    pairs = zip(widest.recent_labels, widest.recent_lower, widest.recent_upper, strict=True)
    outside = sum(
        (low is not None and label < low) or (high is not None and label > high) for label, low, high in pairs
    )
    return Chart(
        title=f"Intervals of {format_percent(widest.coverage)} for the last rows",
        description=f"Band of the intervals of the last {format_count(len(rows), 'row')} and their labels, of which "
        f"{outside:,} lie outside.",
        data=data,
        layout=layout(row_axis(rows[-1]) | {"range": [rows[0], rows[-1]]}, axis(record.target), hovermode="x unified"),
        height=360,
        legend=[LegendEntry("interval", "--blue", "line"), LegendEntry("label", "--vermilion", "line")],
        wide=True,
    )


def coverage_chart(record: Record) -> Chart | None:
    """Return a chart of the fraction of labels in their intervals, by bin."""
    return _over_time(
        record, "Coverage over time", "fraction of labels", [each.bin_covered for each in record.intervals]
    )


def width_chart(record: Record) -> Chart | None:
    """Return a chart of the mean width of the intervals, by bin."""
    return _over_time(record, "Width over time", "mean width", [each.bin_width for each in record.intervals])


def _over_time(record: Record, title: str, label: str, curves: Sequence[list[float | None]]) -> Chart | None:
    """Return a line chart with a curve for each coverage."""
    if not record.intervals or len(record.intervals[0].bin_end) < 2:
        return None
    ends = record.intervals[0].bin_end
    colors = [_COLORS[i % len(_COLORS)] for i in range(len(curves))]
    data = [_line(each, values, color) for each, values, color in zip(record.intervals, curves, colors, strict=True)]
    names = [format_percent(each.coverage) for each in record.intervals]
    return Chart(
        title=title,
        description=f"Line chart of the {label} over {format_count(len(ends), 'bin')} of consecutive rows, for "
        f"intervals of {', '.join(names)}.",
        data=data,
        layout=layout(row_axis(ends[-1]), axis(label, rangemode="tozero"), hovermode="x unified"),
        legend=[LegendEntry(name, color, "line") for name, color in zip(names, colors, strict=True)],
    )


def _line(interval: IntervalRecord, values: list[float | None], color: str) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": format_percent(interval.coverage),
        "x": interval.bin_end,
        "y": values,
        "line": {"color": css_color(color), "width": 2},
        "hovertemplate": f"%{{y:{NUMBER_FORMAT}}}",
        "xhoverformat": ",d",
    }
