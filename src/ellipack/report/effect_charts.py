"""Small charts of effects: how the prediction moves with the value of each column that matters."""

from ellipack.report.chart import NUMBER_FORMAT, Chart, LegendEntry, PlotlyObject, axis, css_color, layout
from ellipack.report.formatting import format_number, plotly_text, truncate
from ellipack.report.record import EffectRecord, Record

_HEIGHT = 230
_MAX_CHARTS = 12
_MAX_NAME_LENGTH, _MAX_LABEL_LENGTH = 40, 14


def effect_charts(record: Record) -> list[Chart]:
    """Return a chart for each effect; all have the same range of predictions, so that sizes can be compared."""
    shown = [] if record.importance is None else record.importance.effects[:_MAX_CHARTS]
    low = min((min(each.low) for each in shown), default=0.0)
    high = max((max(each.high) for each in shown), default=1.0)
    margin = 0.05 * (high - low) or 1.0
    return [_effect_chart(each, [low - margin, high + margin]) for each in shown]


def _effect_chart(effect: EffectRecord, y_range: list[float]) -> Chart:
    name = truncate(effect.column, _MAX_NAME_LENGTH) + (f", {effect.part}" if effect.part else "")
    spread: PlotlyObject = {"type": "scatter", "mode": "lines", "x": effect.values, "hoverinfo": "skip"}
    edge = {"color": css_color("--sky"), "width": 1}
    data = [
        spread | {"y": effect.low, "line": edge},
        spread | {"y": effect.high, "line": edge, "fill": "tonexty"},
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": effect.values,
            "y": effect.mean,
            "line": {"color": css_color("--blue"), "width": 2},
            "customdata": [plotly_text(label) for label in effect.labels or map(format_number, effect.values)],
            "hovertemplate": f"%{{customdata}}<br>%{{y:{NUMBER_FORMAT}}}<extra></extra>",
        },
    ]
    x = axis(plotly_text(name))
    if effect.labels:
        step = -(-len(effect.labels) // 8)  # no more than eight names beside each other
        names = [plotly_text(truncate(label, _MAX_LABEL_LENGTH)) for label in effect.labels]
        x |= {"tickvals": effect.values[::step], "ticktext": names[::step]}
    highest, lowest = effect.mean.index(max(effect.mean)), effect.mean.index(min(effect.mean))
    texts = effect.labels or [format_number(value) for value in effect.values]
    return Chart(
        title=f"Effect of {name}",
        description=f"Line chart of the mean prediction by {name}: highest, {format_number(max(effect.mean))}, at "
        f"{texts[highest]}, and lowest, {format_number(min(effect.mean))}, at {texts[lowest]}.",
        data=data,
        layout=layout(x, axis("mean prediction", range=y_range, nticks=5)),
        height=_HEIGHT,
        legend=[LegendEntry("mean", "--blue"), LegendEntry("10 to 90% of recent rows", "--sky")],
    )
