"""Intervals of the paper's cores: calibrated in each round, by the predictions and labels of the core."""

import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from ellipack._core import ConformalIntervals
from ellipack.validation import Floats
from tests.core.builds import Core, builds

ROUNDS = 150


def make_core(core: Core, name: str) -> Any:
    """Return a core for two coordinates."""
    starts = np.array([3])
    return {
        "packing": lambda: core.PackingCore(2, starts),
        "tree": lambda: core.PackingTreeCore(np.array([1.0, 16.0]), np.zeros(2, dtype=np.int64), starts),
        "intrinsic dimension": lambda: core.IntrinsicDimensionCore(2, 1),
    }[name]()


ALL = np.arange(8.0)


def learn(learner: Any, X: Floats, y: Floats, bounds: Floats | None = None, positions: Floats = ALL) -> Floats:
    founding = (True,) if type(learner).__name__ == "PackingCore" else ()
    predictions: Floats = learner.learn(X, y, *founding, bounds, None if bounds is None else positions)
    return predictions


@builds
@pytest.mark.parametrize("name", ["packing", "tree", "intrinsic dimension"])
def test_each_round_calibrates_the_intervals(core: Core, name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.7, 0.7, size=(ROUNDS, 2)), rng.random(ROUNDS)
    learner, expected, bounds = make_core(core, name), core.ConformalIntervals(), np.empty((ROUNDS, 16))
    predictions = np.append(learn(learner, X[:60], y[:60], bounds[:60]), learn(learner, X[60:], y[60:], bounds[60:]))
    assert expected.learn(predictions, y).tobytes() == bounds.tobytes()
    assert learner.intervals == expected
    silent = make_core(core, name)
    assert learn(silent, X, y).tobytes() == predictions.tobytes()
    assert silent.intervals == expected

    around = np.empty((9, 16))
    values = learner.predict(X[:9], around, ALL)
    assert values.tobytes() == learner.predict(X[:9]).tobytes()
    assert around.tobytes() == expected.around(values).tobytes()

    learn(silent, X[:1], 1 - y[:1])
    assert silent.intervals != expected
    for same in (learner.copy(), deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert same.intervals == expected
        same.intervals = silent.intervals
        assert same.intervals == silent.intervals
        assert learner.intervals == expected
    with pytest.raises(ValueError, match="bounds must have two entries per coverage and row"):
        learn(learner, X[:2], y[:2], np.empty((3, 16)))
    with pytest.raises(ValueError, match="bounds must have"):
        learner.predict(X[:2], np.empty((2, 15)), ALL)
    with pytest.raises(ValueError, match="bounds must have"):
        learner.predict(X[:2], np.empty((2, 16)))
    for position in (-0.1, 7.1, np.nan):
        with pytest.raises(ValueError, match="positions must be from 0 to 7"):
            learner.predict(X[:2], np.empty((2, 2)), np.array([position]))
    assert learner.clock == ROUNDS
    assert learner.intervals == expected


@builds
@pytest.mark.parametrize("name", ["packing", "tree", "intrinsic dimension"])
def test_wanted_intervals_are_interpolated_between_those_of_all_coverages(core: Core, name: str) -> None:
    rng, positions = np.random.default_rng(1), np.array([4.0, 6.75, 0.0, 2.5, 7.0])
    X, y = rng.uniform(-0.7, 0.7, size=(ROUNDS, 2)), rng.random(ROUNDS)
    learner, everything, wanted = make_core(core, name), np.empty((ROUNDS, 16)), np.empty((ROUNDS, 10))
    learn(learner, X, y, everything)
    learn(make_core(core, name), X, y, wanted, positions)
    assert np.isinf(wanted[:2]).all()
    near, far = (everything.reshape(-1, 2, 8)[..., each.astype(int)] for each in (positions, np.ceil(positions)))
    expected = near[2:] + (positions % 1) * (far[2:] - near[2:])
    np.testing.assert_allclose(wanted[2:].reshape(-1, 2, 5), expected, rtol=1e-13)
    assert core.ConformalIntervals.select(everything, positions).tobytes() == wanted.tobytes()
    ends = np.empty((9, 10))
    values = learner.predict(X[:9], ends, positions)
    around = learner.intervals.around(values)
    assert core.ConformalIntervals.select(around, positions).tobytes() == ends.tobytes()


@builds
@pytest.mark.parametrize("kind", ["heavy tails", "whole numbers", "calm at last", "calm at first"])
def test_rounds_calibrate_to_the_same_bits_as_labels_and_errors_one_by_one(core: Core, kind: str) -> None:
    # Each half of the rows has a ball of its own, so that calm predictions equal their labels. Intervals around calm
    # labels shrink until they are points.
    rng, count = np.random.default_rng(0), 7200
    noise = {
        "heavy tails": rng.beta(0.05, 0.5, size=count),
        "whole numbers": rng.integers(2, size=count).astype(float),
        "calm at last": np.append(rng.random(60), np.full(count - 60, 0.5)),
        "calm at first": np.append(np.full(count - 60, 0.5), rng.random(60)),
    }[kind]
    split = 60 if kind == "calm at last" else count - 60
    X = np.where(np.arange(count) < split, -0.7, 0.7)[:, None] * np.ones(2)
    learner, bounds, expected = make_core(core, "packing"), np.empty((count, 16)), core.ConformalIntervals()
    predictions = learn(learner, X, noise, bounds)
    for prediction, label, own in zip(predictions, noise.tolist(), bounds, strict=True):
        published = expected.around(np.array([prediction]))[0]
        assert published.tobytes() == own.tobytes()
        expected.learn_label(label, published)
        expected.learn_error(label - prediction, 1.0)
    assert learner.intervals == expected
    silent = make_core(core, "packing")
    for part in (slice(0, 1), slice(1, 300), slice(300, count)):
        learn(silent, X[part], noise[part])
    assert silent.intervals == expected


def test_calibrations_are_equal_if_all_numbers_are() -> None:
    start = ConformalIntervals()
    numbers: list[Any] = [
        start.mean_error, start.labels, start.rounds, start.widths, start.scale_losses, start.excess_misses
    ]  # fmt: skip
    assert ConformalIntervals(*numbers) == start
    assert start != 0
    for k, other in enumerate([1.0, 1, 1, start.widths * 2, np.ones(3), 1.0]):
        changed = numbers.copy()
        changed[k] = other
        assert ConformalIntervals(*changed) != start
