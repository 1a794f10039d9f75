"""Intervals of the paper's cores: calibrated by the predictions and labels of the core, when they are asked for."""

import pickle
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ellipack._core import ConformalIntervals, DeferredCalibration
from ellipack.validation import Floats
from tests.core.builds import Core, builds
from tests.reference.deferred_calibration import MOST_ERRORS, ReferenceDeferral
from tests.strategies import seeds

ROUNDS = 150
NAMES = ["packing", "tree", "intrinsic dimension"]
PROBES = np.array([[0.1, 0.2], [-0.6, 0.3], [0.5, -0.5]])


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


COPIES: dict[str, Callable[[Any], Any]] = {
    "same": lambda learner: learner,
    "copy": lambda learner: learner.copy(),
    "deepcopy": deepcopy,
    "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
    "arrays": lambda learner: type(learner)(*learner.to_arrays()),
}

call_sizes = st.integers(0, 70) | st.sampled_from([1000, 2047, 2048, 2049, 4096, 5000])
calls = st.lists(st.tuples(call_sizes, st.booleans(), st.sampled_from(list(COPIES))), min_size=1, max_size=6)


@builds
@given(st.sampled_from(NAMES), calls, st.sampled_from(["any", "whole numbers", "calm"]), seeds)
@example("packing", [(2048, False, "same"), (1, False, "same"), (3, True, "same")], "any", 0)
@example("tree", [(90, True, "same"), (5000, False, "same"), (0, True, "same")], "any", 0)
def test_rounds_without_intervals_are_deferred_until_intervals_are_asked_for(
    core: Core, name: str, calls: list[tuple[int, bool, str]], kind: str, seed: int
) -> None:
    rng, learner, expected = (
        np.random.default_rng(seed),
        make_core(core, name),
        ReferenceDeferral(core.ConformalIntervals()),
    )
    for count, asked, copy in calls:
        X = rng.uniform(-0.7, 0.7, size=(count, 2))
        y = {"any": rng.random(count), "whole numbers": rng.integers(2, size=count) / 1.0, "calm": np.full(count, 0.5)}[
            kind
        ]
        bounds = np.empty((count, 16)) if asked else None
        predictions = learn(learner, X, y, bounds)
        for t, (prediction, label) in enumerate(zip(predictions.tolist(), y.tolist(), strict=True)):
            if bounds is None:
                expected.learn(prediction, label)
            else:
                assert expected.learn_with_interval(prediction, label).tobytes() == bounds[t].tobytes()
        learner = COPIES[copy](learner)
        around, intervals = np.empty((3, 16)), expected.intervals()
        values = learner.predict(PROBES, around, ALL)
        assert around.tobytes() == intervals.around(values).tobytes()
        calibration = learner.calibration
        assert calibration.errors.tolist() == expected.errors
        assert calibration.calibrated == expected.calibrated
        assert calibration.intervals == intervals


@builds
@pytest.mark.parametrize("name", NAMES)
def test_rounds_are_the_same_one_by_one_and_with_or_without_intervals(core: Core, name: str) -> None:
    rng = np.random.default_rng(0)
    X, y, bounds = rng.uniform(-0.7, 0.7, size=(ROUNDS, 2)), rng.random(ROUNDS), np.empty((ROUNDS, 16))
    learner, silent, single = (make_core(core, name) for _ in range(3))
    predictions = learn(learner, X, y, bounds)
    expected = core.ConformalIntervals()
    assert expected.learn(predictions, y).tobytes() == bounds.tobytes()
    assert learner.calibration == core.DeferredCalibration(expected)
    assert learn(silent, X, y).tobytes() == predictions.tobytes()
    for t in range(ROUNDS):
        learn(single, X[t : t + 1], y[t : t + 1])
    assert silent.calibration == single.calibration
    assert silent.calibration == core.DeferredCalibration(core.ConformalIntervals(), y - predictions)
    values = silent.predict(X[:9])
    assert silent.calibration == single.calibration
    assert learner.predict(X[:9]).tobytes() == values.tobytes()
    np.testing.assert_allclose(silent.calibration.intervals.around(values), expected.around(values), rtol=1e-12)


@builds
@pytest.mark.parametrize("name", NAMES)
def test_a_calibration_is_replaced_as_a_whole_and_wrong_arrays_change_nothing(core: Core, name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.7, 0.7, size=(ROUNDS, 2)), rng.random(ROUNDS)
    learner, other = make_core(core, name), make_core(core, name)
    learn(learner, X, y)
    before = learner.calibration
    for same in (learner.copy(), deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        assert same.calibration == before
        same.calibration = other.calibration
        assert same.calibration == other.calibration != before
        assert learner.calibration == before
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
    assert learner.calibration == before


@builds
@given(st.integers(0, 100), st.integers(0, 2100), st.floats(0, 1), seeds)
def test_calibrations_in_other_units_are_those_of_labels_in_these_units(
    core: Core, first: int, deferred: int, slope: float, seed: int
) -> None:
    rng, calibration, expected = np.random.default_rng(seed), core.DeferredCalibration(), core.DeferredCalibration()
    labels = rng.normal(size=first + deferred)
    zeros, scaled = np.zeros(len(labels)), slope * labels
    for each, values in ((calibration, labels), (expected, scaled)):
        each.learn(zeros[:first], values[:first])
        each.defer(zeros[first:], values[first:])
    converted = calibration.in_units(slope)
    assert converted.errors.tolist() == expected.errors.tolist() == scaled[first:][-MOST_ERRORS:].tolist()
    assert converted.calibrated.mean_error == pytest.approx(slope * calibration.calibrated.mean_error, rel=1e-12)
    assert converted.calibrated.widths.tolist() == calibration.calibrated.widths.tolist()
    if slope > 1e-100:  # smaller labels underflow
        assert converted.calibrated.mean_error == pytest.approx(expected.calibrated.mean_error, rel=1e-9)
        assert converted.calibrated.widths == pytest.approx(expected.calibrated.widths, rel=1e-9)
    assert calibration.errors.tolist() == labels[first:][-MOST_ERRORS:].tolist()


def test_impossible_calibrations_are_rejected() -> None:
    start = ConformalIntervals()
    assert DeferredCalibration.most_errors == MOST_ERRORS
    assert len(DeferredCalibration(start, np.ones(MOST_ERRORS)).errors) == MOST_ERRORS
    with pytest.raises(ValueError, match=r"at most 2,048 errors"):
        DeferredCalibration(start, np.ones(MOST_ERRORS + 1))
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="errors must be finite"):
            DeferredCalibration(start, np.array([0.0, wrong]))
        with pytest.raises(ValueError, match="must be finite"):
            DeferredCalibration(start, np.ones(3)).in_units(wrong)
    for method in (DeferredCalibration().learn, DeferredCalibration().defer):
        with pytest.raises(ValueError, match="labels"):
            method(np.zeros(2), np.zeros(3))
    assert DeferredCalibration(start, np.ones(2)) != DeferredCalibration(start, np.ones(3))
    assert DeferredCalibration() != start


@builds
@pytest.mark.parametrize("name", NAMES)
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
    around = learner.calibration.intervals.around(values)
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
    assert learner.calibration == core.DeferredCalibration(expected)


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
