"""No model sees future labels, and batch models are retrained at the right rows."""

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.linear_model import LinearRegression
from sklearn.linear_model import SGDRegressor

from benchmarks.comparison.adapters import (
    FIRST_TRAINING,
    EllipackAdapter,
    LastLabel,
    MeanLabel,
    PartialFitAdapter,
    PrequentialModel,
    RetrainedAdapter,
    RiverAdapter,
    RunningScaler,
)
from benchmarks.comparison.models import MODELS, TREES, WINDOW, river_amf, river_knn
from benchmarks.comparison.runner import run_model
from ellipack import PackingRegressor, RescaledRegressor
from ellipack.validation import Floats


class Counting:
    """A batch model that predicts the number of its training rows."""

    def fit(self, X: Floats, y: Floats) -> Self:
        assert len(X) == len(y)
        self.rows = len(y)
        return self

    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), float(self.rows))


class MeanOfAll(Counting):
    """A batch model that predicts the mean label."""

    def fit(self, X: Floats, y: Floats) -> Self:
        self.mean = float(y.mean())
        return self

    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), self.mean)


CHEAP: dict[str, Callable[[], PrequentialModel]] = {
    "ours": lambda: EllipackAdapter(RescaledRegressor(PackingRegressor())),
    "incremental": lambda: PartialFitAdapter(SGDRegressor()),
    "river": lambda: RiverAdapter(LinearRegression()),
    "retrained": lambda: RetrainedAdapter(MeanOfAll),
    "mean": MeanLabel,
    "last": LastLabel,
}


def rows(seed: int, n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("name", CHEAP)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), part=st.floats(0, 1))
def test_no_prediction_depends_on_future_labels(name: str, seed: int, part: float) -> None:
    X, y = rows(seed, FIRST_TRAINING + 14)
    changed = int(part * (len(y) - 1))
    other = y.copy()
    other[changed:] += 100.0
    before, _ = run_model(CHEAP[name](), X, y)
    after, _ = run_model(CHEAP[name](), X, other)
    np.testing.assert_array_equal(before[: changed + 1], after[: changed + 1])


@pytest.mark.parametrize("name", CHEAP)
def test_all_models_learn_and_have_a_size(name: str) -> None:
    X, y = rows(0, FIRST_TRAINING + 2)
    model, other = CHEAP[name](), CHEAP[name]()
    predictions, _ = run_model(model, X, y)
    shifted, _ = run_model(other, X, y + 100.0)
    assert predictions[-1] != shifted[-1]
    assert model.saved_bytes() > 0


def test_a_batch_model_is_retrained_on_all_rows_when_they_have_grown_enough() -> None:
    X, y = rows(0, 200)
    predictions, _ = run_model(RetrainedAdapter(Counting), X, y)
    np.testing.assert_allclose(
        predictions[:FIRST_TRAINING], [0.0, *(np.cumsum(y) / np.arange(1, 201))[: FIRST_TRAINING - 1]]
    )
    trained = predictions[FIRST_TRAINING:].astype(int)
    assert trained[0] == FIRST_TRAINING
    starts = np.flatnonzero(np.diff(trained, prepend=0)) + FIRST_TRAINING
    np.testing.assert_array_equal(predictions[starts], starts)  # on all earlier rows
    np.testing.assert_array_equal(starts[1:], np.ceil(1.15 * starts[:-1]))


def test_predictions_do_not_depend_on_rows_per_call() -> None:
    X, y = rows(3, 150)
    together, _ = run_model(RetrainedAdapter(MeanOfAll), X, y)
    singly = RetrainedAdapter(MeanOfAll)
    one_by_one = [singly.predict_then_learn(X[t : t + 1], y[t : t + 1])[0] for t in range(len(y))]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30), st.integers(0, 30))
def test_the_mean_is_that_of_earlier_labels_whatever_the_batches(labels: list[int], cut: int) -> None:
    y = np.array(labels, dtype=np.float64)
    model = MeanLabel()
    predictions = [model.predict_then_learn(part[:, None], part) for part in (y[:cut], y[cut:])]
    expected = [0.0, *(sum(labels[:t]) / t for t in range(1, len(labels)))]
    np.testing.assert_array_equal(np.concatenate(predictions), expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_the_scaler_uses_the_rows_so_far(values: list[float]) -> None:
    running: Any = RunningScaler()
    for value in values:
        running.update(np.array([value]))
    column = np.array(values)
    deviation = column.std() if running._squares > 0 else 1.0
    np.testing.assert_allclose(
        running.transform(column) * deviation, column - column.mean(), rtol=1e-6, atol=1e-6 * (1 + np.abs(column).max())
    )
    np.testing.assert_allclose(
        running.inverse_transform(running.transform(column)), column, atol=1e-9 * (1 + np.abs(column).max())
    )


def test_every_model_has_a_kind_and_settings() -> None:
    for learner in MODELS.values():
        assert learner.kind in ("ours", "paper", "streaming", "batch", "trivial")
        assert learner.settings


@pytest.mark.parametrize("search", ["linear", "graph"])
def test_knn_keeps_the_latest_rows_with_either_search(search: Literal["linear", "graph"]) -> None:
    model = river_knn(search)
    for label in [0.0] * 10 + [1.0] * WINDOW:
        model.learn_one({"x": label}, label)
    assert model.predict_one({"x": 0.0}) == 1.0


def test_a_seed_determines_a_forest() -> None:
    X, y = rows(0, 60)
    one, same, other = (run_model(RiverAdapter(river_amf(seed)), X, y)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert river_amf(1).n_estimators == TREES
