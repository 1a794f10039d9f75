"""Charts of the model: spectrum and effective rank of the metric, features, directions and experts.

Each function returns None if the record has nothing to draw.
"""

import math

from ellipack.report.chart import SERIES_COLORS, Chart, LegendEntry, PlotlyObject, axis, css_color, layout, log_row_axis
from ellipack.report.formatting import format_count, format_number, format_percent, plotly_text
from ellipack.report.record import Record

_MAX_EIGENVALUES = 40
_MAX_TICKS = 15  # with more eigenvalues, not every one has a tick
_N_PHASES = 4  # whose spectra are drawn beside the final one
_SMALLEST = 1e-6  # times the largest eigenvalue; smaller ones are not drawn
_MAX_FEATURES = 20
_LABEL_LENGTH, _NARROW_LABEL_LENGTH = 26, 15  # characters of a feature name beside a bar
_FEATURE_MARGIN = {"l": 56, "r": 14, "t": 6, "b": 62}  # shared, so that the rows of both feature charts line up
_OTHER_EXPERTS = "all others"


def spectrum_chart(record: Record) -> Chart | None:
    """Return a chart of the eigenvalues at the end and after a few earlier phases."""
    if len(record.eigenvalues) < 2 or record.eigenvalues[0] == 0:
        return None
    curves = _curves(record)
    largest = max(values[0] for _, values, _ in curves if values)
    floor = _SMALLEST * largest
    lowest = min(value for _, values, _ in curves for value in values[:_MAX_EIGENVALUES] if value >= floor)
    lowest = min(lowest, largest / 10)  # at least a power of ten, so that there are two ticks
    count = min(len(record.eigenvalues), _MAX_EIGENVALUES)
    hidden = len(record.eigenvalues) - count
    x_axis = axis(
        "direction, strongest first", range=[0.5, count + 0.5], tickformat=",d", showgrid=False, ticks="outside"
    )
    y_range = [math.log10(lowest / 1.5), math.log10(largest * 1.4)]
    return Chart(
        title="Spectrum of the metric",
        description=f"Line chart of the {format_count(count, 'largest eigenvalue')} of the metric in decreasing order, "
        f"on a log scale, from {format_number(record.eigenvalues[0])} "
        f"to {format_number(record.eigenvalues[count - 1])}.",
        data=[_curve(*curve, floor) for curve in curves],
        layout=layout(
            x_axis | {"tickcolor": css_color("--rule")} | ({"dtick": 1} if count <= _MAX_TICKS else {}),
            axis("eigenvalue (log scale)", type="log", range=y_range, dtick=1),
        ),
        legend=[LegendEntry(name, "--blue", "line", opacity) for name, _, opacity in curves],
        note=f"The {count} largest eigenvalues; {hidden:,} more are not shown." if hidden else "",
    )


def _curves(record: Record) -> list[tuple[str, list[float], float]]:
    """Return name, eigenvalues and opacity of each curve: a few phases, evenly spaced, and the end."""
    before = [phase for phase in record.phases[:-1] if phase.eigenvalues]
    count = min(_N_PHASES, len(before))
    picked = [before[round(i * (len(before) - 1) / max(1, count - 1))] for i in range(count)]
    faint = [(f"after row {phase.end:,}", phase.eigenvalues, 0.25 + 0.6 * i / count) for i, phase in enumerate(picked)]
    return [*faint, ("at the end", record.eigenvalues, 1.0)]


def _curve(name: str, eigenvalues: list[float], opacity: float, floor: float) -> PlotlyObject:
    shown = [value if value >= floor else None for value in eigenvalues[:_MAX_EIGENVALUES]]
    last = opacity == 1.0
    return {
        "type": "scatter",
        "mode": "lines+markers" if last else "lines",
        "name": name,
        "x": list(range(1, len(shown) + 1)),
        "y": shown,
        "opacity": opacity,
        "line": {"color": css_color("--blue"), "width": 3 if last else 2},
        "marker": {"color": css_color("--blue"), "size": 7},
        "hovertemplate": "direction %{x:,d}: %{y:.3~g}",
    }


def effective_rank_chart(record: Record) -> Chart | None:
    """Return a chart of the effective rank after each phase."""
    if not record.phases:
        return None
    ends, ranks = [phase.end for phase in record.phases], [phase.effective_rank for phase in record.phases]
    trace: PlotlyObject = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": ends,
        "y": ranks,
        "line": {"color": css_color("--blue"), "width": 2.5, "shape": "hv"},
        "marker": {"color": css_color("--blue"), "size": 7},
        "customdata": [plotly_text(phase.choice, 60) for phase in record.phases],
        "hovertemplate": "after row %{x:,d}<br>effective rank %{y:,d}<br>metric: %{customdata}<extra></extra>",
    }
    top = max(*ranks, 1)
    return Chart(
        title="Effective rank by phase",
        description=f"Step chart of the effective rank over {format_count(len(ranks), 'phase')}: "
        f"{ranks[0]} after the first, {ranks[-1]} after the last.",
        data=[trace],
        layout=layout(
            log_row_axis(ends[0], ends[-1]),
            axis("effective rank", range=[0, 1.12 * top], tickformat=",d") | ({"dtick": 1} if top <= 6 else {}),
        ),
    )


def top_features(record: Record) -> list[int]:
    """Return the positions of the features with the largest weights in the metric, in decreasing order."""
    weights = [sum(each.eigenvalue * each.loadings[i] ** 2 for each in record.directions) for i in _positions(record)]
    return sorted(_positions(record), key=lambda i: -weights[i])[:_MAX_FEATURES]


def _positions(record: Record) -> range:
    return range(len(record.features))


def importance_chart(record: Record) -> Chart | None:
    """Return a bar chart of the importance of columns, with standard errors."""
    measured = (
        [] if record.importance is None else [each for each in record.importance.groups if each.share is not None]
    )
    leading = measured[:_MAX_FEATURES]
    if not leading:
        return None
    values = [each.share or 0.0 for each in leading]
    errors = [each.share_std or 0.0 for each in leading]
    full_names = [" with ".join(each.columns) for each in leading]
    trace: PlotlyObject = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": list(range(len(values))),
        "error_x": {"type": "data", "array": errors, "thickness": 1.5, "color": css_color("--ink")},
        "marker": {"color": css_color("--blue")},
        "customdata": [plotly_text(name) for name in full_names],
        "hovertemplate": "%{customdata}<br>%{x:.2%}<extra></extra>",
    }
    more = len(measured) - len(leading)
    largest = max(value + error for value, error in zip(values, errors, strict=True)) or 1.0
    return Chart(
        title="Importance of columns",
        description=f"Bar chart of the importance of {format_count(len(leading), 'column')}. "
        f"The first is {full_names[0]}, {format_percent(values[0])}.",
        data=[trace],
        layout=layout(
            axis("share of the rise in squared error", range=[0, 1.08 * largest], tickformat=".1~%", nticks=5),
            _names_axis(full_names),
            bargap=0.3,
            margin=_FEATURE_MARGIN,
        ),
        height=_height(len(leading)),
        narrow_layout={"yaxis.ticktext": _labels(full_names, _NARROW_LABEL_LENGTH)},
        note=f"{more:,} more {'columns are' if more > 1 else 'column is'} less important." if more else "",
    )


def loading_chart(record: Record) -> Chart | None:
    """Return a heat map of the loadings of the most important features on the leading directions."""
    leading = top_features(record)
    if len(leading) < 2 or not record.directions:
        return None
    table = [[direction.loadings[i] for direction in record.directions] for i in leading]
    limit = max(abs(loading) for row in table for loading in row) or 1.0
    heads = [f"{i + 1}<br>({each.eigenvalue:.2g})" for i, each in enumerate(record.directions)]
    trace: PlotlyObject = {
        "type": "heatmap",
        "z": table,
        "x": list(range(len(heads))),
        "y": list(range(len(leading))),
        "zmin": -limit,
        "zmax": limit,
        "colorscale": [[0, css_color("--vermilion")], [0.5, css_color("--middle")], [1, css_color("--blue")]],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "texttemplate": "%{z:.2f}" if len(heads) <= 6 else "",
        "customdata": [[plotly_text(record.features[i])] * len(heads) for i in leading],
        "hovertemplate": "%{customdata}<br>loading %{z:.3f}<extra></extra>",
    }
    places = list(range(len(heads)))
    x = axis("direction (eigenvalue)", tickvals=places, ticktext=heads, tickangle=0, showgrid=False)
    return Chart(
        title="Leading directions",
        description=f"Heat map of the loadings of {format_count(len(leading), 'feature')} "
        f"on the {format_count(len(heads), 'strongest direction')}.",
        data=[trace],
        layout=layout(x, _names_axis([record.features[i] for i in leading]), margin=_FEATURE_MARGIN),
        height=_height(len(leading)),
        legend=[LegendEntry("positive", "--blue", "area"), LegendEntry("negative", "--vermilion", "area")],
        note="A direction and its opposite are the same: only relative signs matter.",
        narrow_layout={
            "yaxis.ticktext": _labels([record.features[i] for i in leading], _NARROW_LABEL_LENGTH),
            "xaxis.ticktext": [f"{i + 1}" for i in places],  # eigenvalues would overlap
            "xaxis.title.text": "direction",
        },
    )


def _names_axis(names: list[str]) -> PlotlyObject:
    return axis(
        "",
        tickvals=list(range(len(names))),
        ticktext=_labels(names, _LABEL_LENGTH),
        range=[len(names) - 0.5, -0.5],
        showgrid=False,
        tickfont={"color": css_color("--ink")},
        ticks="",
        ticklabelstandoff=6,
    )


def _labels(names: list[str], length: int) -> list[str]:
    return [plotly_text(name, length) for name in names]


def _height(bars: int) -> int:
    return 76 + 27 * max(bars, 2)


def expert_weight_chart(record: Record) -> Chart | None:
    """Return a stacked chart of the expert weights over time: those with the largest final weight by name."""
    history = _history(record)
    if not record.experts.names:
        return None
    heaviest = sorted(range(len(record.experts.names)), key=lambda k: -record.experts.weights[k])
    named, others = heaviest[: len(SERIES_COLORS)], heaviest[len(SERIES_COLORS) :]
    bands = [
        (record.experts.names[k], color, [weights[k] for _, weights in history])
        for k, color in zip(named, SERIES_COLORS, strict=False)
    ]
    if others:
        bands.append((_OTHER_EXPERTS, "--rest", [sum(weights[k] for k in others) for _, weights in history]))
    ends = [end for end, _ in history]
    _, top = max(zip(record.experts.weights, record.experts.names, strict=True))
    return Chart(
        title="Weight of each expert",
        description=f"Stacked areas of the weights of {format_count(len(record.experts.names), 'expert')} over "
        f"{format_count(len(record.phases), 'phase')}. The largest weight at the end is that of {top}.",
        data=[_band(ends, *band) for band in bands],
        layout=layout(
            log_row_axis(ends[0], ends[-1]),
            axis("weight", range=[0, 1], tickformat=".0%"),
            hovermode="x unified",
        ),
        height=340,
        legend=[LegendEntry(name, color, "area", value=format_percent(weights[-1])) for name, color, weights in bands],
        note="The percentage beside a name is its weight at the end.",
        wide=True,
    )


def _history(record: Record) -> list[tuple[int, list[float]]]:
    """Return row numbers and expert weights: after each phase, and at the end."""
    history = [(phase.end, phase.expert_weights) for phase in record.phases if phase.expert_weights]
    last = max(record.summary.rows, 1)
    if not history or last > history[-1][0]:
        history.append((last, record.experts.weights))
    if len(history) == 1:  # an area needs two points
        history.insert(0, (1, history[0][1]))
    return history


def _band(ends: list[int], name: str, color: str, weights: list[float]) -> PlotlyObject:
    return {
        "type": "scatter",
        "mode": "lines",
        "stackgroup": "weights",
        "name": plotly_text(name, 60),
        "x": ends,
        "y": weights,
        "line": {"color": css_color("--card"), "width": 1},
        "fillcolor": css_color(color),
        "hoverlabel": {"bordercolor": css_color(color)},
        "hovertemplate": "%{y:.1%}",
        "xhoverformat": ",d",
    }
