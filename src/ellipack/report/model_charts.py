"""The spectrum of the metric, and its effective rank."""

import math

from ellipack.report.chart import LINES, Chart, Figure, Key, axis, colour, layout, log_rows_axis
from ellipack.report.formatting import counted, in_chart, number, percent
from ellipack.report.record import Record

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


TOP = 20
"""How many features are shown."""

_LABEL, _NARROW_LABEL = 26, 15  # characters of a name
_MARGIN = {"l": 56, "r": 14, "t": 6, "b": 62}  # the same for both charts, so that their rows stand side by side


def leading_features(record: Record) -> list[int]:
    """Return the positions of the features that count most, the first first."""
    return sorted(range(len(record.features)), key=lambda i: -record.importances[i])[:TOP]


def importances(record: Record) -> Chart | None:
    """Return how much the leading features count."""
    leading = leading_features(record)
    if not leading:
        return None
    values = [record.importances[i] for i in leading]
    trace: Figure = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(values))),
        "text": [in_chart(percent(value)) for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": colour("--blue")},
        "customdata": [in_chart(record.features[i]) for i in leading],
        "hovertemplate": "%{customdata}<br>%{x:.2%}<extra></extra>",
    }
    names = _names_axis(record, leading)
    more = len(record.features) - len(leading)
    first = record.features[leading[0]]
    return Chart(
        title="Features that matter",
        spoken=f"Bar chart of the importance of {counted(len(leading), 'feature')}. "
        f"The first is {first}, {percent(values[0])}.",
        data=[trace],
        layout=layout(
            axis("share of the metric", range=[0, 1.18 * max(values)], tickformat=".1~%", nticks=5),
            names,
            bargap=0.3,
            margin=_MARGIN,
        ),
        height=_height(len(leading)),
        narrow={"yaxis.ticktext": _labels(record, leading, _NARROW_LABEL)},
        note=f"{more:,} more {'features count' if more > 1 else 'feature counts'} less than these." if more else "",
    )


def directions(record: Record) -> Chart | None:
    """Return how much the leading features take part in the leading directions."""
    leading = leading_features(record)
    if len(leading) < 2 or not record.directions:
        return None
    table = [[direction.loadings[i] for direction in record.directions] for i in leading]
    limit = max(abs(loading) for row in table for loading in row) or 1.0
    heads = [f"{i + 1}<br>({each.eigenvalue:.2g})" for i, each in enumerate(record.directions)]
    trace: Figure = {
        "type": "heatmap",
        "z": table,
        "x": list(range(len(heads))),
        "y": list(range(len(leading))),
        "zmin": -limit,
        "zmax": limit,
        "colorscale": [[0, colour("--vermilion")], [0.5, colour("--middle")], [1, colour("--blue")]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "texttemplate": "%{z:.2f}" if len(heads) <= 6 else "",
        "customdata": [[in_chart(record.features[i])] * len(heads) for i in leading],
        "hovertemplate": "%{customdata}<br>loading %{z:.3f}<extra></extra>",
    }
    places = list(range(len(heads)))
    x = axis("direction (eigenvalue)", tickvals=places, ticktext=heads, tickangle=0, showgrid=False)
    return Chart(
        title="Directions they combine into",
        spoken=f"Heat map of the loadings of {counted(len(leading), 'feature')} "
        f"on the {counted(len(heads), 'strongest direction')}.",
        data=[trace],
        layout=layout(x, _names_axis(record, leading), margin=_MARGIN),
        height=_height(len(leading)),
        keys=[Key("positive", "--blue", "area"), Key("negative", "--vermilion", "area")],
        note="A direction and its opposite are the same: what counts is which features share a sign.",
        narrow={"yaxis.ticktext": _labels(record, leading, _NARROW_LABEL)},
    )


def _names_axis(record: Record, positions: list[int]) -> Figure:
    return axis(
        "",
        tickvals=list(range(len(positions))),
        ticktext=_labels(record, positions, _LABEL),
        range=[len(positions) - 0.5, -0.5],
        showgrid=False,
        tickfont={"color": colour("--ink")},
        ticks="",
        ticklabelstandoff=6,
    )


def _labels(record: Record, positions: list[int], most: int) -> list[str]:
    return [in_chart(record.features[i], most) for i in positions]


def _height(bars: int) -> int:
    return 76 + 27 * max(bars, 2)


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
