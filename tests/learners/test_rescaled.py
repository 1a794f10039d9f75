import sys
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from ellipack._core import UnitBox
from ellipack.learners import packing, phased, rescaled
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import RescaledState, empty_box, grow_box, unit_change
from ellipack.metric import GopEstimator, LocalSlopes, Metric
from ellipack.validation import Floats
from tests.strategies import metrics, seeds

slopes = partial(phased.learn, alpha=0.5, estimator=GopEstimator(LocalSlopes(10)))


def stream_with_outliers(seed: int, n: int, d: int) -> tuple[Floats, Floats]:
    """Return a stream in units of all sorts that now and then leaves the range it had."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.lognormal(0, 3, size=d) + rng.normal(size=d)
    X *= np.where(rng.random((n, 1)) < 0.05, 10.0, 1.0)
    return X, rng.normal() + rng.lognormal(0, 2) * np.sin(X[:, 0]) + np.where(rng.random(n) < 0.05, 3.0, 0.0)


def units(state: RescaledState[Any], X: Floats, y: Floats) -> tuple[Floats, Floats]:
    return state.box.rows_to_units(X), state.box.labels_to_units(y)


@settings(max_examples=30)
@given(metrics(4), seeds)
def test_conversion_keeps_centers_and_labels(metric: Metric, seed: int) -> None:
    X, y = stream_with_outliers(seed, 60, metric.dimension)
    state = rescaled.init(packing.init(metric), metric.dimension)
    rescaled.learn(state, X, y, packing.learn, packing.predict)
    inner = state.inner
    assert isinstance(inner, PackingState)
    founders, _ = units(state, X[inner.core.creation_rounds - 1], y[: inner.core.size])
    np.testing.assert_allclose(inner.core.coordinates, metric.whiten(founders), atol=1e-9)
    counts, sums = inner.core.label_counts, inner.core.label_sums
    assert counts.sum() == len(y)
    assert sums.sum() == pytest.approx(units(state, X, y)[1].sum(), abs=1e-9)


@settings(max_examples=15)
@given(seeds)
def test_phased_learner_converts_all_samples(seed: int) -> None:
    X, y = stream_with_outliers(seed, 64, 3)
    state = rescaled.init(phased.init(3), 3)
    rescaled.learn(state, X, y, slopes, phased.predict)
    inner = state.inner
    assert isinstance(inner, PhasedState)
    table, targets = units(state, X, y)
    np.testing.assert_allclose(inner.rows, table, atol=1e-9)
    np.testing.assert_allclose(inner.labels, targets, atol=1e-9)
    assert len(inner.phases) == 5


@settings(max_examples=20)
@given(metrics(3), seeds)
def test_learner_within_ranges_equals_algorithm_1(metric: Metric, seed: int) -> None:
    rng, d = np.random.default_rng(seed), metric.dimension
    X, y = rng.uniform(-7.0, 3.0, size=(60, d)), rng.uniform(10.0, 20.0, size=60)
    X[0], X[1], y[0], y[1] = -7.0, 3.0, 10.0, 20.0  # the corners come first
    state = rescaled.init(packing.init(metric), d)
    rescaled.learn(state, X[:2], y[:2], packing.learn, packing.predict)
    table, targets = units(state, X, y)
    plain = packing.init(metric)
    packing.learn(plain, table[:2], targets[:2])
    expected = packing.learn(plain, table[2:], targets[2:])
    made = rescaled.learn(state, X[2:], y[2:], packing.learn, packing.predict)
    np.testing.assert_allclose(made, 10 + 10 * expected, rtol=1e-12)


@settings(max_examples=20)
@given(seeds, st.integers(-40, 40), st.integers(-40, 40))
def test_results_do_not_depend_on_units(seed: int, features: int, labels: int) -> None:
    X, y = stream_with_outliers(seed, 60, 2)
    plain, scaled = (rescaled.init(packing.init(Metric.identity(2)), 2) for _ in range(2))
    expected = rescaled.learn(plain, X, y, packing.learn, packing.predict)
    made = rescaled.learn(scaled, X * [2.0**features, 1.0], y * 2.0**labels, packing.learn, packing.predict)
    np.testing.assert_array_equal(made, expected * 2.0**labels)  # powers of 2 are exact


def test_predict_clips_rows_to_the_ranges() -> None:
    state = rescaled.init(packing.init(Metric.identity(1)), 1)
    rescaled.learn(state, [[0.0], [10.0], [4.0]], [1.0, 3.0, 2.0], packing.learn, packing.predict)
    edge, beyond = rescaled.predict(state, [[10.0], [1e300]], packing.predict)
    assert edge == beyond == 3.0


@pytest.mark.parametrize("make", ["packing", "phased"])
def test_added_feature_was_0_in_earlier_rows(make: str) -> None:
    X, y = stream_with_outliers(0, 80, 3)
    X[:50, 2] = 0.0
    learn_inner = packing.learn if make == "packing" else slopes
    predict_inner = packing.predict if make == "packing" else phased.predict
    inner = (packing.init(Metric.identity(d)) if make == "packing" else phased.init(d) for d in (2, 3))
    narrow, wide = (rescaled.init(each, d) for each, d in zip(inner, (2, 3), strict=True))
    rescaled.learn(narrow, X[:50, :2].copy(), y[:50], learn_inner, predict_inner)
    rescaled.learn(wide, X[:50], y[:50], learn_inner, predict_inner)
    expected = rescaled.predict(narrow, X[:, :2].copy(), predict_inner)
    rescaled.add_features(narrow, 1)
    np.testing.assert_allclose(rescaled.predict(narrow, X * [1, 1, 0], predict_inner), expected, rtol=1e-12)
    np.testing.assert_array_equal(narrow.box.low, wide.box.low)
    np.testing.assert_array_equal(narrow.box.high, wide.box.high)
    assert np.isfinite(rescaled.learn(narrow, X[50:], y[50:], learn_inner, predict_inner)).all()


class FailingEstimator:
    """An estimator of gradients that always fails."""

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        raise MemoryError("no room for gradients")


def test_error_after_a_change_of_units_leaves_the_state_unchanged() -> None:
    X, y = stream_with_outliers(0, 40, 2)
    state = rescaled.init(phased.init(2), 2)
    rescaled.learn(state, X[:10], y[:10], slopes, phased.predict)
    inner, box = state.inner, state.box
    expected = rescaled.predict(state, X, phased.predict)
    failing = partial(phased.learn, alpha=0.5, estimator=GopEstimator(FailingEstimator()))
    with pytest.raises(MemoryError):
        rescaled.learn(state, 100 * X[10:], y[10:], failing, phased.predict)
    assert state.inner is inner
    assert state.box is box
    np.testing.assert_array_equal(rescaled.predict(state, X, phased.predict), expected)


# Boxes.

numbers = st.floats(allow_nan=False, allow_infinity=False)
LARGEST = sys.float_info.max


def grown_boxes(values: list[list[float]], labels: list[float]) -> list[UnitBox]:
    seen = [empty_box(len(values[0]))]
    for x, label in zip(values, labels, strict=True):
        seen.append(grow_box(seen[-1], np.array(x), label))
    return seen[1:]


@given(st.lists(st.tuples(st.lists(numbers, min_size=2, max_size=2), numbers), min_size=1, max_size=12))
def test_box_contains_all_values_and_never_shrinks(stream: list[tuple[list[float], float]]) -> None:
    values, labels = [x for x, _ in stream], [label for _, label in stream]
    seen = grown_boxes(values, labels)
    assert seen[-1].first_outside(np.array(values), np.array(labels), 0) == len(stream)
    for before, after in pairwise(seen):
        for old, new in ((before.low, after.high), (after.low, before.high)):
            assert np.all(old <= new)
        assert np.all(np.isfinite(np.concatenate([after.low, after.high, after.label])))
    in_ball = seen[-1].rows_to_units(np.array(values))
    assert np.all(np.linalg.norm(in_ball, axis=1) <= 1 + 1e-12)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.floats(-1e9, 1e9))
def test_range_grows_by_tenths_and_as_little_as_possible(low: float, width: float, value: float) -> None:
    high = low + width
    before = UnitBox(np.array([low]), np.array([high]), np.zeros(2))
    after = grow_box(before, np.array([value]), 0.0)
    wide, wider = high - low, after.high[0] - after.low[0]
    if low <= value <= high:
        assert (after.low, after.high) == (before.low, before.high)
        return
    steps = np.log(wider / wide) / np.log(1.1)
    assert steps == pytest.approx(round(steps), abs=1e-3)
    assert round(steps) >= 1
    beyond = value - high if value > high else low - value
    assert wider <= 1.1 * (beyond + wide) * (1 + 1e-9)


def test_drifting_stream_changes_units_logarithmically_often() -> None:
    seen = grown_boxes([[float(t)] for t in range(10_000)], [0.0] * 10_000)
    assert len({float(box.high[0]) for box in seen}) <= 3 + np.log(10_000) / np.log(1.1)


def test_narrowest_range_grows() -> None:
    seen = grown_boxes([[1.0], [np.nextafter(1.0, 2.0)], [2.0], [np.nextafter(1.0, 0.0)], [-3.0]], [0.0] * 5)
    assert seen[-1].low[0] <= -3.0
    assert seen[-1].high[0] >= 2.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=8), st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=8))
def test_unit_change_converts_between_boxes(values: list[float], labels: list[float]) -> None:
    count = min(len(values), len(labels))
    X = np.array([values[:count], values[:count][::-1]]).T.copy()
    seen = grown_boxes(X.tolist(), labels[:count])
    early, late, inside = seen[0], seen[-1], X[:1]
    for box in seen[1:-1]:
        change = unit_change(box, late)
        known = X[: 1 + box.first_outside(X, np.array(labels[:count]), 0)][:2]
        known = np.clip(known, box.low, box.high)
        np.testing.assert_allclose(
            change.slope * box.rows_to_units(known) + change.offset, late.rows_to_units(known), atol=1e-9
        )
    change = unit_change(early, late)  # from a box of one point
    np.testing.assert_allclose(
        change.slope * early.rows_to_units(inside) + change.offset, late.rows_to_units(inside), atol=1e-9
    )
    old, new = (box.labels_to_units(np.array(labels[:1])) for box in (early, late))
    assert change.label_slope * old[0] + change.label_offset == pytest.approx(new[0], abs=1e-9)


@pytest.mark.parametrize("values", [[-LARGEST, LARGEST, 0.0], [0.0, 5e-324, 1e300], [1.0, 1.0 + 2e-16, -LARGEST]])
def test_widest_ranges_are_finite(values: list[float]) -> None:
    seen = grown_boxes([[value] for value in values], values)
    for before, after in pairwise(seen):
        assert np.isfinite(np.concatenate([np.ravel(each) for each in unit_change(before, after)])).all()
    np.testing.assert_array_less(np.abs(seen[-1].rows_to_units(np.array(values)[:, None])), 1 + 1e-12)
