"""What the run took: centres and speed."""

from ellipack.report.charts.chart import VALUE, Chart, Figure, axis, layout, rows_axis
from ellipack.report.record import Record
from ellipack.report.style import colour
from ellipack.report.text import counted, number


def centers(record: Record) -> Chart | None:
    """Return how many centres there were, phase by phase and at the end."""
    if not record.phases:
        return None
    points = [(phase.end, phase.n_centers) for phase in record.phases]
    if record.summary.rows > points[-1][0]:
        points.append((record.summary.rows, record.n_centers))
    return Chart(
        title="Centres kept",
        spoken=f"Line chart of the number of centres: {points[0][1]:,} after row {points[0][0]:,}, "
        f"{points[-1][1]:,} after row {points[-1][0]:,}.",
        data=[_line(points, "after row %{x:,d}<br>%{y:,d} centres")],
        layout=layout(rows_axis(points[-1][0]), axis("centres", rangemode="tozero")),
        height=280,
    )


def speed(record: Record) -> Chart | None:
    """Return rows per second along the run."""
    if not record.speed:
        return None
    rates = [rate for _, rate in record.speed]
    return Chart(
        title="Speed",
        spoken=f"Line chart of rows per second at {counted(len(rates), 'point')} of the run, "
        f"from {number(min(rates))} to {number(max(rates))}.",
        data=[_line(record.speed, f"row %{{x:,d}}<br>%{{y:{VALUE}}} rows a second")],
        layout=layout(rows_axis(record.speed[-1][0]), axis("rows per second", rangemode="tozero")),
        height=280,
    )


def _line(points: list[tuple[int, float]] | list[tuple[int, int]], hover: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines" if len(points) > 2 else "lines+markers",
        "x": [x for x, _ in points],
        "y": [y for _, y in points],
        "line": {"color": colour("--blue"), "width": 2.5},
        "marker": {"color": colour("--blue"), "size": 8},
        "hovertemplate": f"{hover}<extra></extra>",
    }
