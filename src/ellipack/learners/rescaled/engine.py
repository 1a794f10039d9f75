"""The rounds of a learner of the paper on any features and labels: `init`, `predict`, `learn`, `widen`.

Each feature and the label have a range. A row is seen as ``(2 (x - low) / (high - low) - 1) / sqrt(d)``, which lies in
the unit ball, a label as its place in [0, 1]; a feature that never varied is 0. When a value falls outside, its range
grows by tenths of itself until it is inside, and what was learned is converted to the new units. So units change only
logarithmically often.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.rescaled import box as boxes
from ellipack.learners.rescaled._kernels import (
    Box,
    first_outside,
    labels_from_units,
    labels_to_units,
    rows_to_units,
)
from ellipack.learners.rescaled.box import Change
from ellipack.learners.rescaled.units import Inner, converted
from ellipack.threads import Gate
from ellipack.validation import Floats, labels, rows

Ask = Callable[[Any, Floats], Floats]
"""Predicts rows in the unit ball; changes nothing."""

Play = Callable[[Any, Floats, Floats], Floats]
"""Learns rows in the unit ball and labels in [0, 1], one after the other; returns what was predicted before each."""


@dataclass(eq=False)
class RescaledState(Generic[Inner]):
    """A learner of the paper, and the box whose units it sees rows and labels in."""

    inner: Inner
    box: Box
    gate: Gate = field(default_factory=Gate)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.box.low)


def init(inner: Inner, d: int) -> RescaledState[Inner]:
    """Return a learner before its first round, for d features in any units."""
    return RescaledState(inner, boxes.empty(d))


def contents(state: RescaledState[Inner], inner: Callable[[Inner], Contents]) -> Contents:
    """Return what is saved of a state, given what is saved of the learner in it."""
    with state.gate.looking():
        return Contents().having(inner=inner(state.inner), box=Contents(arrays=state.box._asdict()).copy())


def restore(saved: Contents, d: int, inner: Callable[[Contents, int], Inner]) -> RescaledState[Inner]:
    """Return the state for d features that was saved as these contents."""
    box = saved.part("box")
    state = RescaledState(inner(saved.part("inner"), d), Box(*(box.numbers(*each) for each in _shapes(d))))
    for low, high in ((state.box.low, state.box.high), (state.box.label[:1], state.box.label[1:])):
        if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
            raise CheckpointError(f"{box.place}ranges must be finite and not empty")
    return state


def _shapes(d: int) -> tuple[tuple[Any, ...], ...]:
    return ("low", d), ("high", d), ("label", 2)


def predict(state: RescaledState[Inner], X: ArrayLike, ask: Ask) -> Floats:
    """Return what would be predicted for each row now; nothing changes. A row outside of the box is held to it."""
    with state.gate.looking():
        return _asked(state, rows(X, state.width), ask)


def learn(state: RescaledState[Inner], X: ArrayLike, y: ArrayLike, play: Play, ask: Ask) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits.
    """
    table = rows(X, state.width)
    targets = labels(y, len(table))
    if first_outside(state.box, table, targets, 0) == len(table):
        return _played(state, table, targets, play)
    # With a change of units on the way, on a copy: whatever fails, fails with nothing moved.
    ahead = RescaledState(deepcopy(state.inner), state.box)
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        outside = first_outside(ahead.box, table, targets, done)
        if outside > done:
            part = slice(done, outside)
            predictions[part] = _played(ahead, table[part], targets[part], play)
        if outside < len(table):
            part = slice(outside, outside + 1)
            predictions[part] = _asked(ahead, table[part], ask)
            _hold(ahead, table[outside], targets[outside])
            _played(ahead, table[part], targets[part], play)
        done = outside + 1
    with state.gate.changing():
        state.inner, state.box = ahead.inner, ahead.box
    return predictions


def widen(state: RescaledState[Inner], count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far."""
    d, inner = state.width, deepcopy(state.inner)
    if isinstance(inner, PackingState):
        packing.widen(inner, count)
    else:
        phased.widen(inner, count)
    # The more features, the smaller each must be for a row to be in the unit ball.
    shrink = Change(np.full(d + count, np.sqrt(d / (d + count))), np.zeros(d + count), 1.0, 0.0)
    some = np.zeros(count) if state.box.label[0] <= state.box.label[1] else np.full(count, np.inf)
    low, high = np.append(state.box.low, some), np.append(state.box.high, -some)
    moved = converted(inner, shrink), Box(low, high, state.box.label)
    with state.gate.changing():
        state.inner, state.box = moved


def _asked(state: RescaledState[Inner], table: Floats, ask: Ask) -> Floats:
    units = np.empty_like(table)
    rows_to_units(state.box, table, units)
    predictions = ask(state.inner, units)
    labels_from_units(state.box, predictions)
    return predictions


def _played(state: RescaledState[Inner], table: Floats, targets: Floats, play: Play) -> Floats:
    units, unit_labels = np.empty_like(table), np.empty_like(targets)
    rows_to_units(state.box, table, units)
    labels_to_units(state.box, targets, unit_labels)
    predictions = play(state.inner, units, unit_labels)
    labels_from_units(state.box, predictions)
    return predictions


def _hold(state: RescaledState[Inner], x: Floats, label: float) -> None:
    """Let the box grow until it holds a row and its label, and convert what was learned to its units."""
    larger = boxes.grown(state.box, x, float(label))
    state.inner = converted(state.inner, boxes.change(state.box, larger))
    state.box = larger
