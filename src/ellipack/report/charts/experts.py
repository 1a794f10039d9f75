"""Which experts the mixture trusts."""

from ellipack.report.charts.chart import Chart, Figure, Key, axis, layout, log_rows_axis
from ellipack.report.record import Record
from ellipack.report.style import LINES, colour
from ellipack.report.text import counted, in_chart, percent

_REST = "all others"


def expert_weights(record: Record) -> Chart | None:
    """Return the experts' weights over time, stacked: the heaviest by name, and all others together."""
    history = _history(record)
    if not record.experts.names:
        return None
    heaviest = sorted(range(len(record.experts.names)), key=lambda k: -sum(weights[k] for _, weights in history))
    named, others = heaviest[: len(LINES)], heaviest[len(LINES) :]
    bands = [
        (record.experts.names[k], tint, [weights[k] for _, weights in history])
        for k, tint in zip(named, LINES, strict=False)
    ]
    if others:
        bands.append((_REST, "--rest", [sum(weights[k] for k in others) for _, weights in history]))
    ends = [end for end, _ in history]
    _, top = max(zip(record.experts.weights, record.experts.names, strict=True))
    return Chart(
        title="Weight of each expert in the mixture",
        spoken=f"Stacked areas of the weights of {counted(len(record.experts.names), 'expert')} over "
        f"{counted(len(record.phases), 'phase')}. The heaviest at the end is {top}.",
        data=[_band(ends, *band) for band in bands],
        layout=layout(
            log_rows_axis(ends[0], ends[-1]),
            axis("weight", range=[0, 1], tickformat=".0%"),
            hovermode="x unified",
        ),
        height=340,
        keys=[Key(name, tint, "area", value=percent(weights[-1])) for name, tint, weights in bands],
        note="The share beside a name is its weight at the end.",
        wide=True,
    )


def _history(record: Record) -> list[tuple[int, list[float]]]:
    """Return row numbers and weights there: at the end of each phase, and at the end."""
    history = [(phase.end, phase.expert_weights) for phase in record.phases if phase.expert_weights]
    last = max(record.summary.rows, 1)
    if not history or last > history[-1][0]:
        history.append((last, record.experts.weights))
    if len(history) == 1:  # an area needs two ends
        history.insert(0, (1, history[0][1]))
    return history


def _band(ends: list[int], name: str, tint: str, weights: list[float]) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "weights",
        "name": in_chart(name, 60),
        "x": ends,
        "y": weights,
        "line": {"color": colour("--card"), "width": 1},
        "fillcolor": colour(tint),
        "hoverlabel": {"bordercolor": colour(tint)},
        "hovertemplate": "%{y:.1%}",
        "xhoverformat": ",d",
    }
