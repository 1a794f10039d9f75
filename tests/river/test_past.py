"""The past in River's `MetricRegressor`: keys, and labels that come late."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import evaluate, metrics

from ellipack import MetricConfig
from ellipack.errors import InputError
from ellipack.river import MetricRegressor, load
from ellipack.river.pending import MAX_PENDING, PendingPrediction, PendingPredictions
from tests.reference.past import ReferencePastLearner

QUICK = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,), validation_points=24, pool=100)

Rows = list[tuple[dict[Any, Any], float]]


def waves(n: int, seed: int = 0) -> Rows:
    """The label depends on the features and on the two labels before."""
    rng = np.random.default_rng(seed)
    y = [0.0, 0.0]
    rows = []
    for _ in range(n):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        y.append(1.6 * y[-1] - 0.8 * y[-2] + np.sin(x["a"]) + 0.1 * float(rng.normal()))
        rows.append((x, float(y[-1])))
    return rows


def arrivals(n: int, delay: int | str, seed: int = 0) -> list[list[int]]:
    """Return which rows get their labels before each row is predicted, and after the last one."""
    rng = np.random.default_rng(seed)
    after = rng.integers(1, 30, size=n) if delay == "random" else np.full(n, int(delay) + 1)
    due: list[list[int]] = [[] for _ in range(n + 40)]
    for t in range(n):
        due[t + int(after[t])].append(t)
    return due


@pytest.mark.parametrize("delay", [0, 1, 24, "random"])
def test_late_rows_are_learned_with_the_past_of_their_prediction(delay: int | str) -> None:
    rows = waves(130)
    model = MetricRegressor(neighbors=8, config=QUICK)
    predictions: list[float] = []
    pasts: list[tuple[float, list[float]]] = []
    learned = []
    for t, due in enumerate(arrivals(len(rows), delay)):
        for late in due:
            model.learn_one(*rows[late])
            learned.append(late)
        if t < len(rows):
            predictions.append(model.predict_one(rows[t][0]))
            pasts.append((predictions[-1], []))
    assert sorted(learned) == list(range(len(rows)))
    assert len(model._pending) == 0
    # The reference learns the rows in the same order, each with the past of its prediction.
    assert model._learner is not None
    history = model._learner.state.phase.summaries
    choices = [phase.choices for phase in history], [phase.past_choices for phase in history]
    reference = ReferencePastLearner(2, 3, 0, choices, neighbors=8, config=QUICK)
    seen: dict[int, list[float]] = {}
    known: list[tuple[int, float, float]] = []
    for t, due in enumerate(arrivals(len(rows), delay)):
        for late in due:
            x, y = rows[late]
            # Without a delay, and only then, the label is learned in the round of the prediction.
            reference.learn(np.array([x["a"], x["b"]]), y, past=seen[late])
            known.append((0, y, seen[late][0]))
        if t < len(rows):
            row = np.array([rows[t][0]["a"], rows[t][0]["b"]])
            seen[t] = reference.past.features(0, reference.plain.predict(row))
            assert reference.past.rounds == known
            expected = reference.predict(row, past=seen[t])
            assert predictions[t] == pytest.approx(expected, abs=1e-7)


def test_river_evaluates_late_labels() -> None:
    rows = waves(400)
    errors = {}
    for delay in (0, 5):
        for past in (False, True):
            model = MetricRegressor(past=past, config=QUICK)
            score = evaluate.progressive_val_score(rows, model, metrics.RMSE(), delay=delay)
            errors[delay, past] = score.get()
    assert errors[0, True] < 0.5 * errors[0, False]
    assert errors[0, True] < errors[5, True] < 1.1 * errors[5, False]


def test_keys_may_be_text() -> None:
    rng = np.random.default_rng(0)
    levels = 5 * rng.normal(size=20)
    rows: Rows = []
    for k in rng.integers(20, size=500):
        x: dict[Any, Any] = {"shop": f"shop {k}", "price": float(rng.normal())}
        rows.append((x, float(levels[k] - x["price"])))
    scores = []
    names: list[Any] = ["shop", ["shop"]]
    for by in names:
        model = MetricRegressor(by=by, config=QUICK)
        scores.append(evaluate.progressive_val_score(rows[:], model, metrics.RMSE()).get())
        assert model.feature_names == ["price"]
    plain: Rows = [({"price": x["price"]}, y) for x, y in rows]
    assert scores[0] == scores[1] < 0.5 * evaluate.progressive_val_score(plain, MetricRegressor(), metrics.RMSE()).get()
    with pytest.raises(InputError, match="x must have the key 'shop', got 'price'"):
        model.predict_one({"price": 1.0})


@pytest.mark.parametrize("by", [None, "b"])
def test_data_frames_and_rows_have_the_same_bits(by: str | None) -> None:
    rows = [({"a": x["a"], "b": float(t % 3)}, y) for t, (x, y) in enumerate(waves(90))]
    frame, labels = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    one, many = (MetricRegressor(by=by, config=QUICK) for _ in range(2))
    for start in range(0, 90, 30):
        expected = [one.predict_one(x) for x, _ in rows[start : start + 30]]
        for x, y in rows[start : start + 30]:
            one.learn_one(x, y)
        part = slice(start, start + 30)
        assert many.predict_many(frame[part]).tolist() == expected
        many.learn_many(frame[part], labels[part])
    assert many.predict_one(rows[0][0]) == one.predict_one(rows[0][0])


def test_pending_predictions_are_saved(tmp_path: Path) -> None:
    rows = waves(80)
    model = MetricRegressor(config=QUICK)
    for t in range(60):
        model.predict_one(rows[t][0])
        if t >= 10:
            model.learn_one(*rows[t - 10])
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert len(loaded._pending) == len(model._pending) == 10
    for each in (model, loaded):
        for row in rows[50:]:
            each.learn_one(*row)
    probe = {"a": 0.3, "b": -0.2}
    assert loaded.predict_one(probe) == model.predict_one(probe)


def test_pending_predictions_are_bounded() -> None:
    pending = PendingPredictions()
    for t in range(MAX_PENDING + 5):
        pending.add({"a": float(t)}, 0, PendingPrediction(t, (1.0,)))
    assert len(pending) == MAX_PENDING
    assert pending.start_learning({"a": 4.0}, 0, -1).past == ()
    assert pending.start_learning({"a": 5.0}, 0, -1).past == (1.0,)


def test_predictions_without_labels_do_not_spoil_recurring_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.zeros(600)
    for t in range(1, 600):
        y[t] = 0.95 * y[t - 1] + 0.3 * rng.normal()
    errors = []
    for extra in (False, True):
        model = MetricRegressor(config=QUICK)
        predictions = []
        for t in range(600):
            x = {"hour": float(t % 24)}
            if extra and 100 <= t < 200:
                model.predict_one({"hour": float(t % 7)})  # what if
            predictions.append(model.predict_one(x))
            model.learn_one(x, float(y[t]))
        errors.append(np.sqrt(np.mean((np.array(predictions) - y)[300:] ** 2)))
    assert errors[1] <= 1.02 * errors[0]


def test_threads_may_predict_while_predictions_are_forgotten() -> None:
    pending, learns = PendingPredictions(), Lock()

    def add(start: int) -> None:
        for t in range(start, start + MAX_PENDING):
            pending.add({"a": float(t)}, 0, PendingPrediction(t, (1.0,)))
            with learns:
                pending.start_learning({"a": float(t - 3)}, 0, t)
                pending.finish_learning(t + 1)

    with ThreadPoolExecutor(4) as pool:
        for each in [pool.submit(add, k * MAX_PENDING) for k in range(4)]:
            each.result()
    assert len(pending) == sum(1 for _ in pending.to_archive(1).facts["rows"]) <= MAX_PENDING


def test_predictions_before_the_first_label_are_saved(tmp_path: Path) -> None:
    rows = waves(60)
    model = MetricRegressor(config=QUICK)
    for x, _ in rows[:24]:
        model.predict_one(x)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for each in (model, loaded):
        for row in rows[:24]:
            each.learn_one(*row)
    assert loaded.predict_one(rows[30][0]) == model.predict_one(rows[30][0])


def test_late_extreme_labels_are_learned() -> None:
    model = MetricRegressor(config=QUICK)
    rows = [({"a": float(t)}, (-1.0) ** t * 1e60) for t in range(30)]
    for t, (x, _) in enumerate(rows):
        model.predict_one(x)
        if t >= 3:
            model.learn_one(*rows[t - 3])
    assert np.isfinite(model.predict_one({"a": 1.0}))


def test_keys_may_have_any_value_and_a_refused_frame_changes_nothing() -> None:
    model = MetricRegressor(by="k", config=QUICK)
    for key in (None, float("nan"), pd.Timestamp("2013-01-01"), ("a", 1), b"x", True, 3):
        model.predict_one({"k": key, "a": 1.0})
        model.learn_one({"k": key, "a": 1.0}, 2.0)
    assert model._learner is not None
    clock = model._learner.state.clock
    frame = pd.DataFrame({"k": ["x", "y"], "a": [1.0, 2.0], "b": [1.0, None]})
    with pytest.raises(InputError):
        model.learn_many(frame, pd.Series([1.0, 2.0]))
    assert model._learner.state.clock == clock
