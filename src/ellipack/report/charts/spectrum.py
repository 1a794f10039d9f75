"""The spectrum of the metric, and its effective rank."""

import math

from ellipack.report.charts.chart import Chart, Figure, Key, axis, layout, log_rows_axis
from ellipack.report.record import Record
from ellipack.report.style import colour
from ellipack.report.text import counted, in_chart, number

_DIRECTIONS = "direction, the strongest first"
_EIGENVALUES, _EACH = 40, 15  # how many are shown, and up to how many each has its number
_PHASES = 4  # that are shown beside the end
_SPAN = 1e-6  # of the largest eigenvalue: what is below is off the chart


def spectrum(record: Record) -> Chart | None:
    """Return the eigenvalues at the end, and after a few phases on the way."""
    if len(record.eigenvalues) < 2 or record.eigenvalues[0] == 0:
        return None
    curves = _curves(record)
    largest = max(values[0] for _, values, _ in curves if values)
    floor = _SPAN * largest
    lowest = min(value for _, values, _ in curves for value in values[:_EIGENVALUES] if value >= floor)
    lowest = min(lowest, largest / 10)  # a power of ten at least, or there would be but one tick
    count = min(len(record.eigenvalues), _EIGENVALUES)
    hidden = len(record.eigenvalues) - count
    places = axis(_DIRECTIONS, range=[0.5, count + 0.5], tickformat=",d", showgrid=False, ticks="outside")
    y_range = [math.log10(lowest / 1.5), math.log10(largest * 1.4)]
    return Chart(
        title="Spectrum of the metric",
        spoken=f"Line chart of the {counted(count, 'largest eigenvalue')} of the metric in falling order, on a log "
        f"scale, from {number(record.eigenvalues[0])} to {number(record.eigenvalues[count - 1])}.",
        data=[_curve(*curve, floor) for curve in curves],
        layout=layout(
            places | {"tickcolor": colour("--rule")} | ({"dtick": 1} if count <= _EACH else {}),
            axis("eigenvalue (log scale)", type="log", range=y_range, dtick=1),
        ),
        keys=[Key(name, "--blue", "line", opacity) for name, _, opacity in curves],
        note=f"The largest {count}; {hidden:,} more are not shown." if hidden else "",
    )


def _curves(record: Record) -> list[tuple[str, list[float], float]]:
    """Return name, eigenvalues and opacity of each curve: a few phases, evenly picked, and the end."""
    before = [phase for phase in record.phases[:-1] if phase.eigenvalues]
    count = min(_PHASES, len(before))
    picked = [before[round(i * (len(before) - 1) / max(1, count - 1))] for i in range(count)]
    faint = [(f"after row {phase.end:,}", phase.eigenvalues, 0.25 + 0.6 * i / count) for i, phase in enumerate(picked)]
    return [*faint, ("at the end", record.eigenvalues, 1.0)]


def _curve(name: str, eigenvalues: list[float], opacity: float, floor: float) -> Figure:
    shown = [value if value >= floor else None for value in eigenvalues[:_EIGENVALUES]]
    last = opacity == 1.0
    return {
        "type": "scatter",
        "mode": "lines+markers" if last else "lines",
        "name": name,
        "x": list(range(1, len(shown) + 1)),
        "y": shown,
        "opacity": opacity,
        "line": {"color": colour("--blue"), "width": 3 if last else 2},
        "marker": {"color": colour("--blue"), "size": 7},
        "hovertemplate": "direction %{x:,d}: %{y:.3~g}",
    }


def effective_rank(record: Record) -> Chart | None:
    """Return the effective rank phase by phase."""
    if not record.phases:
        return None
    ends, ranks = [phase.end for phase in record.phases], [phase.effective_rank for phase in record.phases]
    trace: Figure = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": ends,
        "y": ranks,
        "line": {"color": colour("--blue"), "width": 2.5, "shape": "hv"},
        "marker": {"color": colour("--blue"), "size": 7},
        "customdata": [in_chart(phase.choice, 60) for phase in record.phases],
        "hovertemplate": "after row %{x:,d}<br>effective rank %{y:,d}<br>metric: %{customdata}<extra></extra>",
    }
    top = max(*ranks, 1)
    return Chart(
        title="Effective rank, phase by phase",
        spoken=f"Step chart of the effective rank over {counted(len(ranks), 'phase')}: "
        f"{ranks[0]} after the first, {ranks[-1]} after the last.",
        data=[trace],
        layout=layout(
            log_rows_axis(ends[0], ends[-1]),
            axis("effective rank", range=[0, 1.12 * top], tickformat=",d") | ({"dtick": 1} if top <= 6 else {}),
        ),
    )
