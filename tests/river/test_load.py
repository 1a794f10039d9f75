import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import GradientOuterProduct, LocalSlopes, Metric, MetricConfig, serialization
from ellipack.errors import InputError, ModelFileError
from ellipack.river import (
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
    load,
)
from ellipack.serialization import Archive

Learner = IntrinsicDimensionRegressor | LocallyAdaptiveRegressor | MetricRegressor | PackingRegressor | PhasedRegressor

QUICK = MetricConfig(growth=2.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
LEARNERS: dict[str, Callable[[], Learner]] = {
    "metric": lambda: MetricRegressor(views=2, neighbors=8, config=QUICK),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8))),
    "tree": LocallyAdaptiveRegressor,
    "dimension": lambda: IntrinsicDimensionRegressor("noisy"),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def rows(count: int) -> list[tuple[dict[str | int, float], float]]:
    """Return rows in which features appear late, and a label that depends on them."""
    draw = random.Random(0)
    made: list[tuple[dict[str | int, float], float]] = []
    for t in range(count):
        x: dict[str | int, float] = {"a": draw.gauss(0, 1), 7: draw.gauss(100, 30)}
        if t >= count // 3:
            x["late"] = draw.random()
        made.append((x, 3 * x["a"] + x[7] / 10 + 5 * x.get("late", 0.0)))
    return made


@learners
@pytest.mark.parametrize("at", [0, 1, 20, 45])
def test_a_loaded_model_continues_with_the_same_bits(make: Callable[[], Learner], at: int, tmp_path: Path) -> None:
    straight, begun = make(), make()
    stream = rows(90)
    expected = []
    for x, y in stream:
        expected.append(straight.predict_one(x))
        straight.learn_one(x, y)
    for x, y in stream[:at]:
        begun.learn_one(x, y)
    begun.save(tmp_path / "model")
    resumed = load(tmp_path / "model")
    assert type(resumed) is type(begun)
    made = []
    for x, y in stream[at:]:
        made.append(resumed.predict_one(x))
        resumed.learn_one(x, y)
    assert made == expected[at:]
    assert resumed.feature_weights == straight.feature_weights
    resumed.save(tmp_path / "model")
    straight.save(tmp_path / "other")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "other").read_bytes()


def test_other_files_are_refused(tmp_path: Path) -> None:
    ellipack.MetricRegressor().save(tmp_path / "bare")
    with pytest.raises(ModelFileError, match=r"bare holds a MetricRegressor, which ellipack.river cannot load"):
        load(tmp_path / "bare")
    PackingRegressor().save(tmp_path / "river")
    with pytest.raises(ModelFileError, match="a learner must be one of"):
        ellipack.load(tmp_path / "river")
    odd = PackingRegressor()
    odd.learn_one({("a", "b"): 1.0}, 1.0)
    with pytest.raises(ModelFileError, match=r"strings, finite numbers or None to be saved, got \('a', 'b'\)"):
        odd.save(tmp_path / "odd")


@pytest.mark.parametrize("name", [None, True, 7, -0.5, "", "\ud800"])
def test_features_of_any_name_that_is_saved_can_be_loaded(name: object, tmp_path: Path) -> None:
    model = PackingRegressor()
    model.learn_one({name: 1.0, "other": 2.0}, 1.0)
    model.learn_one({name: 2.0, "other": 1.0}, 3.0)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.feature_names == model.feature_names
    assert loaded.predict_one({name: 2.0, "other": 1.0}) == model.predict_one({name: 2.0, "other": 1.0}) == 3.0


@pytest.mark.parametrize("name", ["q", 3, 0.1, True])
def test_names_of_numpy_are_saved_as_the_values_of_python_that_they_equal(name: Any, tmp_path: Path) -> None:
    [given] = np.array([name])
    models = MetricRegressor(), MetricRegressor()
    for model, feature in zip(models, (given, name), strict=True):
        for t in range(3):
            model.predict_one({feature: t, "other": 2.0})
            model.learn_one({feature: t, "other": 2.0}, 1.0)
        model.predict_one({feature: 7.0, "other": 2.0})  # its label has not come yet
        model.save(tmp_path / type(feature).__name__)
    loaded = load(tmp_path / type(given).__name__)
    assert (tmp_path / type(given).__name__).read_bytes() == (tmp_path / type(name).__name__).read_bytes()
    assert loaded.feature_names == models[0].feature_names == models[1].feature_names
    assert [type(each) for each in models[0].feature_names] == [type(each) for each in models[1].feature_names]
    assert loaded.predict_one({given: 7.0}) == models[0].predict_one({name: 7.0})


@pytest.mark.parametrize("name", [float("nan"), float("inf"), 10**400, (1, 2)])
def test_features_whose_name_a_file_cannot_hold_are_refused(name: object, tmp_path: Path) -> None:
    model = PackingRegressor()
    model.learn_one({name: 1.0}, 1.0)
    with pytest.raises(ModelFileError, match="strings, finite numbers or None to be saved, got "):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (MetricRegressor(), "max_centers", 3),
        (MetricRegressor(), "seed", 2**70),
        (MetricRegressor(), "config", "none"),
        (PhasedRegressor(), "alpha", -1.0),
        (PhasedRegressor(), "gop", 3),
        (PhasedRegressor(), "alpha", 0.25),
        (PhasedRegressor(), "gop", GradientOuterProduct(LocalSlopes(8))),
        (PhasedRegressor(), "keep_founding_label", False),
        (PackingRegressor(), "keep_founding_label", False),
    ],
)
def test_a_model_with_an_invalid_or_another_parameter_than_it_learned_with_is_not_saved(
    model: Learner, name: str, value: object, tmp_path: Path
) -> None:
    for x, y in rows(3):
        model.learn_one(x, y)
    setattr(model, name, value)
    with pytest.raises(InputError, match=name):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        (IntrinsicDimensionRegressor(), "labels", "noisy"),
        (LocallyAdaptiveRegressor(), "levels", 2),
        (MetricRegressor(), "neighbors", 4),
        (PackingClassifier(), "clock", "ball"),
        (PackingRegressor(), "keep_founding_label", 1),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_a_changed_parameter_has_the_same_effect_after_loading(
    model: Any, name: str, value: object, tmp_path: Path
) -> None:
    stream = [(x, int(y) % 2) for x, y in rows(300)]
    for x, y in stream[:150]:
        model.learn_one(x, y)
    setattr(model, name, value)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for x, y in stream[150:]:
        assert loaded.predict_one(x) == model.predict_one(x)
        loaded.learn_one(x, y)
        model.learn_one(x, y)


def test_a_model_that_learned_with_a_metric_of_slopes_can_be_saved(tmp_path: Path) -> None:
    model = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8, metric=Metric.identity(1))))
    for value in (0.0, 1.0):
        model.learn_one({"a": value}, value)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict_one({"a": 0.5}) == model.predict_one({"a": 0.5})


@pytest.mark.parametrize(("name", "value"), [("past", 5), ("past", False), ("by", "b")])
def test_a_model_with_another_past_than_it_learned_with_is_refused(name: str, value: object, tmp_path: Path) -> None:
    model = MetricRegressor()
    for t in range(30):
        model.predict_one({"a": t % 7, "b": 1.0})
        model.learn_one({"a": t % 7, "b": 1.0}, float(t))
    model.predict_one({"a": 3.0, "b": 1.0})
    setattr(model, name, value)
    with pytest.raises(InputError, match=f"{name} (must be 3|cannot be set or removed)"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(("before", "after"), [(None, "b"), ("b", None)])
def test_keys_cannot_be_named_or_left_out_after_the_first_row(before: str | None, after: str | None) -> None:
    model = MetricRegressor(by=before)
    model.learn_one({"a": 1.0, "b": 1.0}, 1.0)
    model.by = after
    for call in (model.predict_one, lambda x: model.learn_one(x, 2.0), model.predict_interval_one):
        with pytest.raises(InputError, match="by cannot be set or removed after the first row"):
            call({"a": 1.0, "b": 1.0})


@pytest.mark.parametrize("past", [5, False])
def test_the_past_cannot_change_while_the_first_label_is_not_known(past: int, tmp_path: Path) -> None:
    model = MetricRegressor()
    model.predict_one({"a": 1.0})
    model.past = past
    model.predict_one({"a": 2.0})
    with pytest.raises(InputError, match="past and by must be those of the predictions whose labels are not known"):
        model.save(tmp_path / "model")


@learners
def test_a_restored_model_is_the_saved_one_or_the_one_before(make: Callable[[], Learner], tmp_path: Path) -> None:
    model, other = make(), make()
    for x, y in rows(6):
        model.learn_one({"x": x["a"]}, y)
        other.learn_one({"x": x["a"], "z": x[7]}, y)
    other.predict_interval_one({"x": 1.0, "z": 1.0})
    other.save(tmp_path / "model")
    _, saved = serialization.read(tmp_path / "model")
    before = model.predict_one({"x": 0.5})
    broken = Archive({**saved.facts, "pending": {**saved.facts["pending"], "rows": [1]}}, saved.arrays)
    with pytest.raises(ModelFileError, match="pending"):
        model.restore_state(broken)
    assert (model.feature_names, model.predict_one({"x": 0.5})) == (["x"], before)
    make().save(tmp_path / "empty")
    assert model.restore_state(serialization.read(tmp_path / "empty")[1]).feature_names == []
    assert model.predict_one({"x": 0.5}) == 0.0
