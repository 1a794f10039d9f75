from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.errors import ShapeError
from ellipack.learners.intervals import RowPredictions, empty_predictions
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.sharded_learning import Workers, learn_in_shards
from ellipack.learners.metric.sharding import Sharding
from ellipack.learners.metric.state import MetricState
from ellipack.validation import Floats
from tests.learners.metric.learners import bits, new_state
from tests.strategies import seeds


def stream(rng: np.random.Generator, n: int, d: int = 3) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, d)) * rng.lognormal(0.0, 2.0, size=d)
    return X, np.sin(2 * X[:, 0]) + X[:, -1]


def wider(X: Floats, count: int) -> Floats:
    return np.hstack([X, np.zeros((len(X), count))])


@settings(max_examples=30)
@given(seeds, st.integers(0, 70), st.integers(1, 3), st.sampled_from([1, 2]), st.sampled_from([24, 1000]))
def test_rows_that_are_0_in_new_features_are_predicted_as_before(
    seed: int, n: int, count: int, views: int, max_centers: int
) -> None:
    rng = np.random.default_rng(seed)
    X, y = stream(rng, n + 20)
    state = new_state(3, views, 8, max_centers)
    if n:
        learner.learn(state, X[:n], y[:n])
    expected = predict(state, X)
    add_features(state, rng.lognormal(0.0, 5.0, size=count))
    np.testing.assert_allclose(predict(state, wider(X, count)), expected, rtol=1e-12, atol=1e-12)
    assert state.core.dimension == state.phase.plain.metrics[0].dimension == 3 + count


@settings(max_examples=10)
@given(seeds, st.integers(1, 60), st.sampled_from([1, 2]))
def test_learning_continues_with_all_earlier_data(seed: int, n: int, views: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = stream(rng, n + 40, 4)
    X[:n, 3] = 0.0
    one, many = new_state(3, views, 8), new_state(3, views, 8)
    for state in (one, many):
        learner.learn(state, X[:n, :3].copy(), y[:n])
        add_features(state, np.array([2.0]))
    together = learner.learn(many, X[n:], y[n:])
    one_by_one = [learner.learn(one, x[None], [label])[0] for x, label in zip(X[n:], y[n:], strict=True)]
    assert np.array(one_by_one).tobytes() == together.tobytes()
    assert bits(one) == bits(many)
    # The statistics of features are those of a learner that had all features from the start.
    wide = new_state(4, views, 8)
    learner.learn(wide, X, y)
    grown, whole = many.core.parts().plain, wide.core.parts().plain
    np.testing.assert_allclose(grown.feature_statistics, whole.feature_statistics, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(grown.centers.rows, whole.centers.rows)
    assert {len(each) for phase in many.phase.summaries for each in (phase.eigenvalues, phase.feature_weights)} == {4}


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("n", [3, 100, 1200])
def test_learner_can_be_saved_right_after_adding_features(views: int, n: int) -> None:
    X, y = stream(np.random.default_rng(0), n + 30)
    state = new_state(3, views, 8)
    learner.learn(state, X[:n], y[:n])
    add_features(state, np.array([2.0, 0.1]))
    other = serialization.from_archive(serialization.to_archive(state), 5)
    assert bits(other) == bits(state)
    rows = wider(X[n:], 2)
    assert learner.learn(other, rows, y[n:]).tobytes() == learner.learn(state, rows, y[n:]).tobytes()
    assert bits(other) == bits(state)


def test_features_can_be_added_repeatedly() -> None:
    X, y = stream(np.random.default_rng(0), 120, 6)
    state = new_state(2, 2, 8)
    for d in range(2, 7):
        part = slice(20 * (d - 2), 20 * (d - 1))
        learner.learn(state, np.ascontiguousarray(X[part, :d]), y[part])
        if d < 6:
            add_features(state, np.ones(1))
    assert np.isfinite(learner.learn(state, X[100:], y[100:])).all()
    assert state.core.dimension == 6


def test_adding_features_keeps_summaries_of_finished_phases() -> None:
    X, y = stream(np.random.default_rng(0), 200)
    state = new_state(3, 1, 8)
    learner.learn(state, X, y)
    before = [phase.feature_weights for phase in state.phase.summaries]
    add_features(state, np.ones(2))
    after = [phase.feature_weights for phase in state.phase.summaries]
    np.testing.assert_array_equal(after, np.hstack([before, np.zeros((len(before), 2))]))


@pytest.mark.parametrize("views", [1, 2])
def test_a_feature_that_arrives_late_is_learned(views: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 4)) * [1.0, 1.0, 1.0, 100.0]
    X[:500, 3] = 0.0
    y = X[:, 0] + 3 * np.sin(X[:, 3] / 50)
    state, without = new_state(3, views, 8), new_state(3, views, 8)
    for each in (state, without):
        learner.learn(each, X[:500, :3].copy(), y[:500])
    add_features(state, np.array([100.0]))
    errors = learner.learn(state, X[500:], y[500:]) - y[500:]
    others = learner.learn(without, X[500:, :3].copy(), y[500:]) - y[500:]
    assert np.std(errors[1000:]) < 0.2 * np.std(others[1000:])
    assert np.diag(state.phase.plain.metrics[0].matrix).argmax() == 3


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200, 1.7e308])
def test_extreme_scales_of_new_features_are_accepted(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, y = stream(rng, 100)
    state = new_state(3, 2, 8)
    learner.learn(state, X[:50], y[:50])
    add_features(state, np.array([scale]))
    assert np.isfinite(learner.learn(state, np.hstack([X[50:], rng.normal(size=(50, 1))]), y[50:])).all()


def test_adding_features_beyond_the_dimension_of_local_fits() -> None:
    X, y = stream(np.random.default_rng(0), 120, 45)
    state = new_state(45, 1, 8)
    learner.learn(state, X[:80], y[:80])
    expected = predict(state, X)
    add_features(state, np.ones(1))
    np.testing.assert_allclose(predict(state, wider(X, 1)), expected, rtol=1e-12)
    assert np.isfinite(learner.learn(state, wider(X, 1)[80:], y[80:])).all()


class LabelsThatAddAFeature:
    """Labels during whose check a feature is added, as another thread may do between the checks and the rounds."""

    def __init__(self, y: Floats, state: MetricState) -> None:
        self.y, self.state = y, state

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:
        if self.state.core.dimension == 3:
            add_features(self.state, np.ones(1))
        return self.y


def learn_late(state: MetricState, X: Floats, y: Any) -> None:
    values, bounds = empty_predictions(len(X), with_intervals=True)
    published = RowPredictions(np.zeros_like(values), np.zeros_like(bounds), np.empty((len(X), 0)))
    learner.learn_late(state, X, y, published)


@pytest.mark.parametrize("rows", [1, 70])
@pytest.mark.parametrize("learn", [learner.learn, learner.learn_both, learn_late])
def test_rows_without_a_feature_that_another_thread_has_just_added_are_refused(learn: Any, rows: int) -> None:
    X, y = stream(np.random.default_rng(0), 50 + rows)
    state, reference = new_state(3), new_state(3)
    for each in (state, reference):
        learner.learn(each, X[:50], y[:50])
    add_features(reference, np.ones(1))
    with pytest.raises(ShapeError, match="X must have 4 columns, got 3"):
        learn(state, X[50:].copy(), LabelsThatAddAFeature(y[50:], state))
    assert bits(state) == bits(reference)


class NoWorker(Executor):
    """Must get no tasks."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise AssertionError(f"{fn} must not be called")


def test_shards_without_a_feature_that_another_thread_has_just_added_are_refused() -> None:
    X, y = stream(np.random.default_rng(0), 700)
    state = new_state(3)
    learner.learn(state, X[:600], y[:600])
    workers = Workers(NoWorker(), Sharding(shards=2, exchange=0.25, min_rows=10))
    with pytest.raises(ShapeError, match="X must have 4 columns, got 3"):
        learn_in_shards(
            state,
            X[600:].copy(),
            LabelsThatAddAFeature(y[600:], state),
            empty_predictions(100, with_intervals=False),
            workers,
        )


def test_one_row_without_a_new_feature_is_refused() -> None:
    state = new_state(3)
    add_features(state, np.ones(1))
    with pytest.raises(ShapeError, match="X must have 4 columns, got 3"):
        learner.learn_one(state, learner.Round([0.1, 0.2, 0.3], 1.0))
