"""One wild number must not spoil the learner, be it a label or a feature; what comes to stay must be followed."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners.metric import engine, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.machine import COUNT, HIGH, LOW, WILD
from ellipack.learners.metric.seeing._kernels import BEYOND, FREE
from ellipack.learners.metric.state import MetricState, Size
from ellipack.validation import Floats
from tests.strategies import seeds

wild_sizes = st.sampled_from([1e6, 1e9, 1e60])
signs = st.sampled_from([-1.0, 1.0])


def fresh(d: int = 3) -> MetricState:
    return state.init(d, Size(1, 16, 5000), 0, MetricConfig(judged=60, pool=600))


def stream(n: int, seed: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def arrays(of: object) -> list[Floats]:
    return [of] if isinstance(of, np.ndarray) else [array for part in of for array in arrays(part)]  # type: ignore[attr-defined]


def late_error(X: Floats, y: Floats, rest: slice, labels: Floats) -> float:
    """Return the error on the true labels of the rest of a stream that was learned by others."""
    return float(np.sqrt(np.mean((engine.learn(fresh(), X, labels) - y)[rest] ** 2)))


@settings(max_examples=30)
@given(st.integers(FREE, 200), st.lists(st.tuples(signs, wild_sizes), min_size=1, max_size=3), seeds)
def test_nothing_is_learned_from_a_wild_label(at: int, outliers: list[tuple[float, float]], seed: int) -> None:
    X, y = stream(at + len(outliers), seed)
    learner = fresh()
    engine.learn(learner, X[:at], y[:at])
    learner.phase_end += len(outliers)  # so that no phase ends on the way
    before = copy.deepcopy(learner.machine)
    for x, (sign, size) in zip(X[at:], sorted(outliers, key=lambda outlier: outlier[1]), strict=True):
        engine.learn(learner, x[None], [sign * size])
    after = learner.machine
    assert after.clock[0] == at + len(outliers)
    assert after.labels[WILD] == before.labels[WILD] + len(outliers)
    after.clock[0], after.labels[WILD] = before.clock[0], before.labels[WILD]
    assert [array.tobytes() for array in arrays(after)] == [array.tobytes() for array in arrays(before)]


@settings(max_examples=8)
@given(st.integers(FREE, 400), st.integers(1, 2), signs, seeds)
def test_after_a_wild_label_the_error_is_back_within_a_thousand_rows(
    at: int, count: int, sign: float, seed: int
) -> None:
    X, y = stream(at + 1500, seed)
    spoiled = y.copy()
    spoiled[at : at + count] = sign * 1e9
    rest = slice(at + 1000, None)
    assert late_error(X, y, rest, spoiled) < 1.1 * late_error(X, y, rest, y)


@settings(max_examples=8)
@given(st.integers(FREE, 400), st.sampled_from([1e9, -1e9, 1e130]), st.integers(0, 2), seeds)
def test_after_a_wild_feature_the_error_is_back_within_a_thousand_rows(
    at: int, value: float, feature: int, seed: int
) -> None:
    X, y = stream(at + 1500, seed)
    spoiled = X.copy()
    spoiled[at, feature] = value
    rest = slice(at + 1000, None)
    assert late_error(spoiled, y, rest, y) < 1.1 * late_error(X, y, rest, y)


@settings(max_examples=15)
@given(st.integers(FREE, 300), signs, st.sampled_from([1e3, 1e6, 1e9]), seeds)
def test_a_shift_of_all_labels_is_followed(at: int, sign: float, size: float, seed: int) -> None:
    X, y = stream(at + 200, seed)
    y[at:] += sign * size
    learner = fresh()
    engine.learn(learner, X[:at], y[:at])
    width = learner.machine.labels[HIGH] - learner.machine.labels[LOW]
    # Each label that is not believed makes it easier by ten to believe the next; a phase that ends undoes half of that.
    needed = int(np.log10(size / width)) + 2
    made = engine.learn(learner, X[at:], y[at:])
    assert np.isfinite(made).all()
    assert learner.clock - learner.machine.labels[COUNT] <= 2 * needed
    assert np.median(np.abs(made - y[at:])[100:]) < 0.1 * size


@pytest.mark.parametrize("size", [1e3, 1e9, 1e30])
def test_a_shift_of_a_feature_is_followed(size: float) -> None:
    X, y = stream(600, 0)
    learner = fresh()
    engine.learn(learner, X[:300], y[:300])
    X[300:, 0] += size
    engine.learn(learner, X[300:], y[300:])
    machine, new = learner.machine, X[300:, 0]
    assert machine.features[HIGH, 0] == new.max()
    assert machine.features[LOW, 0] == X[:, 0].min()
    held = machine.memory.rows[:600, 0] != X[:, 0]
    assert 0 < held.sum() <= 2 * np.log10(size)
    assert not held[350:].any()


@settings(max_examples=12)
@given(st.floats(0.5, 3.0), st.sampled_from([0.0, 0.9]), seeds)
def test_however_heavy_the_tails_few_labels_are_wild(weight: float, dry: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 1))
    y = np.where(rng.random(400) < dry, 0.0, np.exp(weight * rng.normal(size=400)))
    learner = fresh(1)
    lost = 0
    for t in range(400):
        labels = learner.machine.labels.copy()
        phases = len(learner.phases)
        engine.learn(learner, X[t : t + 1], y[t : t + 1])
        if learner.machine.labels[COUNT] == labels[COUNT]:
            lost += 1
            # No more of them in a phase than it takes to bring the range to the largest label there is.
            assert labels[WILD] <= np.log10(np.ptp(y) / (BEYOND * (labels[HIGH] - labels[LOW])))
        if len(learner.phases) > phases:
            assert learner.machine.labels[WILD] <= (labels[WILD] + 1) / 2
    assert lost <= 12


def test_equal_labels_make_none_wild() -> None:
    learner = fresh(1)
    engine.learn(learner, np.arange(30.0)[:, None], np.zeros(30))
    engine.learn(learner, [[30.0]], [1e9])
    assert learner.machine.labels[[HIGH, COUNT]].tolist() == [1e9, 31]


def test_statistics_are_of_held_features() -> None:
    learner = fresh(1)
    values = np.array([0.0, 4.0, 1.0, 2.0, 3.0, 100.0])
    engine.learn(learner, values[:, None], np.arange(6.0))
    held = np.append(values[:-1], 8.0)  # a width of the range beyond it
    np.testing.assert_allclose(learner.machine.features[:, 0], [held.mean(), 6 * held.var(), 0.0, 4.0, 1.0])
    assert learner.machine.memory.rows[5, 0] == 8.0
    assert engine.predict(learner, [[1e6]]).tolist() == engine.predict(learner, [[8.0]]).tolist()
