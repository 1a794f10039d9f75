"""How far predictions were from labels: one against the other, as a histogram, over time."""

import numpy as np

from ellipack.report.charts.chart import VALUE, Chart, Figure, axis, layout, rows_axis
from ellipack.report.record import Record
from ellipack.report.style import colour
from ellipack.report.text import counted, number
from ellipack.validation import Floats

_MOST = 2000  # points of a chart: more take long to draw, and hide each other
_BINS = 41
_TAIL = 0.005  # of the errors at either end that would stretch a histogram out


def predictions_and_labels(record: Record) -> Chart | None:
    """Return predictions against labels, with the line where both are the same."""
    sample = _sample(record)
    if len(sample) < 2:
        return None
    _, predictions, labels = sample.T
    low, high = float(min(predictions.min(), labels.min())), float(max(predictions.max(), labels.max()))
    margin = 0.04 * (high - low) or 1.0
    line: Figure = {
        "type": "scatter",
        "mode": "lines",
        "x": [low, high],
        "y": [low, high],
        "line": {"color": colour("--soft"), "width": 1.5, "dash": "dash"},
        "hoverinfo": "skip",
    }
    both = {"range": [low - margin, high + margin]}
    return Chart(
        title="Prediction against label",
        spoken=f"Scatter plot of predictions against labels for {counted(len(sample), 'row')}, both "
        f"from {number(low)} to {number(high)}, beside the line where they are the same.",
        data=[_points(labels, predictions, f"label %{{x:{VALUE}}}<br>prediction %{{y:{VALUE}}}"), line],
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
    trace: Figure = {
        "type": "bar",
        "x": ((edges[:-1] + edges[1:]) / 2).tolist(),
        "y": counts.tolist(),
        "width": float(edges[1] - edges[0]),
        "marker": {"color": colour("--blue"), "line": {"color": colour("--card"), "width": 1}},
        "hovertemplate": f"error about %{{x:{VALUE}}}<br>%{{y:,d}} rows<extra></extra>",
    }
    return Chart(
        title="How often errors of each size happen",
        spoken=f"Histogram of {counted(len(errors), 'error')}: half of them lie "
        f"from {number(float(np.quantile(errors, 0.25)))} to {number(float(np.quantile(errors, 0.75)))}.",
        data=[trace],
        layout=layout(axis("prediction \N{MINUS SIGN} label"), axis("rows", rangemode="tozero", tickformat=",~r")),
        note=f"{counted(outside, 'larger error')} not shown." if outside else "",
    )


def errors_by_row(record: Record) -> Chart | None:
    """Return errors over time."""
    sample = _sample(record)
    if len(sample) < 2:
        return None
    rows, predictions, labels = sample.T
    errors = predictions - labels
    zero: Figure = {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": 0, "y1": 0,
        "line": {"color": colour("--soft"), "width": 1.5, "dash": "dash"},
    }  # fmt: skip
    points = _points(rows, errors, f"row %{{x:,d}}<br>error %{{y:{VALUE}}}")
    last = max(record.summary.rows, int(rows.max()))
    return Chart(
        title="Errors over time",
        spoken=f"Scatter plot of {counted(len(sample), 'error')} over the rows, "
        f"from {number(float(errors.min()))} to {number(float(errors.max()))}.",
        data=[points],
        layout=layout(rows_axis(last), axis("prediction \N{MINUS SIGN} label"), shapes=[zero]),
        wide=True,
    )


def _points(x: Floats, y: Floats, hover: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x.tolist(),
        "y": y.tolist(),
        "marker": {"color": colour("--blue"), "size": 5, "opacity": 0.45},
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
