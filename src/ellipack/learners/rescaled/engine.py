"""The rounds of a learner of the paper on any features and labels: `init`, `predict`, `learn`, `add_features`.

Each feature and the label have a range. A row is seen as ``(2 (x - low) / (high - low) - 1) / sqrt(d)``, which lies in
the unit ball, a label as its place in [0, 1]; a feature that never varied is 0. When a value falls outside, its range
grows by tenths of itself until it is inside, and what was learned is converted to the new units. So units change only
logarithmically often.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import UnitBox
from ellipack.errors import CheckpointError
from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.rescaled import box as boxes
from ellipack.learners.rescaled.box import Change
from ellipack.learners.rescaled.units import Inner, converted
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_labels, check_rows

Ask = Callable[[Any, Floats], Floats]
"""Predicts rows in the unit ball; changes nothing."""

Play = Callable[[Any, Floats, Floats], Floats]
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
    return RescaledState(inner, boxes.empty(d))


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


def predict(state: RescaledState[Inner], X: ArrayLike, ask: Ask) -> Floats:
    """Return what would be predicted for each row now; nothing changes. A row outside of the box is clipped to it."""
    inner, box = state.parts
    return _ask(inner, box, check_rows(X, len(box.low)), ask)


def learn(state: RescaledState[Inner], X: ArrayLike, y: ArrayLike, play: Play, ask: Ask) -> Floats:
    """Play one round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits.
    """
    inner, box = state.parts
    table = check_rows(X, len(box.low))
    targets = check_labels(y, len(table))
    if box.first_outside(table, targets, 0) == len(table):
        return _play(inner, box, table, targets, play)
    # A change of units on the way: on a copy, so that a failure leaves the state as it was.
    inner, predictions = deepcopy(inner), np.empty(len(table))
    done = 0
    while done < len(table):
        outside = box.first_outside(table, targets, done)
        if outside > done:
            part = slice(done, outside)
            predictions[part] = _play(inner, box, table[part], targets[part], play)
        if outside < len(table):
            part = slice(outside, outside + 1)
            predictions[part] = _ask(inner, box, table[part], ask)
            larger = boxes.grown(box, table[outside], float(targets[outside]))
            inner, box = converted(inner, boxes.change(box, larger)), larger
            _play(inner, box, table[part], targets[part], play)
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
    shrink = Change(np.full(d + count, np.sqrt(d / (d + count))), np.zeros(d + count), 1.0, 0.0)
    some = np.zeros(count) if box.label[0] <= box.label[1] else np.full(count, np.inf)
    wider = UnitBox(np.append(box.low, some), np.append(box.high, -some), box.label)
    state.parts = converted(inner, shrink), wider


def _ask(inner: Inner, box: UnitBox, table: Floats, ask: Ask) -> Floats:
    return box.labels_from_units(ask(inner, box.rows_to_units(table)))


def _play(inner: Inner, box: UnitBox, table: Floats, targets: Floats, play: Play) -> Floats:
    return box.labels_from_units(play(inner, box.rows_to_units(table), box.labels_to_units(targets)))
