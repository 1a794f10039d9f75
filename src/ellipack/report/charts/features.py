"""The features that count, and the directions that they combine into."""

from ellipack.report.charts.chart import Chart, Figure, Key, axis, layout
from ellipack.report.record import Record
from ellipack.report.style import colour
from ellipack.report.text import counted, in_chart, percent

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
