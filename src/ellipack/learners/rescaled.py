"""The rounds of a learner of the paper on any features and labels: `init`, `predict`, `learn`, `add_features`.

Each feature and the label have a range. A row is seen as ``(2 (x - low) / (high - low) - 1) / sqrt(d)``, which lies in
the unit ball, a label as its place in [0, 1]; a feature that never varied is 0. When a value falls outside, its range
grows by tenths of itself until it is inside, and what was learned is converted to the new units. So units change only
logarithmically often.
"""

import math
import sys
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import PackingCore, UnitBox, project
from ellipack.errors import CheckpointError
from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedParts, PhasedState, Samples
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_labels, check_rows

_LARGEST = sys.float_info.max
_GROWTH = 0.1  # of its width at a time: tight enough to leave little of the unit ball empty

Inner = TypeVar("Inner", bound=PackingState | PhasedState)
"""The states of learners that want instances in the unit ball and labels in [0, 1]."""

PredictFunction = Callable[[Any, Floats], Floats]
"""Predicts rows in the unit ball; changes nothing."""

LearnFunction = Callable[[Any, Floats, Floats], Floats]
"""Learns rows in the unit ball and labels in [0, 1], one after the other; returns what was predicted before each."""


class RescaledState(Generic[Inner]):
    """A learner of the paper, and the box in whose units it sees rows and labels.

    Both are kept in one attribute, so that threads and interrupts never find one without the other.
    """

    def __init__(self, inner: Inner, box: UnitBox) -> None:
        self.parts = inner, box

    @property
    def inner(self) -> Inner:
        """The learner of the paper."""
        return self.parts[0]

    @property
    def box(self) -> UnitBox:
        """The ranges of features and labels."""
        return self.parts[1]

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.box.low)


def init(inner: Inner, d: int) -> RescaledState[Inner]:
    """Return a learner before its first round, for d features in any units."""
    return RescaledState(inner, empty_box(d))


def to_archive(state: RescaledState[Inner], inner: Callable[[Inner], Archive]) -> Archive:
    """Return what is saved of a state, given what is saved of the learner in it."""
    learner, box = state.parts
    ranges = Archive(arrays={"low": box.low, "high": box.high, "label": box.label})
    return Archive().with_parts(inner=inner(learner), box=ranges)


def from_archive(saved: Archive, d: int, inner: Callable[[Archive, int], Inner]) -> RescaledState[Inner]:
    """Return the state for d features that was saved as this archive."""
    ranges = saved.part("box")
    learner = inner(saved.part("inner"), d)
    low, high, label = ranges.any_floats("low", d), ranges.any_floats("high", d), ranges.any_floats("label", 2)
    ends = np.append(low, label[0]), np.append(high, label[1])
    if not (np.isfinite(ends).all() and (ends[0] <= ends[1]).all()):
        raise CheckpointError(f"{ranges.prefix}ranges must be finite and not empty")
    return RescaledState(learner, UnitBox(low, high, label))


def predict(state: RescaledState[Inner], X: ArrayLike, predict_inner: PredictFunction) -> Floats:
    """Return what would be predicted for each row now; nothing changes. A row outside of the box is clipped to it."""
    inner, box = state.parts
    return _predict_in_box(inner, box, check_rows(X, len(box.low)), predict_inner)


def learn(
    state: RescaledState[Inner], X: ArrayLike, y: ArrayLike, learn_inner: LearnFunction, predict_inner: PredictFunction
) -> Floats:
    """LearnFunction one round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits.
    """
    inner, box = state.parts
    table = check_rows(X, len(box.low))
    targets = check_labels(y, len(table))
    if box.first_outside(table, targets, 0) == len(table):
        return _learn_in_box(inner, box, table, targets, learn_inner)
    # A change of units on the way: on a copy, so that a failure leaves the state as it was.
    inner, predictions = deepcopy(inner), np.empty(len(table))
    done = 0
    while done < len(table):
        outside = box.first_outside(table, targets, done)
        if outside > done:
            part = slice(done, outside)
            predictions[part] = _learn_in_box(inner, box, table[part], targets[part], learn_inner)
        if outside < len(table):
            part = slice(outside, outside + 1)
            predictions[part] = _predict_in_box(inner, box, table[part], predict_inner)
            larger = grow_box(box, table[outside], float(targets[outside]))
            inner, box = convert_state(inner, unit_change(box, larger)), larger
            _learn_in_box(inner, box, table[part], targets[part], learn_inner)
        done = outside + 1
    state.parts = inner, box
    return predictions


def add_features(state: RescaledState[Inner], count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far."""
    inner, box = deepcopy(state.inner), state.box
    d = len(box.low)
    if isinstance(inner, PackingState):
        packing.add_features(inner, count)
    else:
        phased.add_features(inner, count)
    # The more features, the smaller each must be for a row to be in the unit ball.
    shrink = UnitChange(np.full(d + count, np.sqrt(d / (d + count))), np.zeros(d + count), 1.0, 0.0)
    some = np.zeros(count) if box.label[0] <= box.label[1] else np.full(count, np.inf)
    wider = UnitBox(np.append(box.low, some), np.append(box.high, -some), box.label)
    state.parts = convert_state(inner, shrink), wider


def _predict_in_box(inner: Inner, box: UnitBox, table: Floats, predict_inner: PredictFunction) -> Floats:
    return box.labels_from_units(predict_inner(inner, box.rows_to_units(table)))


def _learn_in_box(inner: Inner, box: UnitBox, table: Floats, targets: Floats, learn_inner: LearnFunction) -> Floats:
    return box.labels_from_units(learn_inner(inner, box.rows_to_units(table), box.labels_to_units(targets)))


class UnitChange(NamedTuple):
    """An affine change of units: of each feature in the unit ball, and of labels in [0, 1]."""

    slope: Floats
    offset: Floats
    label_slope: float
    label_offset: float


def empty_box(d: int) -> UnitBox:
    """Return a box that holds nothing yet."""
    return UnitBox(np.full(d, np.inf), np.full(d, -np.inf), np.array([np.inf, -np.inf]))


def grow_box(box: UnitBox, x: Floats, label: float) -> UnitBox:
    """Return the box, each range that does not hold its value grown by tenths, in that direction, until it does."""
    ranges = [_range(*each) for each in zip(box.low.tolist(), box.high.tolist(), x.tolist(), strict=True)]
    low, high = np.array(ranges).T
    least, most = box.label.tolist()
    return UnitBox(low.copy(), high.copy(), np.array(_range(least, most, label)))


def _range(low: float, high: float, value: float) -> tuple[float, float]:
    if low >= high:  # one value or none so far: there is no width to grow by
        return min(low, value), max(high, value)
    # Python's floats: what overflows is infinite without a word, and then the largest. A tenth that is lost in rounding
    # is made up for by the next float there is.
    while value > high:
        high = min(max(high + _GROWTH * (high - low), math.nextafter(high, math.inf)), _LARGEST)
    while value < low:
        low = max(min(low - _GROWTH * (high - low), math.nextafter(low, -math.inf)), -_LARGEST)
    return low, high


def unit_change(old: UnitBox, new: UnitBox) -> UnitChange:
    """Return the change from units of one box to those of another that contains it."""
    root = np.sqrt(len(old.low))
    slope, offset = _affine(old.low, old.high, new.low, new.high)
    label_slope, label_offset = (float(each[0]) for each in _affine(*old.label[:, None], *new.label[:, None]))
    # From [-1, 1] to [0, 1], as labels are.
    return UnitChange(slope, offset / root, label_slope, (label_offset + 1 - label_slope) / 2)


def _affine(low: Floats, high: Floats, new_low: Floats, new_high: Floats) -> tuple[Floats, Floats]:
    """Return what takes [-1, 1] in units of a range to where it is in units of another."""
    some = low <= high
    low, high = np.where(some, low, new_low), np.where(some, high, new_high)
    wide = new_high / 2 - new_low / 2
    varied = wide > 0
    unit = np.where(varied, wide, 1.0)
    slope = np.where(varied, (high / 2 - low / 2) / unit, 1.0)
    offset = np.where(varied, ((low / 2 + high / 2) - (new_low / 2 + new_high / 2)) / unit, 0.0)
    return slope, offset


def convert_state(inner: Inner, change: UnitChange) -> Inner:
    """Return the state in other units, counts and clocks as they were, in arrays of its own.

    Metrics stay what they are, on rows in the unit ball. So do phases that are over: in the units of their time.
    """
    if isinstance(inner, PackingState):
        return cast(Inner, _convert_packing(inner, change))
    samples = Samples(_convert_rows(inner.rows, change), _convert_labels(inner.labels, 1, change))
    return cast(Inner, PhasedState(PhasedParts(_convert_packing(inner.packing, change), inner.phases, samples)))


def _convert_packing(inner: PackingState, change: UnitChange) -> PackingState:
    metric, core = inner.parts
    coordinates, sums, counts, creation_rounds, rank_starts, clock = core.to_arrays()
    if len(coordinates) == 0:
        return inner.copy()
    moved = project(_convert_rows(_unwhiten(metric, coordinates), change), metric.directions)
    label_sums = _convert_labels(sums, counts, change)
    return PackingState(metric, PackingCore(moved, label_sums, counts, creation_rounds, rank_starts, clock))


def _unwhiten(metric: Metric, coordinates: Floats) -> Floats:
    """Return rows in feature coordinates, given whitened ones."""
    return project(coordinates, np.ascontiguousarray((metric.eigenvectors / np.sqrt(metric.eigenvalues)).T))


def _convert_rows(rows: Floats, change: UnitChange) -> Floats:
    """Return rows in new units, held to the unit ball's cube by rounding alone."""
    most = 1 / np.sqrt(rows.shape[1])
    return np.clip(change.slope * rows + change.offset, -most, most)


def _convert_labels(sums: Floats, counts: ArrayLike, change: UnitChange) -> Floats:
    """Return sums of so many labels in new units."""
    return np.clip(change.label_slope * sums + change.label_offset * np.asarray(counts), 0.0, counts)
