"""Checks of River, and the contract of its regressors."""

import copy
import math
import pickle
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river import base, checks, compose, datasets, evaluate, metrics, preprocessing, stream

from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig
from ellipack.errors import DomainError, EllipackError, InputError, NonFiniteError
from ellipack.river import (
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.river.base import RiverRegressor
from ellipack.validation import Floats
from tests.strategies import seeds

Rows = list[dict[Hashable, Any]]

QUICK = MetricConfig(growth=3.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
LEARNERS: dict[str, Callable[[], RiverRegressor[Any]]] = {
    "practical": lambda: MetricRegressor(config=QUICK),
    "practical, two views": lambda: MetricRegressor(views=2, neighbors=8, config=QUICK),
    "packing": PackingRegressor,
    "packing, as printed": lambda: PackingRegressor(keep_founding_label=False),
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), anchors=30)),
    "tree": lambda: LocallyAdaptiveRegressor(levels=4),
    "dimension": IntrinsicDimensionRegressor,
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def made_up(n: int = 80, seed: int = 0) -> tuple[Rows, list[float]]:
    """Return rows whose features appear late, disappear and are 0 at times, and labels."""
    rng = np.random.default_rng(seed)
    rows: Rows = []
    for t, values in enumerate(rng.normal(size=(n, 4)) * [1.0, 1e4, 1e-4, 1.0]):
        row: dict[Hashable, Any] = dict(zip("abcd", values.tolist(), strict=True))
        if t < n // 3:
            del row["c"]
        if rng.random() < 0.3:
            row["b"] = 0
        if rng.random() < 0.3:
            del row["d"]
        rows.append(row)
    return rows, [100 + 10 * math.sin(row.get("a", 0)) + 1e4 * row.get("c", 0) for row in rows]


@cache
def _learned(make: Callable[[], RiverRegressor[Any]]) -> RiverRegressor[Any]:
    model = make()
    for x, y in zip(*made_up(), strict=True):
        model.learn_one(x, y)
    return model


def learned(make: Callable[[], RiverRegressor[Any]]) -> RiverRegressor[Any]:
    """Return a model after 80 rows."""
    return copy.deepcopy(_learned(make))


def probes(model: RiverRegressor[Any]) -> list[float]:
    return [model.predict_one(x) for x in made_up(20, seed=1)[0]]


def river_checks() -> Iterator[Any]:
    models: dict[str, base.Estimator] = {
        "practical": MetricRegressor(config=QUICK),
        "packing": PackingRegressor(),
        "phased": PhasedRegressor(),
        "tree": LocallyAdaptiveRegressor(levels=3),
        "dimension": IntrinsicDimensionRegressor(),
    }
    for name, model in models.items():
        for check in checks.yield_checks(model):
            yield pytest.param(model, check, id=f"{name}-{check.__name__}")


@pytest.mark.parametrize(("model", "check"), list(river_checks()))
def test_checks_of_river(model: RiverRegressor[Any], check: Callable[[base.Estimator], None]) -> None:
    assert not model._unit_test_skips()
    check(model.clone())


@learners
@settings(max_examples=8)
@given(seeds, st.data())
def test_single_rows_and_batches_give_the_same_bits(
    make: Callable[[], RiverRegressor[Any]], seed: int, data: st.DataObject
) -> None:
    rows, y = made_up(40, seed)
    one, many = make(), make()
    for x, label in zip(rows, y, strict=True):
        one.learn_one(x, label)
    edges = sorted({0, 40, *data.draw(st.lists(st.integers(1, 39), max_size=4))})
    for start, stop in pairwise(edges):
        many.learn_many(pd.DataFrame(rows[start:stop]).fillna(0.0), pd.Series(y[start:stop]))
    assert many.feature_names == one.feature_names
    assert probes(many) == probes(one)
    frame = pd.DataFrame(made_up(20, seed=1)[0], index=range(5, 25)).fillna(0.0)
    predicted = many.predict_many(frame)
    assert predicted.tolist() == probes(one)
    assert predicted.index.tolist() == list(range(5, 25))


@learners
def test_missing_features_equal_zeros(make: Callable[[], RiverRegressor[Any]]) -> None:
    rows, y = made_up()
    plain, padded = make(), make()
    for x, label in zip(rows, y, strict=True):
        plain.learn_one({name: value for name, value in x.items() if value != 0}, label)
        padded.learn_one(dict.fromkeys("zyabcd", 0) | x, label)
    assert padded.feature_names == plain.feature_names == ["a", "b", "d", "c"]
    assert probes(padded) == probes(plain)


@learners
def test_the_order_of_keys_does_not_matter(make: Callable[[], RiverRegressor[Any]]) -> None:
    rows, y = made_up()
    plain, turned = make(), make()
    for x, label in zip(rows, y, strict=True):
        back = dict(reversed(x.items()))
        assert plain.predict_one(x) == turned.predict_one(back)
        plain.learn_one(x, label)
        turned.learn_one(back, label)


@learners
def test_a_prediction_does_not_change_what_is_learned(make: Callable[[], RiverRegressor[Any]]) -> None:
    rows, y = made_up(200)
    others = [{name: value + 0.25 for name, value in x.items()} for x in rows]  # that are never learned
    asked, silent, elsewhere = make(), make(), make()
    for t, (x, label) in enumerate(zip(rows, y, strict=True)):
        asked.predict_one(x)
        asked.learn_one(x, label)
        silent.learn_one(x, label)
        elsewhere.predict_one(others[t // 2])
        elsewhere.predict_one(x)
        elsewhere.predict_one(others[t // 3])
        elsewhere.learn_one(x, label)
    assert probes(asked) == probes(silent) == probes(elsewhere)


@learners
@pytest.mark.parametrize("at", [0, 1, 30])
def test_pickles_and_copies_continue_with_the_same_bits(make: Callable[[], RiverRegressor[Any]], at: int) -> None:
    rows, y = made_up()
    straight, stopped = make(), make()
    for x, label in zip(rows[:at], y[:at], strict=True):
        stopped.learn_one(x, label)
        stopped.predict_one(x)
    twins = [pickle.loads(pickle.dumps(stopped)), copy.deepcopy(stopped), stopped.clone(include_attributes=True)]
    for x, label in zip(rows, y, strict=True):
        straight.learn_one(x, label)
    for twin in twins:
        for x, label in zip(rows[at:], y[at:], strict=True):
            twin.learn_one(x, label)
        assert probes(twin) == probes(straight)
    assert probes(stopped.clone()) == [0.0] * 20


@learners
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (math.nan, NonFiniteError, "feature 'a' must be a finite number, got nan"),
        (-math.inf, NonFiniteError, "feature 'a' must be a finite number, got -inf"),
        (np.float32("nan"), NonFiniteError, "feature 'a' must be a finite number, got "),
        ("1.5", InputError, "feature 'a' must be a number, got '1.5'"),
        (None, InputError, "feature 'a' must be a number, got None"),
        (1j, InputError, "feature 'a' must be a number, got 1j"),
        ([1.0], InputError, r"feature 'a' must be a number, got \[1.0\]"),
        (10**400, EllipackError, "feature 'a' must be "),
    ],
)
def test_invalid_features_are_refused_by_name_and_change_nothing(
    make: Callable[[], RiverRegressor[Any]], value: object, error: type[Exception], message: str
) -> None:
    model = learned(make)
    before = pickle.dumps(model)
    whole = {"b": 1.0, "c": 1.0, "d": 1.0}
    frame = pd.DataFrame([{**whole, "a": 1.0}, {**whole, "a": value}], dtype=object)
    for x in ({"a": value, **whole}, {"new": 1.0, "a": value}):
        with pytest.raises(error, match=message):
            model.learn_one(x, 1.0)
        with pytest.raises(error, match=message):
            model.predict_one(x)
        with pytest.raises(error, match=message):
            model.learn_many(frame, pd.Series([1.0, 2.0]))
    assert pickle.dumps(model) == before
    with pytest.raises(error, match="feature 'unheard of' must be "):
        model.predict_one({"unheard of": value})


@learners
@pytest.mark.parametrize("y", [math.nan, math.inf, None, "3", [1.0]])
def test_invalid_labels_are_refused_and_change_nothing(make: Callable[[], RiverRegressor[Any]], y: Any) -> None:
    model = learned(make)
    before = pickle.dumps(model)
    with pytest.raises(EllipackError, match="y must "):
        model.learn_one({"a": 1.0, "new": 2.0}, y)
    with pytest.raises(EllipackError, match="y must "):
        model.learn_many(pd.DataFrame([{"a": 1.0, "new": 2.0}]), pd.Series([y]))
    assert pickle.dumps(model) == before


def test_the_practical_learner_names_values_that_are_too_large() -> None:
    model = learned(LEARNERS["practical"])
    with pytest.raises(DomainError, match=r"feature 'a' must be at most 1e\+140 in size, got 1e\+200"):
        model.learn_one({"a": 1e200}, 1.0)
    with pytest.raises(DomainError, match=r"y must be at most 1e\+60 in size, got -1e\+100"):
        model.learn_one({"a": 1.0}, -1e100)
    with pytest.raises(DomainError, match=r"y must be at most 1e\+60 in size, got 1e\+100"):
        model.learn_many(pd.DataFrame({"a": [1.0]}), pd.Series([1e100]))


@pytest.mark.parametrize("make", [PackingRegressor, PhasedRegressor])
def test_the_papers_learners_accept_any_finite_values(make: Callable[[], RiverRegressor[Any]]) -> None:
    model = make()
    for t in range(30):
        model.learn_one({"a": 1e308 * (-1) ** t, "b": 1e-308 * t, "c": 7.0}, 1e308 * (-1) ** (t // 2))
        assert math.isfinite(model.predict_one({"a": 1.7e308, "b": -1.7e308}))


@pytest.mark.parametrize("number", [True, np.bool_(True), np.int8(1), np.float32(1.0), Decimal(1), 1])
def test_numbers_of_any_type_are_accepted(number: Any) -> None:
    rows, y = made_up(30)
    plain, fancy = PackingRegressor(), PackingRegressor()
    for x, label in zip(rows, y, strict=True):
        plain.learn_one({**x, "flag": 1.0}, label)
        fancy.learn_one({**x, "flag": number}, label)
    assert probes(plain) == probes(fancy)


@learners
def test_predictions_and_attributes_before_the_first_row(make: Callable[[], RiverRegressor[Any]]) -> None:
    model = make()
    assert model.predict_one({"a": 1.0}) == 0.0
    assert model.predict_many(pd.DataFrame({"a": [1.0, 2.0]})).tolist() == [0.0, 0.0]
    assert model.predict_many(pd.DataFrame({"a": []}, dtype=float)).tolist() == []
    assert (model.metric_, model.n_centers, model.effective_rank) == (None, 0, 0)
    assert model.feature_names == []
    assert model.feature_weights == {}
    model.learn_many(pd.DataFrame({"a": []}, dtype=float), pd.Series([], dtype=float))
    assert model.n_centers == 0


@learners
def test_rows_without_features_are_accepted(make: Callable[[], RiverRegressor[Any]]) -> None:
    model = make()
    for _ in range(10):
        model.learn_one({}, 5.0)
    assert model.predict_one({}) == pytest.approx(5.0)
    model.learn_one({"a": 3.0}, 9.0)
    model.learn_one({"b": 2.0, "a": 3.0}, 9.0)
    assert model.feature_names == ["a", "b"]
    assert math.isfinite(model.predict_one({"a": 3.0}))


@learners
def test_attributes(make: Callable[[], RiverRegressor[Any]]) -> None:
    model = learned(make)
    assert model.metric_ is not None
    assert model.metric_.dimension == len(model.feature_names) == 4
    assert list(model.feature_weights) == model.feature_names
    assert sum(model.feature_weights.values()) == pytest.approx(1)
    assert 1 <= model.effective_rank <= 4
    assert model.n_centers >= 1


def test_a_late_feature_is_learned_and_named() -> None:
    rng = np.random.default_rng(0)
    model, errors = MetricRegressor(), []
    for t, (a, b, late) in enumerate(rng.normal(size=(2000, 3)).tolist()):
        x = {"a": a, "b": b} if t < 500 else {"a": a, "b": b, "late": 1e5 * late}
        y = a if t < 500 else a + 5 * late
        errors.append(model.predict_one(x) - y)
        model.learn_one(x, y)
    assert np.std(errors[1500:]) < 0.5
    assert max(model.feature_importances, key=model.feature_importances.__getitem__) == "late"


@learners
def test_pipelines_and_evaluation(make: Callable[[], RiverRegressor[Any]]) -> None:
    numbers = compose.SelectType(int, float) | preprocessing.StandardScaler()
    words = compose.SelectType(str) | preprocessing.OneHotEncoder()
    rows, y = made_up(120)
    named = [({**x, "word": "abc"[t % 3]}, label) for t, (x, label) in enumerate(zip(rows, y, strict=True))]
    pipeline = (numbers + words) | make()
    score = evaluate.progressive_val_score(named, pipeline, metrics.MAE())
    assert math.isfinite(score.get())
    assert "word_c" in list(pipeline.steps.values())[-1].feature_names


@learners
def test_delayed_labels(make: Callable[[], RiverRegressor[Any]]) -> None:
    data = list(datasets.TrumpApproval().take(60))
    model = make()
    steps = evaluate.iter_progressive_val_score(data, model, metrics.MAE(), delay=5, step=20)
    assert all(math.isfinite(step["MAE"].get()) for step in steps)
    assert model.predict_one(data[0][0]) != 0.0


@learners
def test_threads_may_predict_at_the_same_time(make: Callable[[], RiverRegressor[Any]]) -> None:
    model = learned(make)
    rows = made_up(200, seed=2)[0]
    expected = [model.predict_one(x) for x in rows]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(model.predict_one, rows)) == expected


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MetricRegressor(max_centers=3), "max_centers must be an integer from 16 to 2147483647, got 3"),
        (PhasedRegressor(alpha=-1.0), "alpha must be > 0, got -1"),
        (PhasedRegressor(gop=GradientOuterProduct(anchors=0)), "anchors must be an integer >= 1"),
    ],
)
def test_invalid_parameters_are_refused(model: RiverRegressor[Any], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        model.learn_one({"a": 1.0}, 1.0)
    assert model.feature_names == []


def test_duplicate_column_names_are_refused() -> None:
    frame = pd.DataFrame(np.ones((2, 2)), columns=["a", "a"])
    with pytest.raises(EllipackError, match="X must have different names of columns"):
        PackingRegressor().learn_many(frame, pd.Series([1.0, 2.0]))


def test_names_of_different_types_are_sorted() -> None:
    rows: Rows = [{3: 1.0, "b": 2.0, ("t", 1): 3.0}, {("t", 1): 3.0, "b": 2.0, 3: 1.0}]
    names = []
    for x in rows:
        model = PackingRegressor()
        model.learn_one(x, 1.0)
        names.append(model.feature_names)
    assert names[0] == names[1]


def test_error_on_a_real_stream() -> None:
    error, mean = 0.0, 0.0
    model, seen = MetricRegressor(), [0.0]
    for t, (x, y) in enumerate(stream.iter_array(*_waves())):
        if t > 500:
            error += abs(model.predict_one(x) - y)
            mean += abs(float(np.mean(seen)) - y)
        model.learn_one(x, y)
        seen.append(y)
    assert error < 0.2 * mean


def _waves() -> tuple[Floats, Floats]:
    X = np.random.default_rng(0).uniform(-2, 2, size=(1000, 3))
    return X, np.sin(2 * X[:, 1]) + 0.1 * X[:, 0]


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize(
    ("make", "limit"), [(MetricRegressor, 5000), (PackingRegressor, 5000), (PhasedRegressor, 1000)]
)
def test_a_frame_with_too_many_features_is_not_learned(
    make: Callable[[], RiverRegressor[Any]], limit: int, pending: bool
) -> None:
    values = np.zeros((3, limit + 1))
    values[0, :2], values[1, 2:] = 1.0, 1.0
    model = make()
    if pending:
        model.predict_interval_one({0: 1.0})
    with pytest.raises(DomainError, match=f"at most {limit} features"):
        model.learn_many(pd.DataFrame(values), pd.Series([1.0, 2.0, 3.0]))
    assert model.feature_names == []
    assert model.n_centers == 0
