import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners import packing, rescaled
from ellipack.learners.metric import learner
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.predictions import predict
from ellipack.learners.packing import PackingState
from ellipack.learners.rescaled import RescaledState
from ellipack.learners.row_learners import MetricRowLearner, PackingRowLearner
from ellipack.metric import Metric
from ellipack.validation import Floats
from tests.learners.metric.learners import bits, new_state, smooth_stream
from tests.strategies import metrics, seeds


@pytest.mark.parametrize(("views", "max_centers"), [(1, 1000), (2, 1000), (1, 24)])
def test_single_rows_equal_a_batch(views: int, max_centers: int) -> None:
    X, y = smooth_stream(300, 4)
    batch = new_state(3, views, 8, max_centers)
    predicting, silent = (MetricRowLearner(new_state(3, views, 8, max_centers)) for _ in range(2))
    for part, d in ((slice(0, 150), 3), (slice(150, 300), 4)):
        expected = learner.learn(batch, np.ascontiguousarray(X[part, :d]), y[part])
        predictions = []
        for row, label in zip(X[part, :d].tolist(), y[part].tolist(), strict=True):
            predictions.append(predicting.predict(row))
            predicting.learn(row, label)
            silent.learn(row, label)
        assert predictions == expected.tolist()
        assert bits(predicting.state) == bits(silent.state) == bits(batch)
        if d == 3:
            add_features(batch, np.array([2.0]))
            predicting, silent = (each.with_added_features(np.array([2.0])) for each in (predicting, silent))
    probe = np.random.default_rng(1).normal(size=(20, 4))
    assert predicting.predict_rows(probe).tolist() == predict(batch, probe).tolist()
    predicting.learn_rows(X[:9], y[:9])
    learner.learn(batch, X[:9], y[:9])
    assert bits(predicting.state) == bits(batch)


def test_a_prediction_of_another_row_or_round_is_not_reused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    plain, busy = (MetricRowLearner(new_state(2, 1, 8, 100)) for _ in range(2))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        busy.predict(row)
        busy.predict(X[(7 * t) % 60].tolist())
        busy.learn(row, label)
        plain.learn(row, label)
        assert busy.predict(row) == plain.predict(row) == predict(plain.state, [row])[0]


def test_restored_learner_continues() -> None:
    X, y = smooth_stream(100)
    rows, other = MetricRowLearner(new_state(3)), MetricRowLearner(new_state(3))
    rows.learn_rows(X[:80], y[:80])
    other.restore_state(rows.to_archive(), 3)
    for row, label in zip(X[80:].tolist(), y[80:].tolist(), strict=True):
        assert rows.predict(row) == other.predict(row)
        rows.learn(row, label)
        other.learn(row, label)
    assert bits(rows.state) == bits(other.state)


# Rescaled packing.


def new_packing_learner(metric: Metric, keep: bool = True) -> PackingRowLearner:
    return PackingRowLearner(rescaled.init(packing.init(metric), metric.dimension), keep)


def packing_bits(state: RescaledState[PackingState]) -> list[bytes]:
    parts = [*state.inner.core.to_arrays(), state.box.low, state.box.high, state.box.label]
    return [pickle.dumps(part) for part in parts]


def stream_with_outliers(seed: int, n: int, d: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.where(rng.random((n, 1)) < 0.02, 30.0, 1.0)
    X[rng.random(n) < 0.1] = X[0]
    return X, rng.normal(size=n)


@settings(max_examples=25)
@given(metrics(4), seeds, st.booleans())
def test_packing_of_single_rows_equals_a_batch(metric: Metric, seed: int, keep: bool) -> None:
    X, y = stream_with_outliers(seed, 150, metric.dimension)
    batch, predicting, silent = (new_packing_learner(metric, keep) for _ in range(3))
    batch.learn_rows(X, y)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        made = predicting.predict(row)
        assert made == predicting.predict_rows([row])[0]
        predicting.learn(row, label)
        silent.learn(row, label)
    assert packing_bits(predicting.state) == packing_bits(silent.state) == packing_bits(batch.state)
    assert predicting.state.inner.clock == 150


def test_center_found_for_another_row_or_round_is_not_reused() -> None:
    X, y = stream_with_outliers(0, 100, 2)
    plain, busy = new_packing_learner(Metric.identity(2)), new_packing_learner(Metric.identity(2))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        busy.predict(row)
        busy.predict(X[(7 * t) % 100].tolist())
        busy.learn(row, label)
        plain.learn(row, label)
        assert busy.predict(row) == plain.predict(row) == plain.predict_rows([row])[0]


def test_capacity_for_centers_grows() -> None:
    rng = np.random.default_rng(0)
    rows = new_packing_learner(Metric.identity(1))
    for value in rng.uniform(-1, 1, size=4000).tolist():
        rows.learn([value], value)
    assert rows.state.inner.core.size > 64
    assert rows.predict([0.5]) == pytest.approx(0.5, abs=0.1)
