import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners.metric import engine, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import MetricState, Size
from ellipack.learners.metric.widening import widen
from ellipack.validation import Floats
from tests.strategies import seeds

QUICK = MetricConfig(judged=16, pool=64)


def fresh(d: int, views: int = 1, most: int = 1000) -> MetricState:
    return state.init(d, Size(views, 8, most), 0, QUICK)


def made_up(rng: np.random.Generator, n: int, d: int = 3) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, d)) * rng.lognormal(0.0, 2.0, size=d)
    return X, np.sin(2 * X[:, 0]) + X[:, -1]


def wider(X: Floats, count: int) -> Floats:
    return np.hstack([X, np.zeros((len(X), count))])


@settings(max_examples=30)
@given(seeds, st.integers(0, 70), st.integers(1, 3), st.sampled_from([1, 2]), st.sampled_from([24, 1000]))
def test_rows_that_are_0_there_are_predicted_as_before(seed: int, n: int, count: int, views: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = made_up(rng, n + 20)
    learner = fresh(3, views, most)
    if n:
        engine.learn(learner, X[:n], y[:n])
    expected = engine.predict(learner, X)
    widen(learner, rng.lognormal(0.0, 5.0, size=count))
    np.testing.assert_allclose(engine.predict(learner, wider(X, count)), expected, rtol=1e-12, atol=1e-12)
    assert learner.metrics[0].dimension == 3 + count


@settings(max_examples=10)
@given(seeds, st.integers(1, 60), st.sampled_from([1, 2]))
def test_learning_goes_on_and_knows_all_that_was_learned(seed: int, n: int, views: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = made_up(rng, n + 40, 4)
    X[:n, 3] = 0.0
    one, many = fresh(3, views), fresh(3, views)
    for learner in (one, many):
        engine.learn(learner, X[:n, :3].copy(), y[:n])
        widen(learner, np.array([2.0]))
    together = engine.learn(many, X[n:], y[n:])
    singly = [engine.learn(one, x[None], [label])[0] for x, label in zip(X[n:], y[n:], strict=True)]
    assert np.array(singly).tobytes() == together.tobytes()
    # What it knows of the features is what one that had all of them from the start knows.
    wide = fresh(4, views)
    engine.learn(wide, X, y)
    np.testing.assert_allclose(many.machine.features, wide.machine.features, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        many.machine.memory.rows[: many.n_centers], wide.machine.memory.rows[: wide.n_centers]
    )
    assert {metric.dimension for phase in many.phases for metric in phase.metrics} == {4}


def test_what_a_phase_was_like_stays_so() -> None:
    X, y = made_up(np.random.default_rng(0), 200)
    learner = fresh(3)
    engine.learn(learner, X, y)
    before = [np.diag(phase.metrics[0].matrix) for phase in learner.phases]
    widen(learner, np.ones(2))
    after = [np.diag(phase.metrics[0].matrix) for phase in learner.phases]
    np.testing.assert_allclose(after, np.hstack([before, np.zeros((len(before), 2))]), atol=1e-300)


@pytest.mark.parametrize("views", [1, 2])
def test_a_feature_that_comes_late_is_learned(views: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 4)) * [1.0, 1.0, 1.0, 100.0]
    X[:500, 3] = 0.0
    y = X[:, 0] + 3 * np.sin(X[:, 3] / 50)
    learner, blind = fresh(3, views), fresh(3, views)
    for each in (learner, blind):
        engine.learn(each, X[:500, :3].copy(), y[:500])
    widen(learner, np.array([100.0]))
    errors = engine.learn(learner, X[500:], y[500:]) - y[500:]
    without = engine.learn(blind, X[500:, :3].copy(), y[500:]) - y[500:]
    assert np.std(errors[1000:]) < 0.2 * np.std(without[1000:])
    assert np.diag(learner.metrics[0].matrix).argmax() == 3


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e200, 1.7e308])
def test_a_hint_may_be_as_wrong_as_can_be(scale: float) -> None:
    rng = np.random.default_rng(0)
    X, y = made_up(rng, 100)
    learner = fresh(3, views=2)
    engine.learn(learner, X[:50], y[:50])
    widen(learner, np.array([scale]))
    assert np.isfinite(engine.learn(learner, np.hstack([X[50:], rng.normal(size=(50, 1))]), y[50:])).all()


def test_more_features_than_take_part_in_local_fits() -> None:
    rng = np.random.default_rng(0)
    X, y = made_up(rng, 120, 45)
    learner = fresh(45)
    engine.learn(learner, X[:80], y[:80])
    expected = engine.predict(learner, X)
    widen(learner, np.ones(1))
    np.testing.assert_allclose(engine.predict(learner, wider(X, 1)), expected, rtol=1e-12)
    assert np.isfinite(engine.learn(learner, wider(X, 1)[80:], y[80:])).all()
