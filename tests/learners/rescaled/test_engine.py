from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import engine
from ellipack.learners.rescaled.engine import RescaledState
from ellipack.metric import GopEstimator, LocalSlopes, Metric
from ellipack.validation import Floats
from tests.strategies import metrics, seeds

slopes = partial(phased.learn, alpha=0.5, estimator=GopEstimator(LocalSlopes(10)))


def made_up(seed: int, n: int, d: int) -> tuple[Floats, Floats]:
    """Return a stream in units of all sorts that now and then leaves the range it had."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.lognormal(0, 3, size=d) + rng.normal(size=d)
    X *= np.where(rng.random((n, 1)) < 0.05, 10.0, 1.0)
    return X, rng.normal() + rng.lognormal(0, 2) * np.sin(X[:, 0]) + np.where(rng.random(n) < 0.05, 3.0, 0.0)


def units(state: RescaledState[Any], X: Floats, y: Floats) -> tuple[Floats, Floats]:
    return state.box.rows_to_units(X), state.box.labels_to_units(y)


@settings(max_examples=30)
@given(metrics(4), seeds)
def test_centres_stay_where_they_were_founded_and_labels_what_they_were(metric: Metric, seed: int) -> None:
    X, y = made_up(seed, 60, metric.dimension)
    state = engine.init(packing.init(metric), metric.dimension)
    engine.learn(state, X, y, packing.learn, packing.predict)
    inner = state.inner
    assert isinstance(inner, PackingState)
    founders, _ = units(state, X[inner.core.founded - 1], y[: inner.core.size])
    np.testing.assert_allclose(inner.core.coordinates, metric.whiten(founders), atol=1e-9)
    counts, sums = inner.core.label_counts, inner.core.label_sums
    assert counts.sum() == len(y)
    assert sums.sum() == pytest.approx(units(state, X, y)[1].sum(), abs=1e-9)


@settings(max_examples=15)
@given(seeds)
def test_the_phased_learner_keeps_all_rows_in_the_units_of_today(seed: int) -> None:
    X, y = made_up(seed, 64, 3)
    state = engine.init(phased.init(3), 3)
    engine.learn(state, X, y, slopes, phased.predict)
    inner = state.inner
    assert isinstance(inner, PhasedState)
    table, targets = units(state, X, y)
    np.testing.assert_allclose(inner.rows, table, atol=1e-9)
    np.testing.assert_allclose(inner.labels, targets, atol=1e-9)
    assert len(inner.phases) == 5


@settings(max_examples=20)
@given(metrics(3), seeds)
def test_within_a_box_it_is_the_papers_learner(metric: Metric, seed: int) -> None:
    rng, d = np.random.default_rng(seed), metric.dimension
    X, y = rng.uniform(-7.0, 3.0, size=(60, d)), rng.uniform(10.0, 20.0, size=60)
    X[0], X[1], y[0], y[1] = -7.0, 3.0, 10.0, 20.0  # the corners come first
    state = engine.init(packing.init(metric), d)
    engine.learn(state, X[:2], y[:2], packing.learn, packing.predict)
    table, targets = units(state, X, y)
    plain = packing.init(metric)
    packing.learn(plain, table[:2], targets[:2])
    expected = packing.learn(plain, table[2:], targets[2:])
    made = engine.learn(state, X[2:], y[2:], packing.learn, packing.predict)
    np.testing.assert_allclose(made, 10 + 10 * expected, rtol=1e-12)


@settings(max_examples=20)
@given(seeds, st.integers(-40, 40), st.integers(-40, 40))
def test_units_make_no_difference(seed: int, features: int, labels: int) -> None:
    X, y = made_up(seed, 60, 2)
    plain, scaled = (engine.init(packing.init(Metric.identity(2)), 2) for _ in range(2))
    expected = engine.learn(plain, X, y, packing.learn, packing.predict)
    made = engine.learn(scaled, X * [2.0**features, 1.0], y * 2.0**labels, packing.learn, packing.predict)
    np.testing.assert_array_equal(made, expected * 2.0**labels)  # powers of 2 are exact


def test_a_row_outside_is_predicted_as_if_it_were_at_the_edge() -> None:
    state = engine.init(packing.init(Metric.identity(1)), 1)
    engine.learn(state, [[0.0], [10.0], [4.0]], [1.0, 3.0, 2.0], packing.learn, packing.predict)
    edge, beyond = engine.predict(state, [[10.0], [1e300]], packing.predict)
    assert edge == beyond == 3.0


@pytest.mark.parametrize("make", ["packing", "phased"])
def test_widening_takes_the_new_feature_to_have_been_0(make: str) -> None:
    X, y = made_up(0, 80, 3)
    X[:50, 2] = 0.0
    play = packing.learn if make == "packing" else slopes
    ask = packing.predict if make == "packing" else phased.predict
    inner = (packing.init(Metric.identity(d)) if make == "packing" else phased.init(d) for d in (2, 3))
    narrow, wide = (engine.init(each, d) for each, d in zip(inner, (2, 3), strict=True))
    engine.learn(narrow, X[:50, :2].copy(), y[:50], play, ask)
    engine.learn(wide, X[:50], y[:50], play, ask)
    expected = engine.predict(narrow, X[:, :2].copy(), ask)
    engine.add_features(narrow, 1)
    np.testing.assert_allclose(engine.predict(narrow, X * [1, 1, 0], ask), expected, rtol=1e-12)
    np.testing.assert_array_equal(narrow.box.low, wide.box.low)
    np.testing.assert_array_equal(narrow.box.high, wide.box.high)
    assert np.isfinite(engine.learn(narrow, X[50:], y[50:], play, ask)).all()


class Fails:
    """An estimator of gradients that gives up."""

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        raise MemoryError("no room for gradients")


def test_what_fails_after_a_change_of_units_has_changed_nothing() -> None:
    X, y = made_up(0, 40, 2)
    state = engine.init(phased.init(2), 2)
    engine.learn(state, X[:10], y[:10], slopes, phased.predict)
    inner, box = state.inner, state.box
    expected = engine.predict(state, X, phased.predict)
    failing = partial(phased.learn, alpha=0.5, estimator=GopEstimator(Fails()))
    with pytest.raises(MemoryError):
        engine.learn(state, 100 * X[10:], y[10:], failing, phased.predict)
    assert state.inner is inner
    assert state.box is box
    np.testing.assert_array_equal(engine.predict(state, X, phased.predict), expected)
