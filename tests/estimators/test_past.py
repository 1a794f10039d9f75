"""Predictions of the next row from the features and the past, in `MetricRegressor`."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ellipack
from ellipack import KeyedRegressor, MetricConfig, MetricRegressor
from ellipack.errors import DomainError, InputError, KindError, ShapeError
from ellipack.learners.aggregation import regret_bound
from ellipack.validation import Floats, Ints
from tests.strategies import seeds

QUICK = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,), validation_points=24, pool=100)

Stream = tuple[Floats, Floats, Ints]


def waves(n: int, seed: int = 0) -> Stream:
    """The label depends on the features and on the two labels before; three keys in turn."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), np.zeros(n)
    for t in range(2, n):
        y[t] = 1.6 * y[t - 1] - 0.8 * y[t - 2] + np.sin(X[t, 0]) + 0.1 * rng.normal()
    return X, y, np.arange(n) % 3


def levels(n: int, seed: int = 0) -> Stream:
    """Forty keys, in the last column, with levels of their own that move slowly, in random order."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(40, size=n)
    moving = 3 * rng.normal(size=40) + np.cumsum(0.05 * rng.normal(size=(n, 40)), axis=0)
    X = np.column_stack([rng.normal(size=n), keys])
    return X, moving[np.arange(n), keys] + X[:, 0], keys


def noise(n: int, seed: int = 0) -> Stream:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.normal(size=n), rng.integers(3, size=n)


def late_error(predictions: Floats, y: Floats) -> float:
    half = len(y) // 2
    return float(np.sqrt(np.mean((predictions[half:] - y[half:]) ** 2)))


def new(**parameters: Any) -> MetricRegressor:
    return MetricRegressor(n_jobs=1, config=QUICK, **parameters)


# ---- What the past is worth


def test_the_past_helps_where_labels_depend_on_earlier_ones() -> None:
    X, y, _ = waves(800)
    plain, past = new(past=False), new()
    assert late_error(past.progressive(X, y), y) < 0.3 * late_error(plain.progressive(X, y), y)
    assert past.past_gain_ > 0.8
    assert plain.past_gain_ == 0.0
    assert plain.past_errors_ is None


def test_the_past_of_the_same_key_helps_more() -> None:
    X, y, _ = levels(1200)
    errors = [late_error(new(**each).progressive(X[:, :1], y), y) for each in ({"past": False}, {})]
    keyed = new(by="shop")
    by_key = late_error(keyed.progressive(X[:, :1], y, keys=X[:, 1]), y)
    assert by_key < 0.3 * min(errors)


@pytest.mark.parametrize("make", [noise, waves, levels])
def test_predictions_of_rows_that_need_not_follow_ignore_the_past(make: Callable[[int], Stream]) -> None:
    X, y, _ = make(300)
    plain, past, keyed = (new(past=False), new(), new(by=1))
    for learner in (plain, past, keyed):
        learner.fit(X, y)
    expected = plain.predict(X[::-1])
    assert past.predict(X[::-1]).tobytes() == expected.tobytes()
    assert keyed.predict(X[::-1]).tobytes() == expected.tobytes()
    assert plain.predict_next(X).tobytes() == plain.predict(X).tobytes()


@pytest.mark.parametrize("seed", range(3))
def test_on_noise_the_past_hardly_hurts(seed: int) -> None:
    X, y, _ = noise(1500, seed)
    errors = [late_error(new(past=past).progressive(X, y), y) for past in (False, True)]
    assert errors[1] <= 1.01 * errors[0]


@pytest.mark.parametrize("seed", range(5))
def test_the_theorem_bounds_the_loss_by_the_past(seed: int) -> None:
    """On a stream that punishes whoever trusts the past: it helps in one phase, and misleads in the next."""
    rng = np.random.default_rng(seed)
    n, X = 600, rng.normal(size=(600, 1))
    y, sign = np.zeros(n), 1.0
    learner, rows = new(), []
    for t in range(n):
        if t in (40, 90, 200, 450):
            sign = -sign
        y[t] = 0.5 * X[t, 0] + sign * (y[t - 1] if t else 0.0) * 0.9 + 0.1 * rng.normal()
        alone = learner.predict(X[t : t + 1])[0] if t else 0.0
        rows.append((alone, learner.progressive(X[t : t + 1], y[t : t + 1])[0]))
    without, both = (np.sum((column - y) ** 2) for column in np.array(rows).T)
    errors = learner.past_errors_
    assert errors is not None
    assert errors.without_past == pytest.approx(without)
    assert errors.with_past == pytest.approx(both)
    # A phase ends in a restart, so that the bound adds up over phases; each prior is at least 0.01.
    scale = 4 * np.ptp(y) ** 2
    bound = sum(
        2 * regret_bound(prior=0.01, squares=scale * without, experts=2, rounds=n, scale=scale, first_scale=scale)
        for _ in learner.history().end
    )
    assert both <= without + bound


# ---- No look-ahead, and the same bits however rows come


@settings(max_examples=15)
@given(st.integers(1, 119), st.sampled_from([{}, {"by": 1}, {"past": 1}]), seeds)
def test_a_label_changes_no_prediction_before_or_at_its_row(at: int, parameters: dict[str, Any], seed: int) -> None:
    X, y, _ = levels(120, seed)
    changed = y.copy()
    changed[at] += 1.5
    one, other = (new(**parameters).progressive(X, labels) for labels in (y, changed))
    assert one[: at + 1].tobytes() == other[: at + 1].tobytes()
    assert at == 119 or one[at + 1 :].tobytes() != other[at + 1 :].tobytes()


@settings(max_examples=10)
@given(st.lists(st.integers(1, 149), max_size=6), st.sampled_from([{}, {"by": 1}, {"past": 8, "by": [0, 1]}]), seeds)
def test_batches_have_the_same_bits(cuts: list[int], parameters: dict[str, Any], seed: int) -> None:
    X, y, _ = levels(150, seed)
    whole, parts, rows = new(**parameters), new(**parameters), new(**parameters)
    expected = whole.progressive(X, y)
    edges = [0, *sorted(set(cuts)), 150]
    pieces = [parts.progressive(X[a:b], y[a:b]) for a, b in pairwise(edges)]
    assert np.concatenate(pieces).tobytes() == expected.tobytes()
    singly = [rows.progressive(X[t : t + 1], y[t : t + 1])[0] for t in range(150)]
    assert np.array(singly).tobytes() == expected.tobytes()
    assert rows.predict_next(X[:5]).tobytes() == whole.predict_next(X[:5]).tobytes()


@pytest.mark.parametrize("parameters", [{}, {"by": 1}, {"by": [0, 1], "past": 2}])
def test_a_loaded_model_continues_with_the_same_bits(parameters: dict[str, Any], tmp_path: Any) -> None:
    X, y, _ = levels(300)
    learner = new(**parameters).fit(X[:200], y[:200])
    learner.save(tmp_path / "model")
    loaded = ellipack.load(tmp_path / "model")
    assert isinstance(loaded, MetricRegressor)
    assert loaded.get_params()["by"] == parameters.get("by")
    assert loaded.predict_next(X[200:]).tobytes() == learner.predict_next(X[200:]).tobytes()
    assert loaded.progressive(X[200:], y[200:]).tobytes() == learner.progressive(X[200:], y[200:]).tobytes()


@pytest.mark.parametrize("parameters", [{}, {"by": 1}])
def test_features_may_be_added(parameters: dict[str, Any]) -> None:
    X, y, _ = levels(240)
    narrow = new(**parameters).fit(X[:100], y[:100])
    expected = narrow.predict_next(X[100:110])
    narrow.add_features([1.0])
    wider = np.column_stack([X, np.zeros(240)])
    assert narrow.predict_next(wider[100:110]).tolist() == pytest.approx(expected.tolist(), abs=1e-9)
    wider[100:, 2] = np.sin(np.arange(140))
    labels = y[100:] + 10 * wider[100:, 2]
    assert late_error(narrow.progressive(wider[100:], labels), labels) < 0.6 * np.std(labels)


# ---- Rows that follow


@pytest.mark.parametrize("parameters", [{}, {"by": 1}])
def test_predictions_stand_in_for_unknown_labels(parameters: dict[str, Any]) -> None:
    X, y, _ = levels(260)
    learner = new(**parameters).fit(X[:200], y[:200])
    expected = []
    known = np.full(60, np.nan)
    known[::7] = y[200::7]
    filled = known.copy()
    for t in range(60):  # each row is predicted after the labels before it, known or stood in for
        prediction = learner.predict_next(X[200 : 201 + t], labels=np.append(filled[:t], np.nan))[-1]
        expected.append(prediction)
        filled[t] = prediction if np.isnan(known[t]) else known[t]
    assert learner.predict_next(X[200:], labels=known).tolist() == expected
    follower = learner.follow()
    parts = [follower.predict_next(X[200:230], labels=known[:30]), follower.predict_next(X[230:], labels=known[30:])]
    assert np.concatenate(parts).tolist() == expected


def test_the_prediction_of_the_next_row_is_that_of_progressive() -> None:
    X, y, _ = waves(150)
    learner = new().fit(X[:100], y[:100])
    following = learner.predict_next(X[100:], labels=y[100:])
    # Within a phase only the past changes the prediction of the first row.
    assert following[0] == learner.progressive(X[100:101], y[100:101])[0]


def test_an_outlier_does_not_enter_the_past() -> None:
    X, y, _ = waves(150)
    clean, dirty = new().fit(X[:100], y[:100]), new().fit(X[:100], y[:100])
    dirty.partial_fit(X[100:101], [1e9])
    # The round counts, so that all rows are a little older.
    assert dirty.predict_next(X[101:105]).tolist() == pytest.approx(clean.predict_next(X[101:105]).tolist(), abs=0.02)


# ---- Keys, names and errors


def test_keys_by_name_by_number_and_given_apart_are_the_same() -> None:
    X, y, keys = levels(200)
    frame = pd.DataFrame(X, columns=["x", "shop"])
    expected = new(by=1).progressive(X, y)
    assert new(by="shop").progressive(frame, y).tobytes() == expected.tobytes()
    assert new(by=["shop"]).progressive(frame, y).tobytes() == expected.tobytes()
    assert new(by="anything").progressive(X, y, keys=keys).tobytes() == expected.tobytes()
    texts = np.array([f"shop {key}" for key in keys])
    assert new(by="anything").progressive(X, y, keys=texts).tobytes() == expected.tobytes()


def test_the_metric_with_the_past_has_names() -> None:
    X, y, _ = waves(200)
    learner = new(by=1).fit(pd.DataFrame(X, columns=["wind", "site"]), y)
    assert learner.key_name_ == "1"
    names = learner.past_feature_names_
    assert names[2:5] == ["label, 1 row ago", "label, 2 rows ago", "label, 3 rows ago"]
    assert names[-2:] == ["wind", "site"]
    assert learner.past_metric_ is not None
    assert learner.past_directions_ is not None
    assert learner.past_metric_.dimension == len(names) == learner.past_directions_.shape[1]
    leading = np.abs(learner.past_directions_[0] * np.append(np.std(y), 1).max())
    assert names[int(leading.argmax())] in {*names[:5]}


@pytest.mark.parametrize(
    ("parameters", "given", "message"),
    [
        ({"past": 9}, {}, "past must be an integer from 0 to 8, got 9"),
        ({"past": -1}, {}, "past must be an integer from 0 to 8, got -1"),
        ({"past": 2.0}, {}, "past must be an integer"),
        (
            {"by": 7},
            {},
            "the number of a column, from 0 to 1, got 7; or pass the values of the keys as keys=",
        ),
        (
            {"by": "shop"},
            {},
            "by must be the number of a column: X has no names, got 'shop'; or pass the values of the keys as keys=",
        ),
        ({"by": []}, {}, "by must be the name or number of a column, or a list of them"),
        ({"by": 1.5}, {}, "by must be the name or number of a column, or a list of them, got 1.5"),
        ({"by": False}, {}, "by must be the name or number of a column, or a list of them, got False"),
        ({"by": [0, True]}, {}, "by must be the name or number of a column, or a list of them, got "),
        ({}, {"keys": np.zeros(40)}, "keys need a name"),
        ({"by": 0}, {"keys": np.zeros(39)}, "keys must have one entry per row, 40, got shape"),
        ({"by": 0}, {"keys": np.zeros((40, 1, 1))}, "a column of keys must have one dimension"),
    ],
)
def test_invalid_parameters_and_keys_are_refused(
    parameters: dict[str, Any], given: dict[str, Any], message: str
) -> None:
    X, y, _ = waves(40)
    learner = new(**parameters)
    with pytest.raises(InputError, match=message):
        learner.fit(X, y, **given)
    assert not hasattr(learner, "state_")


def test_invalid_labels_of_following_rows_are_refused() -> None:
    X, y, _ = waves(40)
    learner = new().fit(X, y)
    with pytest.raises(InputError, match="labels must have one entry per row, 2, got shape"):
        learner.predict_next(X[:2], labels=[1.0])
    with pytest.raises(InputError, match="labels must be at most 1e\\+60 in size, or NaN, got 1e\\+61"):
        learner.predict_next(X[:2], labels=[1.0, 1e61])


def test_a_follower_may_be_shared_by_threads() -> None:
    X, y, _ = levels(300)
    learner = MetricRegressor(by=1, n_jobs=1, config=MetricConfig(max_keys=4, validation_points=24, pool=100))
    follower = learner.fit(X[:200], y[:200]).follow()
    with ThreadPoolExecutor(4) as pool:
        parts = [pool.submit(follower.predict_next, X[200 + k : 201 + k]) for k in range(100)]
        assert all(np.isfinite(part.result()).all() for part in parts)
    again = pickle.loads(pickle.dumps(follower))
    assert again.predict_next(X[:5]).tolist() == follower.predict_next(X[:5]).tolist()
    learner.partial_fit(X[200:201], y[200:201])
    with pytest.raises(InputError, match="the learner has learned more rows"):
        follower.predict_next(X[:1])


@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("rows", [7, 9, 11])
def test_a_follower_ends_when_the_learner_learns_on_also_at_the_end_of_a_phase(rows: int, past: bool) -> None:
    X, y, _ = levels(20)
    learner = new(past=past).fit(X[:rows], y[:rows])
    assert (learner.state_.phase.end == rows + 1) == (rows != 9)
    follower = learner.follow()
    learner.partial_fit(X[rows : rows + 1], y[rows : rows + 1])
    with pytest.raises(InputError, match="the learner has learned more rows"):
        follower.predict_next(X[:1])


@pytest.mark.parametrize("make", [MetricRegressor, lambda: KeyedRegressor(by=1)])
def test_late_rows_with_an_invalid_past_are_refused(make: Callable[[], MetricRegressor | KeyedRegressor]) -> None:
    X, y, _ = levels(30)
    learner = make().fit(X, y)
    made = learner.predict_each(X[:2])
    width = made.past.shape[1]
    with pytest.raises(ShapeError, match=rf"past must be {width} features of each of 2 rows, got shape \(1, {width}\)"):
        learner.learn_late(X[:2], y[:2], made._replace(past=made.past[:1]))
    for value in (np.nan, 1e62):
        with pytest.raises(DomainError, match="past must be finite and at most 1e\\+61 in size, got"):
            learner.learn_late(X[:2], y[:2], made._replace(past=np.full_like(made.past, value)))


@pytest.mark.parametrize("is_fitted", [False, True])
@pytest.mark.parametrize("count", [0, 3, 9])
def test_late_rows_with_a_wrong_number_of_keys_are_refused(count: int, is_fitted: bool) -> None:
    X, y, keys = levels(30)
    learner = new(by=1).fit(X, y) if is_fitted else new(by=1)
    rounds, made = learner.n_rounds, learner.predict_each(X[:5], keys=keys[:5])
    message = rf"keys must have one entry per row, 5, got shape \({count},\)"
    with pytest.raises(ShapeError, match=message):
        learner.predict_each(X[:5], keys=keys[:count])
    with pytest.raises(ShapeError, match=message):
        learner.learn_late(X[:5], y[:5], made, keys=keys[:count])
    assert learner.n_rounds == rounds


def test_by_and_past_may_not_change_after_fit() -> None:
    X, y, _ = levels(60)
    for before, after in ((None, 1), (1, None)):
        learner = new(by=before).fit(X, y)
        names = learner.past_feature_names_
        learner.set_params(by=after, past=1)
        with pytest.raises(InputError, match="by cannot be set or removed after fit"):
            learner.partial_fit(X, y)
        assert learner.past_metric_ is not None
        assert len(learner.past_feature_names_) == learner.past_metric_.dimension == len(names)


def test_keys_of_data_frames_keep_their_types() -> None:
    X, y, keys = levels(200)
    large = pd.DataFrame({"x": X[:, 0], "shop": 2**60 + keys})
    learner = new(by="shop").fit(large, y)
    assert len(learner.state_.core.past_features().keys) == len(set(keys.tolist()))
    texts = pd.DataFrame({"store": [f"s{k}" for k in keys], "item": pd.array([None] * 200, dtype="string")})
    assert np.isfinite(new(by=["store", "item"]).progressive(X, y, keys=texts)).all()


@pytest.mark.parametrize("make", [new, lambda by: KeyedRegressor(by=by, pooled=new())])
@pytest.mark.parametrize("kind", [object, "category", "string"])
def test_keys_that_are_text_are_passed_apart(make: Callable[..., Any], kind: Any) -> None:
    X, y, keys = waves(40)
    shop = pd.Series(keys.astype(int).astype(str), dtype=kind)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(shop=shop)
    message = r"X must hold real numbers, got .*column 'shop'; .*; keys that are text are passed as keys="
    for by in ("shop", 2):
        with pytest.raises(KindError, match=message):
            make(by=by).fit(frame, y)
    assert make(by="shop").fit(frame[["a", "b"]], y, keys=shop).n_features_in_ == 2
