"""The paper's learners on features and labels of any scale.

The paper requires instances in the unit ball and labels in [0, 1]. Here each feature and the label have a range. A row
is scaled to ``(2 (x - low) / (high - low) - 1) / sqrt(d)``, which lies in the unit ball, and a label to
``(y - low) / (high - low)``. A feature that has not varied yet is scaled to 0.

When a value falls outside of its range, the range grows by 10 % of its width at a time until it contains the value,
and the learner's state is converted to the new units. The number of conversions is logarithmic in the growth of the
range.
"""

import math
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration, UnitBox
from ellipack.errors import ModelFileError
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.units import UnitChange
from ellipack.locks import LearnLock
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_labels, check_rows

_MAX_FLOAT = sys.float_info.max
_GROWTH = 0.1  # of the width of a range; small, so that the scaled rows fill the unit ball


class ScalableState(Protocol):
    """State of a learner that requires instances in the unit ball and labels in [0, 1]."""

    def in_units(self, change: UnitChange) -> Self:
        """Return a copy in other units: centers, label sums and samples are converted, metrics stay the same."""

    def with_added_features(self, count: int) -> Self:
        """Return a copy with features added as last columns, which were 0 in all earlier rows."""


class CalibratedState(ScalableState, Protocol):
    """State of a regressor."""

    calibration: DeferredCalibration

    @property
    def clock(self) -> int:
        """Number of rounds."""


Inner = TypeVar("Inner", bound=ScalableState)
"""State of a learner of the paper."""

Regression = TypeVar("Regression", bound=CalibratedState)
"""State of a regressor of the paper."""

PredictFunction = Callable[[Any, Floats, WantedIntervals], Floats]
"""Function of a state and scaled rows that returns predictions, and fills an array with their intervals."""

LearnFunction = Callable[[Any, Floats, Floats, WantedIntervals], Floats]
"""Function of a state, scaled rows and scaled labels that learns row by row. It returns the earlier predictions, and
fills an array with their intervals."""


class RescaledState(Generic[Inner]):
    """State of a learner of the paper, with the ranges that scale its rows and labels.

    Both are kept in one attribute, which is replaced as a whole. Threads and interrupts always see a matching pair.

    Attributes
    ----------
    parts : tuple of (ScalableState, UnitBox)
        The learner's state and the ranges.
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    def __init__(self, inner: Inner, box: UnitBox) -> None:
        self.parts = inner, box
        self.learn_lock = LearnLock()

    @property
    def inner(self) -> Inner:
        """State of the learner on scaled rows and labels."""
        return self.parts[0]

    @property
    def box(self) -> UnitBox:
        """Ranges of the features and of the label."""
        return self.parts[1]

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.box.low)

    @property
    def clock(self: "RescaledState[Regression]") -> int:
        """Number of rounds."""
        return self.inner.clock

    @property
    def calibration(self: "RescaledState[Regression]") -> DeferredCalibration:
        """Copy of the calibration of prediction intervals, for scaled labels."""
        return self.inner.calibration

    @calibration.setter
    def calibration(self: "RescaledState[Regression]", calibration: DeferredCalibration) -> None:
        self.inner.calibration = calibration


def init(inner: Inner, d: int) -> RescaledState[Inner]:
    """Return the initial state, with empty ranges.

    Parameters
    ----------
    inner : ScalableState
        Initial state of the learner.
    d : int
        Number of features.

    Returns
    -------
    state : RescaledState
    """
    return RescaledState(inner, empty_box(d))


def to_archive(state: RescaledState[Inner], inner: Callable[[Inner], Archive]) -> Archive:
    """Return an archive of a state.

    Parameters
    ----------
    state : RescaledState
        The state.
    inner : callable
        Function that returns an archive of the learner's state.

    Returns
    -------
    archive : Archive
    """
    learner, box = state.parts
    ranges = Archive(arrays={"low": box.low, "high": box.high, "label": box.label})
    return Archive().with_parts(inner=inner(learner), box=ranges)


def from_archive(saved: Archive, d: int, inner: Callable[[Archive, int], Inner]) -> RescaledState[Inner]:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.
    inner : callable
        Function that restores the learner's state from its archive and the number of features.

    Returns
    -------
    state : RescaledState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    ranges = saved.part("box")
    learner = inner(saved.part("inner"), d)
    low, high, label = ranges.any_floats("low", d), ranges.any_floats("high", d), ranges.any_floats("label", 2)
    ends = np.append(low, label[0]), np.append(high, label[1])
    if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
        raise ModelFileError(f"{ranges.prefix}ranges must be finite and not empty")
    return RescaledState(learner, UnitBox(low, high, label))


def predict(
    state: RescaledState[Inner], X: ArrayLike, predict_inner: PredictFunction, intervals: WantedIntervals = NO_INTERVALS
) -> Floats:
    """Return predictions without a change of the state. Rows are clipped to the ranges.

    Parameters
    ----------
    state : RescaledState
        The state.
    X : array-like of shape (n, d)
        Rows.
    predict_inner : callable
        `predict` of the learner on scaled rows.
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.

    Returns
    -------
    predictions : array of shape (n,)
    """
    inner, box = state.parts
    return _predict_in_box(inner, box, check_rows(X, len(box.low)), predict_inner, intervals)


def learn(
    state: RescaledState[Regression],
    X: ArrayLike,
    y: ArrayLike,
    learn_inner: LearnFunction,
    predict_inner: PredictFunction,
    intervals: WantedIntervals = NO_INTERVALS,
) -> Floats:
    """Run one round for each row: predict, then learn the label.

    Predictions and state do not depend on how rows are grouped into calls, bit for bit.

    Parameters
    ----------
    state : RescaledState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    learn_inner : callable
        `learn` of the learner on scaled rows and labels.
    predict_inner : callable
        `predict` of the learner on scaled rows.
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.

    Returns
    -------
    predictions : array of shape (n,)
        Predictions, each made before its label was learned.
    """
    with state.learn_lock.turn:
        table = check_rows(X, state.dimension)
        return _learn(state, table, check_labels(y, len(table)), learn_inner, predict_inner, intervals)


def _learn(
    state: RescaledState[Regression],
    table: Floats,
    targets: Floats,
    learn_inner: LearnFunction,
    predict_inner: PredictFunction,
    intervals: WantedIntervals,
) -> Floats:
    inner, box = state.parts
    if box.first_outside(table, targets, 0) == len(table):
        return _learn_in_box(inner, box, table, targets, learn_inner, intervals)
    # If a range grows, learn on a copy: an error leaves the state unchanged.
    inner, predictions = deepcopy(inner), np.empty(len(table))
    done = 0
    while done < len(table):
        outside = box.first_outside(table, targets, done)
        if outside > done:
            part = slice(done, outside)
            predictions[part] = _learn_in_box(inner, box, table[part], targets[part], learn_inner, intervals.part(part))
        if outside < len(table):
            part = slice(outside, outside + 1)
            predictions[part] = _predict_in_box(inner, box, table[part], predict_inner, intervals.part(part))
            larger = grow_box(box, table[outside], float(targets[outside]))
            inner, box = inner.in_units(unit_change(box, larger)), larger
            # The intervals are calibrated by the prediction that was published, which is that in the smaller box.
            calibration = inner.calibration
            add_round = calibration.learn if len(intervals.positions) else calibration.defer
            add_round(box.labels_to_units(predictions[part]), box.labels_to_units(targets[part]))
            _learn_in_box(inner, box, table[part], targets[part], learn_inner, NO_INTERVALS)
            inner.calibration = calibration
        done = outside + 1
    state.parts = inner, box
    return predictions


def add_features(state: RescaledState[Inner], count: int) -> None:
    """Add features as last columns. They were 0 in all earlier rows.

    Parameters
    ----------
    state : RescaledState
        The state, which is updated.
    count : int
        Number of new features.
    """
    with state.learn_lock.turn:
        state.parts = with_added_features(state, count).parts


def with_added_features(state: RescaledState[Inner], count: int) -> RescaledState[Inner]:
    """Return a copy of a state with new features; see `add_features`."""
    inner, box = state.parts
    d = len(box.low)
    # Scaled rows are divided by the square root of the number of features.
    shrink = UnitChange(np.full(d + count, np.sqrt(d / (d + count))), np.zeros(d + count), 1.0, 0.0)
    ends = np.zeros(count) if box.label[0] <= box.label[1] else np.full(count, np.inf)  # empty before the first row
    wider = UnitBox(np.append(box.low, ends), np.append(box.high, -ends), box.label)
    return RescaledState(inner.with_added_features(count).in_units(shrink), wider)


def _predict_in_box(
    inner: Inner, box: UnitBox, table: Floats, predict_inner: PredictFunction, intervals: WantedIntervals
) -> Floats:
    return _from_units(box, predict_inner(inner, box.rows_to_units(table), intervals), intervals)


def _learn_in_box(
    inner: Inner, box: UnitBox, table: Floats, targets: Floats, learn_inner: LearnFunction, intervals: WantedIntervals
) -> Floats:
    scaled = learn_inner(inner, box.rows_to_units(table), box.labels_to_units(targets), intervals)
    return _from_units(box, scaled, intervals)


def _from_units(box: UnitBox, scaled: Floats, intervals: WantedIntervals) -> Floats:
    """Return predictions in units of the label, and convert their intervals in place."""
    if len(intervals.positions):
        box.bounds_from_units(scaled, intervals.bounds)
    return box.labels_from_units(scaled)


def empty_box(d: int) -> UnitBox:
    """Return empty ranges for d features and the label."""
    return UnitBox(np.full(d, np.inf), np.full(d, -np.inf), np.array([np.inf, -np.inf]))


def grow_box(box: UnitBox, x: Floats, label: float) -> UnitBox:
    """Return ranges that contain a row and a label.

    Each range that does not contain its value grows on the side of the value, by 10 % of its width at a time.

    Parameters
    ----------
    box : UnitBox
        The ranges.
    x : array of shape (d,)
        The row.
    label : float
        The label.

    Returns
    -------
    larger : UnitBox

    Examples
    --------
    >>> box = UnitBox(np.array([0.0]), np.array([10.0]), np.array([0.0, 1.0]))
    >>> larger = grow_box(box, np.array([11.5]), 0.5)
    >>> larger.low.tolist(), larger.high.round(9).tolist(), larger.label.tolist()
    ([0.0], [12.1], [0.0, 1.0])
    """
    ranges = [_grow_range(*each) for each in zip(box.low.tolist(), box.high.tolist(), x.tolist(), strict=True)]
    low, high = np.array(ranges).T
    least, most = box.label.tolist()
    return UnitBox(low.copy(), high.copy(), np.array(_grow_range(least, most, label)))


def _grow_range(low: float, high: float, value: float) -> tuple[float, float]:
    """Return a range that contains a value."""
    if low >= high:  # at most one value so far: there is no width to grow by
        return min(low, value), max(high, value)
    # Python floats overflow to infinity without a warning, and the result is clipped. If a step is lost in rounding,
    # the next float is used.
    while value > high:
        high = min(max(high + _GROWTH * (high - low), math.nextafter(high, math.inf)), _MAX_FLOAT)
    while value < low:
        low = max(min(low - _GROWTH * (high - low), math.nextafter(low, -math.inf)), -_MAX_FLOAT)
    return low, high


def unit_change(old: UnitBox, new: UnitBox) -> UnitChange:
    """Return the change from the units of one box to those of a box that contains it.

    Parameters
    ----------
    old, new : UnitBox
        The boxes.

    Returns
    -------
    change : UnitChange

    Examples
    --------
    >>> old = UnitBox(np.array([0.0]), np.array([1.0]), np.array([0.0, 1.0]))
    >>> new = UnitBox(np.array([0.0]), np.array([2.0]), np.array([0.0, 4.0]))
    >>> change = unit_change(old, new)
    >>> change.slope.tolist(), change.offset.tolist(), change.label_slope, change.label_offset
    ([0.5], [-0.5], 0.25, 0.0)
    """
    root = np.sqrt(len(old.low))
    slope, offset = _affine(old.low, old.high, new.low, new.high)
    label_slope, label_offset = (float(each[0]) for each in _affine(*old.label[:, None], *new.label[:, None]))
    # Labels are scaled to [0, 1], not to [-1, 1].
    return UnitChange(slope, offset / root, label_slope, (label_offset + 1 - label_slope) / 2)


def _affine(low: Floats, high: Floats, new_low: Floats, new_high: Floats) -> tuple[Floats, Floats]:
    """Return slopes and offsets that map values scaled to [-1, 1] by one range to values scaled by another."""
    not_empty = low <= high
    low, high = np.where(not_empty, low, new_low), np.where(not_empty, high, new_high)
    half_width = new_high / 2 - new_low / 2  # halves, because the width may overflow
    varied = half_width > 0
    unit = np.where(varied, half_width, 1.0)
    slope = np.where(varied, (high / 2 - low / 2) / unit, 1.0)
    offset = np.where(varied, ((low / 2 + high / 2) - (new_low / 2 + new_high / 2)) / unit, 0.0)
    return slope, offset
