"""How the error fell over time."""

import numpy as np

from ellipack.report.chart import NUMBER_FORMAT, Chart, LegendEntry, PlotlyObject, axis, css_color, layout, row_axis
from ellipack.report.formatting import format_count, format_number
from ellipack.report.record import Record
from ellipack.validation import Floats


def error_chart(record: Record) -> Chart | None:
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
    ends = f"It is {format_number(bins.rmse[0])} at first and {format_number(bins.rmse[-1])} at the end."
    return Chart(
        title="Error over time",
        description=f"Line chart of the root mean square error over {format_count(len(bins.end), 'bin')} of "
        f"consecutive rows, beside those of the running mean and the last value. {ends}",
        data=data,
        layout=layout(row_axis(bins.end[-1]), axis("RMSE", rangemode="tozero"), hovermode="x unified"),
        height=360,
        legend=[LegendEntry(name, tint, {"solid": "line"}.get(dash, dash)) for name, _, tint, dash, _ in there],
        wide=True,
    )


def _line(end: list[int], name: str, values: list[float | None], tint: str, dash: str, width: float) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": end,
        "y": values,
        "line": {"color": css_color(tint), "width": width, "dash": dash},
        "hovertemplate": f"%{{y:{NUMBER_FORMAT}}}",
        "xhoverformat": ",d",
    }


_MOST = 2000  # points of a chart: more take long to draw, and hide each other
_BINS = 41
_TAIL = 0.005  # of the errors at either end that would stretch a histogram out


def prediction_chart(record: Record) -> Chart | None:
    """Return predictions against labels, with the line where both are the same."""
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
        title="Prediction against label",
        description=f"Scatter plot of predictions against labels for {format_count(len(sample), 'row')}, both "
        f"from {format_number(low)} to {format_number(high)}, beside the line where they are the same.",
        data=[_points(labels, predictions, f"label %{{x:{NUMBER_FORMAT}}}<br>prediction %{{y:{NUMBER_FORMAT}}}"), line],
        layout=layout(axis("label") | both, axis("prediction") | both),
        note="On the dashed line a prediction is exactly right.",
    )


def error_histogram(record: Record) -> Chart | None:
    """Return how often errors of each size were made."""
    sample = _all(record)
    if len(sample) < 2:
        return None
    errors = sample[:, 1] - sample[:, 2]
    # As far to the left as to the right, so that a lean to one side shows.
    tails = np.quantile(errors, [_TAIL, 1 - _TAIL], method="inverted_cdf")
    reach = float(np.abs(tails).max()) or float(np.abs(errors).max()) or 1.0
    counts, edges = np.histogram(errors, bins=_BINS, range=(-reach, reach))
    outside = len(errors) - int(counts.sum())
    trace: PlotlyObject = {
        "type": "bar",
        "x": ((edges[:-1] + edges[1:]) / 2).tolist(),
        "y": counts.tolist(),
        "width": float(edges[1] - edges[0]),
        "marker": {"color": css_color("--blue"), "line": {"color": css_color("--card"), "width": 1}},
        "hovertemplate": f"error about %{{x:{NUMBER_FORMAT}}}<br>%{{y:,d}} rows<extra></extra>",
    }
    return Chart(
        title="How often errors of each size happen",
        description=f"Histogram of {format_count(len(errors), 'error')}: half of them lie "
        f"from {format_number(float(np.quantile(errors, 0.25)))} to {format_number(float(np.quantile(errors, 0.75)))}.",
        data=[trace],
        layout=layout(axis("prediction \N{MINUS SIGN} label"), axis("rows", rangemode="tozero", tickformat=",~r")),
        note=f"{format_count(outside, 'larger error')} not shown." if outside else "",
    )


def residual_chart(record: Record) -> Chart | None:
    """Return errors over time."""
    sample = _sample(record)
    if len(sample) < 2:
        return None
    rows, predictions, labels = sample.T
    errors = predictions - labels
    zero: PlotlyObject = {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0,
        "line": {"color": css_color("--soft"), "width": 1.5, "dash": "dash"},
    }  # fmt: skip
    points = _points(rows, errors, f"row %{{x:,d}}<br>error %{{y:{NUMBER_FORMAT}}}")
    last = max(record.summary.rows, int(rows.max()))
    return Chart(
        title="Errors over time",
        description=f"Scatter plot of {format_count(len(sample), 'error')} over the rows, "
        f"from {format_number(float(errors.min()))} to {format_number(float(errors.max()))}.",
        data=[points],
        layout=layout(row_axis(last), axis("prediction \N{MINUS SIGN} label"), shapes=[zero]),
        wide=True,
    )


def _points(x: Floats, y: Floats, hover: str) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x.tolist(),
        "y": y.tolist(),
        "marker": {"color": css_color("--blue"), "size": 5, "opacity": 0.45},
        "hovertemplate": f"{hover}<extra></extra>",
    }


def _all(record: Record) -> Floats:
    """Return row number, prediction and label, a row each."""
    sample = record.residuals
    return np.array([sample.rows, sample.predictions, sample.labels], dtype=np.float64).T


def _sample(record: Record) -> Floats:
    """Return as many of the rows as a chart can bear, evenly picked."""
    sample = _all(record)
    if len(sample) <= _MOST:
        return sample
    return np.asarray(sample[np.linspace(0, len(sample) - 1, _MOST).round().astype(np.int64)])


def center_chart(record: Record) -> Chart | None:
    """Return how many centres there were, phase by phase and at the end."""
    if not record.phases:
        return None
    points = [(phase.end, phase.n_centers) for phase in record.phases]
    if record.summary.rows > points[-1][0]:
        points.append((record.summary.rows, record.n_centers))
    return Chart(
        title="Centres kept",
        description=f"Line chart of the number of centres: {points[0][1]:,} after row {points[0][0]:,}, "
        f"{points[-1][1]:,} after row {points[-1][0]:,}.",
        data=[_row_line(points, "after row %{x:,d}<br>%{y:,d} centres")],
        layout=layout(row_axis(points[-1][0]), axis("centres", rangemode="tozero")),
        height=280,
    )


def speed_chart(record: Record) -> Chart | None:
    """Return rows per second along the run."""
    if not record.speed:
        return None
    rates = [rate for _, rate in record.speed]
    return Chart(
        title="Speed",
        description=f"Line chart of rows per second at {format_count(len(rates), 'point')} of the run, "
        f"from {format_number(min(rates))} to {format_number(max(rates))}.",
        data=[_row_line(record.speed, f"row %{{x:,d}}<br>%{{y:{NUMBER_FORMAT}}} rows a second")],
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
