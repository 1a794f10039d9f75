"""How the error fell over time."""

from ellipack.report.charts.chart import VALUE, Chart, Figure, Key, axis, layout, rows_axis
from ellipack.report.record import Record
from ellipack.report.style import colour
from ellipack.report.text import counted, number


def errors_over_time(record: Record) -> Chart | None:
    """Return the error bin by bin, beside the running mean's and the last value's."""
    bins = record.progress
    if len(bins.end) < 2:
        return None
    curves = (
        ("predictions", bins.rmse, "--blue", "solid", 3.0),
        ("running mean", bins.mean_rmse, "--vermilion", "dash", 1.8),
        ("last value", bins.last_rmse, "--green", "dot", 1.8),
    )
    there = [curve for curve in curves if any(value is not None for value in curve[1])]
    # The predictions last, so that they lie on top.
    data = [_line(bins.end, *curve) for curve in reversed(there)]
    ends = f"It is {number(bins.rmse[0])} at first and {number(bins.rmse[-1])} at the end."
    return Chart(
        title="Error over time",
        spoken=f"Line chart of the root mean square error over {counted(len(bins.end), 'bin')} of consecutive rows, "
        f"beside those of the running mean and the last value. {ends}",
        data=data,
        layout=layout(rows_axis(bins.end[-1]), axis("RMSE", rangemode="tozero"), hovermode="x unified"),
        height=360,
        keys=[Key(name, tint, {"solid": "line"}.get(dash, dash)) for name, _, tint, dash, _ in there],
        wide=True,
    )


def _line(end: list[int], name: str, values: list[float | None], tint: str, dash: str, width: float) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": end,
        "y": values,
        "line": {"color": colour(tint), "width": width, "dash": dash},
        "hovertemplate": f"%{{y:{VALUE}}}",
        "xhoverformat": ",d",
    }
