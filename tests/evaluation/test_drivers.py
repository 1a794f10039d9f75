"""Effects and importances of the columns of a table."""

import numpy as np
import pytest

import ellipack
from ellipack import MetricRegressor, PackingRegressor, RescaledRegressor, TableRegressor
from ellipack.errors import InputError
from ellipack.evaluation.drivers import column_importances
from ellipack.learners.metric.effects import Effect


def fitted(learner: MetricRegressor | RescaledRegressor | None = None) -> TableRegressor:
    """Return a model of rentals that depend on the hour, the weekday, the weather and the temperature."""
    rng = np.random.default_rng(0)
    hours = np.arange(1500)
    times = np.datetime64("2024-01-01T00") + hours.astype("timedelta64[h]")
    weather = rng.choice(["sun", "rain"], 1500)
    temperature = rng.normal(15, 5, size=1500)
    temperature[rng.random(1500) < 0.05] = np.nan
    is_holiday = rng.random(1500) < 0.3
    labels = (
        20 * np.sin(2 * np.pi * (hours % 24 - 11) / 24)  # highest at 17:00
        + np.where(weather == "sun", 10, 0)
        - 2 * np.nan_to_num(temperature, nan=15)
        + np.where(is_holiday, 8, 0)
        + rng.normal(size=1500)
    )
    table = {
        "when": times.astype(str).tolist(),
        "weather": weather.tolist(),
        "temperature": temperature.tolist(),
        "holiday": is_holiday.tolist(),
        "rentals": labels.tolist(),
    }
    return TableRegressor("rentals", learner=learner or MetricRegressor(past=False)).fit(table)


@pytest.fixture(scope="module")
def model() -> TableRegressor:
    return fitted()


def effects_by_name(model: TableRegressor, column: str) -> dict[str, Effect]:
    return {effect.name: effect for effect in model.partial_dependence(column)}


def test_a_time_has_an_effect_for_each_part_that_varies(model: TableRegressor) -> None:
    effects = effects_by_name(model, "when")
    assert set(effects) == {"hour", "weekday", "day of year"}
    assert effects["hour"].labels[:2] == ("00:00", "01:00")
    assert effects["hour"].labels[int(effects["hour"].mean.argmax())] in {"16:00", "17:00", "18:00"}
    assert effects["weekday"].labels[0] == "Monday"
    assert np.ptp(effects["weekday"].mean) < 0.3 * np.ptp(effects["hour"].mean)


def test_levels_and_booleans_have_names(model: TableRegressor) -> None:
    (weather,) = model.partial_dependence("weather")
    assert weather.describe() == "highest for sun, lowest for rain"
    assert np.ptp(weather.mean) == pytest.approx(10, abs=2)
    (holiday,) = model.partial_dependence("holiday")
    assert holiday.labels == ("false", "true")
    assert holiday.mean[1] - holiday.mean[0] == pytest.approx(8, abs=2)


def test_numbers_are_quantiles_of_the_values_that_are_not_missing(model: TableRegressor) -> None:
    (effect,) = model.partial_dependence("temperature")
    assert effect.describe() == "falls with it"
    assert not effect.labels
    assert (np.diff(effect.values) > 0).all()
    slope = np.polyfit(effect.values, effect.mean, 1)[0]
    assert slope == pytest.approx(-2, abs=0.3)
    assert (effect.low <= effect.mean + 1e-9).all()
    assert (effect.mean <= effect.high + 1e-9).all()


def test_the_report_has_the_effects_of_drivers(model: TableRegressor) -> None:
    importance = model.record_.importance
    assert importance is not None
    drivers = {name for each in importance.groups if each.is_driver for name in each.columns}
    assert {"when", "temperature"} <= drivers
    assert {effect.column for effect in importance.effects} == drivers
    words = {each.columns[0]: each.effect for each in importance.groups}
    assert words["when"].startswith("highest for 1")  # by the hour; other parts of the time hardly matter
    assert words["temperature"] == "falls with it"


def test_effects_of_unknown_columns_and_of_other_learners_are_errors(model: TableRegressor) -> None:
    with pytest.raises(InputError, match="column must be one of when, weather, temperature, holiday, got 'rentals'"):
        model.partial_dependence("rentals")
    other = fitted(RescaledRegressor(PackingRegressor()))
    with pytest.raises(InputError, match="the learner must be a MetricRegressor, got a RescaledRegressor"):
        other.partial_dependence("when")
    assert other.record_.importance is None


def test_importances_have_the_names_of_columns_before_and_after_loading(
    model: TableRegressor, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("saved") / "model"
    model.save(path)
    loaded = ellipack.load(path)
    for each in (model, loaded):
        measured = column_importances(each._fitted_run)
        assert measured is not None
        assert {name for group in measured.groups for name in group.columns} == {
            "when", "weather", "temperature", "holiday",
        }  # fmt: skip
    assert loaded.partial_dependence("when")[0].mean.tolist() == model.partial_dependence("when")[0].mean.tolist()
