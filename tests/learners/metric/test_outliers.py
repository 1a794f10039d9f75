"""A single outlier must not damage the model; the learner must adapt to a new level of labels or features."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners.metric import learner
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import COUNT, HIGH, LOW, OUTLIERS, MetricState
from ellipack.validation import Floats
from tests.learners.metric import learners
from tests.learners.metric.learners import bits
from tests.reference.exact_feature_views import OUTLIER_WIDTHS, clip_outlier, is_outlier
from tests.strategies import seeds

sizes = st.sampled_from([1e6, 1e9, 1e60])
signs = st.sampled_from([-1.0, 1.0])
MIN_LABELS = 5  # before which no label is an outlier


def new_state(d: int = 3) -> MetricState:
    return learners.new_state(d, max_centers=5000, config=MetricConfig(validation_points=60, pool=600))


def stream(n: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def label_statistics(state: MetricState) -> Floats:
    return state.core.parts().plain.label_statistics


def late_error(X: Floats, y: Floats, rest: slice, labels: Floats) -> float:
    """Return the late error on the true labels, after learning other labels."""
    return float(np.sqrt(np.mean((learner.learn(new_state(), X, labels) - y)[rest] ** 2)))


@settings(max_examples=30)
@given(st.integers(MIN_LABELS, 200), st.lists(st.tuples(signs, sizes), min_size=1, max_size=3), seeds)
def test_outlying_label_only_changes_the_outlier_count_and_the_intervals(
    at: int, outliers: list[tuple[float, float]], seed: int
) -> None:
    X, y = stream(at + len(outliers), seed)
    state = new_state()
    learner.learn(state, X[:at], y[:at])
    state.phase = replace(state.phase, end=state.phase.end + len(outliers))  # so that no phase ends meanwhile
    before, known = dict(bits(state)), label_statistics(state)
    for x, (sign, size) in zip(X[at:], sorted(outliers, key=lambda outlier: outlier[1]), strict=True):
        learner.learn(state, x[None], [sign * size])
    after, statistics = dict(bits(state)), label_statistics(state)
    assert state.clock == at + len(outliers)
    assert statistics[OUTLIERS] == known[OUTLIERS] + len(outliers)
    statistics[OUTLIERS] = known[OUTLIERS]
    assert statistics.tolist() == known.tolist()
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"facts", "plain/label_statistics", "plain/intervals/widths"}
    # It is a miss of all intervals, and no error that others are compared with.
    intervals = state.core.parts().plain.intervals
    assert intervals.rounds == at - 2 + len(outliers)
    assert intervals.labels == at


@settings(max_examples=8)
@given(st.integers(MIN_LABELS, 400), st.integers(1, 2), signs, seeds)
def test_error_recovers_within_1000_rows_after_an_outlying_label(at: int, count: int, sign: float, seed: int) -> None:
    X, y = stream(at + 1500, seed)
    spoiled = y.copy()
    spoiled[at : at + count] = sign * 1e9
    rest = slice(at + 1000, None)
    assert late_error(X, y, rest, spoiled) < 1.1 * late_error(X, y, rest, y)


@settings(max_examples=8)
@given(st.integers(MIN_LABELS, 400), st.sampled_from([1e9, -1e9, 1e130]), st.integers(0, 2), seeds)
def test_error_recovers_within_1000_rows_after_an_outlying_feature(
    at: int, value: float, feature: int, seed: int
) -> None:
    X, y = stream(at + 1500, seed)
    spoiled = X.copy()
    spoiled[at, feature] = value
    rest = slice(at + 1000, None)
    assert late_error(spoiled, y, rest, y) < 1.1 * late_error(X, y, rest, y)


@settings(max_examples=15)
@given(st.integers(MIN_LABELS, 300), signs, st.sampled_from([1e3, 1e6, 1e9]), seeds)
def test_learner_adapts_to_a_shift_of_labels(at: int, sign: float, size: float, seed: int) -> None:
    X, y = stream(at + 200, seed)
    y[at:] += sign * size
    state = new_state()
    learner.learn(state, X[:at], y[:at])
    width = label_statistics(state)[HIGH] - label_statistics(state)[LOW]
    # Each outlier multiplies the accepted distance by ten; the end of a phase halves the exponent.
    needed = int(np.log10(size / width)) + 2
    predictions = learner.learn(state, X[at:], y[at:])
    assert np.isfinite(predictions).all()
    assert state.clock - label_statistics(state)[COUNT] <= 2 * needed
    assert np.median(np.abs(predictions - y[at:])[100:]) < 0.1 * size


@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_learner_adapts_to_a_shift_of_a_feature(size: float) -> None:
    X, y = stream(600, 0)
    state = new_state()
    learner.learn(state, X[:300], y[:300])
    X[300:, 0] += size
    learner.learn(state, X[300:], y[300:])
    parts, new = state.core.parts().plain, X[300:, 0]
    assert parts.feature_statistics[HIGH, 0] == new.max()
    assert parts.feature_statistics[LOW, 0] == X[:, 0].min()
    clipped = parts.centers.rows[:600, 0] != X[:, 0]
    assert 0 < clipped.sum() <= 2 * np.log10(size)
    assert not clipped[350:].any()


@settings(max_examples=12)
@given(st.floats(0.5, 3.0), st.sampled_from([0.0, 0.9]), seeds)
def test_few_labels_with_heavy_tails_are_outliers(weight: float, zeros: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 1))
    y = np.where(rng.random(400) < zeros, 0.0, np.exp(weight * rng.normal(size=400)))
    state = new_state(1)
    lost = 0
    for t in range(400):
        before, phases = label_statistics(state), len(state.phase.summaries)
        learner.learn(state, X[t : t + 1], y[t : t + 1])
        after = label_statistics(state)
        if after[COUNT] == before[COUNT]:
            lost += 1
            # A phase has at most as many outliers as the range needs to reach the largest label.
            assert before[OUTLIERS] <= np.log10(np.ptp(y) / (OUTLIER_WIDTHS * (before[HIGH] - before[LOW])))
        if len(state.phase.summaries) > phases:
            assert after[OUTLIERS] <= (before[OUTLIERS] + 1) / 2
    assert lost <= 12


@settings(max_examples=20)
@given(seeds)
def test_outliers_follow_the_documented_rule(seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = np.where(rng.random((60, 3)) < 0.1, 10.0 ** rng.integers(0, 8, size=(60, 3)), 1.0)
    table = rng.normal(size=(60, 3)) * factors
    X, y = np.ascontiguousarray(table[:, :2]), table[:, 2]
    state = new_state(2)
    for t in range(60):
        parts = state.core.parts().plain
        labels, features = parts.label_statistics, parts.feature_statistics
        enough = labels[COUNT] >= MIN_LABELS
        outlying = enough and is_outlier(y[t], *labels[[LOW, HIGH, OUTLIERS]].tolist())
        row = [
            clip_outlier(value, *features[[LOW, HIGH, OUTLIERS], k].tolist()) if enough else value
            for k, value in enumerate(X[t].tolist())
        ]
        clipped = copy.deepcopy(state)
        predictions = learner.learn(state, X[t : t + 1], y[t : t + 1])
        assert predictions.tolist() == predict(clipped, [row]).tolist()
        after = state.core.parts().plain
        assert after.label_statistics[COUNT] == labels[COUNT] + (not outlying)
        if not outlying:
            assert after.centers.rows[-1].tolist() == row


def test_equal_labels_have_no_outliers() -> None:
    state = new_state(1)
    learner.learn(state, np.arange(30.0)[:, None], np.zeros(30))
    learner.learn(state, [[30.0]], [1e9])
    assert label_statistics(state)[[HIGH, COUNT]].tolist() == [1e9, 31]


def test_statistics_use_clipped_features() -> None:
    state = new_state(1)
    values = np.array([0.0, 4.0, 1.0, 2.0, 3.0, 100.0])
    learner.learn(state, values[:, None], np.arange(6.0))
    clipped = np.append(values[:-1], 8.0)  # one width of the range outside of it
    parts = state.core.parts().plain
    expected = [clipped.mean(), 6 * clipped.var(), 0.0, 4.0, 1.0]
    np.testing.assert_allclose(parts.feature_statistics[:, 0], expected)
    assert parts.centers.rows[5, 0] == 8.0
    assert predict(state, [[1e6]]).tolist() == predict(state, [[8.0]]).tolist()
