"""Small charts of effects."""

from dataclasses import replace

from ellipack.report.effect_charts import effect_charts
from ellipack.report.record import EffectRecord, Record
from tests.report import records


def with_effects(*effects: EffectRecord) -> Record:
    record = records.full()
    assert record.importance is not None
    return replace(record, importance=replace(record.importance, effects=list(effects)))


NUMBER = EffectRecord("temp", "", [1.0, 2.0, 4.0], [], [3.0, 2.0, 1.0], [2.0, 1.0, 0.0], [4.0, 3.0, 2.0])
HOURS = EffectRecord(
    "when", "hour", [float(hour) for hour in range(24)], [f"{hour:02}:00" for hour in range(24)],
    [float(hour % 18) for hour in range(24)], [-10.0] * 24, [20.0] * 24,
)  # fmt: skip


def test_charts_share_the_range_of_predictions() -> None:
    first, second = effect_charts(with_effects(NUMBER, HOURS))
    assert first.layout["yaxis"]["range"] == second.layout["yaxis"]["range"] == [-11.5, 21.5]
    assert first.data[2]["x"] == NUMBER.values
    assert first.data[2]["y"] == NUMBER.mean


def test_names_of_values_are_on_the_axis_no_more_than_fit() -> None:
    number, hours = effect_charts(with_effects(NUMBER, HOURS))
    assert "ticktext" not in number.layout["xaxis"]
    assert hours.layout["xaxis"]["ticktext"] == ["00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"]
    assert hours.title == "Effect of when, hour"
    assert "highest, 17, at 17:00" in hours.description
    assert hours.data[2]["customdata"][5] == "05:00"


def test_there_are_at_most_twelve_charts_and_none_without_effects() -> None:
    assert len(effect_charts(with_effects(*[NUMBER] * 20))) == 12
    assert effect_charts(with_effects()) == []
    assert effect_charts(replace(records.full(), importance=None)) == []
