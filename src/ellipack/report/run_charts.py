"""Charts of the run: error over time, residuals, memory and speed.

Each function returns None if the record has nothing to draw.
"""

from typing import Any

import numpy as np

from ellipack.report.chart import (
    NUMBER_FORMAT,
    Chart,
    LegendEntry,
    PlotlyObject,
    axis,
    css_color,
    date_axis,
    layout,
    row_axis,
)
from ellipack.report.formatting import format_count, format_number
from ellipack.report.record import Record
from ellipack.validation import Floats

_MAX_POINTS = 800  # of a scatter plot: more take long to draw and hide each other
_MAX_TIME_POINTS = 400  # of the chart of labels and predictions, so that the lines can be told apart
_N_BINS = 41
_TAIL = 0.005  # share of the residuals at either end that may lie outside the histogram


def error_chart(record: Record) -> Chart | None:
    """Return a chart of the RMSE by bin, compared with the running mean and the last value."""
    bins = record.progress
    if len(bins.end) < 2:
        return None
    curves = (
        ("predictions", bins.rmse, "--blue", "solid", 3.0),
        ("running mean", bins.mean_rmse, "--vermilion", "dash", 1.8),
        ("last value", bins.last_rmse, "--green", "dot", 1.8),
    )
    defined = [curve for curve in curves if any(value is not None for value in curve[1])]
    # Plotly draws the last trace on top.
    ends, x_axis = _time_axis(record, bins.end, bins.end[-1])
    data = [_line(ends, *curve) for curve in reversed(defined)]
    change = f"It is {format_number(bins.rmse[0])} at the start and {format_number(bins.rmse[-1])} at the end."
    return Chart(
        title="Error over time",
        description=f"Line chart of the root mean square error over {format_count(len(bins.end), 'bin')} of "
        f"consecutive rows, compared with those of the running mean and the last value. {change}",
        data=data,
        layout=layout(x_axis, axis("RMSE", rangemode="tozero"), hovermode="x unified"),
        height=360,
        legend=[LegendEntry(name, color, {"solid": "line"}.get(dash, dash)) for name, _, color, dash, _ in defined],
        wide=True,
    )


def _line(
    ends: list[int] | list[str], name: str, values: list[float | None], color: str, dash: str, width: float
) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": ends,
        "y": values,
        "line": {"color": css_color(color), "width": width, "dash": dash},
        "hovertemplate": f"%{{y:{NUMBER_FORMAT}}}",
    } | _x_hover_format(ends)


def _time_axis(record: Record, rows: list[int], last: int) -> tuple[list[int] | list[str], PlotlyObject]:
    """Return the places of rows on an axis of time, and the axis: dates if rows have them, otherwise row numbers."""
    sample = record.residuals
    if not sample.times or not rows:
        return rows, row_axis(last)
    found = np.searchsorted(sample.rows, rows, side="right") - 1
    dates = [sample.times[max(0, i)] for i in found.tolist()]
    return dates, date_axis(sample.times[0], sample.times[-1])


def _x_hover_format(x: list[int] | list[str]) -> PlotlyObject:
    return {} if x and isinstance(x[0], str) else {"xhoverformat": ",d"}


def time_chart(record: Record) -> Chart | None:
    """Return a chart of labels and predictions over time."""
    sample = _sample(record)[-_MAX_TIME_POINTS:]
    if len(sample) < 2:
        return None
    rows, predictions, labels = sample.T
    x, x_axis = _time_axis(record, rows.astype(np.int64).tolist(), int(rows[-1]))
    x_axis = x_axis | {"range": [x[0], x[-1]]}
    curves = (("label", labels, "--soft", 1.5), ("prediction", predictions, "--blue", 1.8))
    spacing = int(rows[1] - rows[0])
    which = "the last" if len(sample) < len(record.residuals.rows) else "all"
    each = "" if spacing == 1 else f", one in {spacing:,}"
    return Chart(
        title="Labels and predictions",
        description=f"Line chart of labels and predictions of {format_count(len(sample), 'row')} over time.",
        data=[_line(x, name, values.tolist(), color, "solid", width) for name, values, color, width in curves],
        layout=layout(x_axis, axis("label"), hovermode="x unified"),
        height=340,
        legend=[LegendEntry(name, color) for name, _, color, _ in curves],
        note=f"{which} {format_count(len(sample), 'sampled row')}{each}.".capitalize(),
        wide=True,
    )


def prediction_chart(record: Record) -> Chart | None:
    """Return a scatter plot of predictions against labels, with the line where both are equal."""
    sample = _sample(record)
    if len(sample) < 2:
        return None
    _, predictions, labels = sample.T
    low, high = float(min(predictions.min(), labels.min())), float(max(predictions.max(), labels.max()))
    margin = 0.04 * (high - low) or 1.0
    line: PlotlyObject = {
        "type": "scatter",
        "mode": "lines",
        "x": [low, high],
        "y": [low, high],
        "line": {"color": css_color("--soft"), "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }
    both = {"range": [low - margin, high + margin]}
    return Chart(
        title="Predictions against labels",
        description=f"Scatter plot of predictions against labels for {format_count(len(sample), 'row')}, both "
        f"from {format_number(low)} to {format_number(high)}, with the line where they are equal.",
        data=[
            _points(
                labels.tolist(),
                predictions.tolist(),
                f"label %{{x:{NUMBER_FORMAT}}}<br>prediction %{{y:{NUMBER_FORMAT}}}",
            ),
            line,
        ],
        layout=layout(axis("label") | both, axis("prediction") | both),
        note="On the dashed line, the prediction equals the label.",
    )


def residual_histogram(record: Record) -> Chart | None:
    """Return a histogram of the residuals, symmetric around 0."""
    sample = _all_residuals(record)
    if len(sample) < 2:
        return None
    residuals = sample[:, 1] - sample[:, 2]
    # The range is symmetric so that a bias to one side shows.
    tails = np.quantile(residuals, [_TAIL, 1 - _TAIL], method="inverted_cdf")
    reach = float(np.abs(tails).max()) or float(np.abs(residuals).max()) or 1.0
    reach = max(reach, float(np.finfo(np.float64).tiny))  # smaller numbers can't be divided into bins
    counts, edges = np.histogram(residuals, bins=_N_BINS, range=(-reach, reach))
    quartiles = np.quantile(residuals, [0.25, 0.75]).tolist()
    outside = len(residuals) - int(counts.sum())
    trace: PlotlyObject = {
        "type": "bar",
        "x": ((edges[:-1] + edges[1:]) / 2).tolist(),
        "y": counts.tolist(),
        "width": float(edges[1] - edges[0]),
        "marker": {"color": css_color("--blue"), "line": {"color": css_color("--card"), "width": 1}},
        "hovertemplate": f"residual about %{{x:{NUMBER_FORMAT}}}<br>%{{y:,d}} rows<extra></extra>",
    }
    return Chart(
        title="Histogram of residuals",
        description=f"Histogram of {format_count(len(residuals), 'residual')}: half of them lie "
        f"from {format_number(quartiles[0])} to {format_number(quartiles[1])}.",
        data=[trace],
        layout=layout(axis("prediction \N{MINUS SIGN} label"), axis("rows", rangemode="tozero", tickformat=",~r")),
        note=f"{format_count(outside, 'larger residual')} not shown." if outside else "",
    )


def residual_chart(record: Record) -> Chart | None:
    """Return a scatter plot of the residuals over time."""
    sample = _sample(record)
    if len(sample) < 2:
        return None
    rows, predictions, labels = sample.T
    residuals = predictions - labels
    zero: PlotlyObject = {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0,
        "line": {"color": css_color("--soft"), "width": 1.5, "dash": "dash"},
    }  # fmt: skip
    x, x_axis = _time_axis(record, rows.astype(np.int64).tolist(), max(record.summary.rows, int(rows.max())))
    place = "row %{x:,d}" if isinstance(x[0], int) else "%{x}"
    points = _points(x, residuals.tolist(), f"{place}<br>residual %{{y:{NUMBER_FORMAT}}}")
    return Chart(
        title="Residuals over time",
        description=f"Scatter plot of {format_count(len(sample), 'residual')} over the rows, "
        f"from {format_number(float(residuals.min()))} to {format_number(float(residuals.max()))}.",
        data=[points],
        layout=layout(x_axis, axis("prediction \N{MINUS SIGN} label"), shapes=[zero]),
        wide=True,
    )


def _points(x: list[Any], y: list[float], hover: str) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "marker": {"color": css_color("--blue"), "size": 5, "opacity": 0.45},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _all_residuals(record: Record) -> Floats:
    """Return row number, prediction and label of each sampled row."""
    sample = record.residuals
    return np.array([sample.rows, sample.predictions, sample.labels], dtype=np.float64).T


def _sample(record: Record) -> Floats:
    """Return at most `_MAX_POINTS` of the sampled rows, evenly spaced."""
    sample = _all_residuals(record)
    if len(sample) <= _MAX_POINTS:
        return sample
    return np.asarray(sample[np.linspace(0, len(sample) - 1, _MAX_POINTS).round().astype(np.int64)])


def center_chart(record: Record) -> Chart | None:
    """Return a chart of the number of centers after each phase and at the end."""
    if not record.phases:
        return None
    points = [(phase.end, phase.n_centers) for phase in record.phases]
    if record.summary.rows > points[-1][0]:
        points.append((record.summary.rows, record.n_centers))
    return Chart(
        title="Centers in memory",
        description=f"Line chart of the number of centers: {points[0][1]:,} after row {points[0][0]:,}, "
        f"{points[-1][1]:,} after row {points[-1][0]:,}.",
        data=[_row_line(points, "after row %{x:,d}<br>%{y:,d} centers")],
        layout=layout(row_axis(points[-1][0]), axis("centers", rangemode="tozero")),
        height=280,
    )


def speed_chart(record: Record) -> Chart | None:
    """Return a chart of the rows per second during the run."""
    if not record.speed:
        return None
    rates = [rate for _, rate in record.speed]
    return Chart(
        title="Speed",
        description=f"Line chart of rows per second at {format_count(len(rates), 'point')} of the run, "
        f"from {format_number(min(rates))} to {format_number(max(rates))}.",
        data=[_row_line(record.speed, f"row %{{x:,d}}<br>%{{y:{NUMBER_FORMAT}}} rows per second")],
        layout=layout(row_axis(record.speed[-1][0]), axis("rows per second", rangemode="tozero")),
        height=280,
    )


def _row_line(points: list[tuple[int, float]] | list[tuple[int, int]], hover: str) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "lines" if len(points) > 2 else "lines+markers",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "line": {"color": css_color("--blue"), "width": 2.5},
        "marker": {"color": css_color("--blue"), "size": 8},
        "hovertemplate": f"{hover}<extra></extra>",
    }
