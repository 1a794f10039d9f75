"""Compiled changes of units, and Algorithm 1's rounds a row at a time in units of a box.

All differences are taken of halves, so that no range of floats is too wide.
"""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.held._kernels import Held
from ellipack.learners._kernels import is_far, learn_label, mean, rank_at
from ellipack.metric._kernels import combine
from ellipack.packing.centers import Centers
from ellipack.packing.tree._kernels import nearest
from ellipack.validation import Floats, Ints


class Box(NamedTuple):
    """The range of each feature and of the label; a range without values yet has its low end above its high end."""

    low: Floats
    high: Floats
    label: Floats


class Desk(NamedTuple):
    """What a row's round in units of a box takes: Algorithm 1, the row, and room to work in.

    `asked` holds the round in which a nearest centre was last looked for (-1: none) and that centre, `before` the row
    that it was looked for, and `squared` how far away it is.
    """

    box: Box
    directions: Floats
    centers: Centers
    starts: Ints
    x: Floats
    units: Floats
    coordinates: Floats
    trail: Floats
    asked: Ints
    before: Floats
    squared: Floats


@subkernel
def to_unit(value: float, low: float, high: float) -> float:
    """Return where a value stands in a range, from -1 to 1, held to it; 0 if the range has no width."""
    width = 0.5 * high - 0.5 * low
    if not width > 0.0:
        return 0.0
    part = (0.5 * value - 0.5 * low) / width
    return min(max(2.0 * part - 1.0, -1.0), 1.0)


@subkernel
def from_unit(label: float, low: float, high: float) -> float:
    """Return a label in [0, 1] in its own units; 0 before there was any."""
    if low > high:
        return 0.0
    return min(max((1.0 - label) * low + label * high, low), high)


@subkernel
def row_to_units(box: Box, x: Floats, out: Floats) -> None:
    """Fill in a row in units of the box, in the unit ball."""
    root = math.sqrt(len(x))
    for k in range(len(x)):
        out[k] = to_unit(x[k], box.low[k], box.high[k]) / root


@subkernel
def holds(box: Box, x: Floats) -> bool:
    """Whether a row lies in the box."""
    inside = True
    for k in range(len(x)):
        inside = inside and box.low[k] <= x[k] <= box.high[k]
    return inside


@kernel
def first_outside(box: Box, rows: Floats, labels: Floats, start: int) -> int:
    """Return the first row from `start` on that is outside of the box, or whose label is; or the number of rows."""
    for t in range(start, len(rows)):
        if not (holds(box, rows[t]) and box.label[0] <= labels[t] <= box.label[1]):
            return t
    return len(rows)


@kernel
def rows_to_units(box: Box, rows: Floats, out: Floats) -> None:
    """Fill in rows in units of the box."""
    for t in range(len(rows)):
        row_to_units(box, rows[t], out[t])


@kernel
def labels_to_units(box: Box, labels: Floats, out: Floats) -> None:
    """Fill in labels in units of the box, from 0 to 1."""
    for t in range(len(labels)):
        out[t] = 0.5 + 0.5 * to_unit(labels[t], box.label[0], box.label[1])


@kernel
def labels_from_units(box: Box, labels: Floats) -> None:
    """Take labels in units of the box back to their own, in place."""
    for t in range(len(labels)):
        labels[t] = from_unit(labels[t], box.label[0], box.label[1])


@subkernel
def whiten_row(desk: Desk) -> None:
    """Fill in the desk's row in whitened coordinates, with the bits that it has among others."""
    row_to_units(desk.box, desk.x, desk.units)
    combine(desk.units, desk.directions, desk.coordinates)


@subkernel
def look_for(desk: Desk, t: int) -> int:
    """Return the centre nearest to the desk's row; what was found for it before in round t is not looked for again."""
    known = desk.asked[0] == t
    for k in range(len(desk.x)):
        known = known and desk.before[k] == desk.x[k]
    if not known:
        whiten_row(desk)
        desk.asked[1], desk.squared[0] = nearest(desk.centers.points, desk.coordinates, desk.trail)
        desk.asked[0] = t
        for k in range(len(desk.x)):
            desk.before[k] = desk.x[k]
    return int(desk.asked[1])


@subkernel
def learn_row(desk: Desk, t: int, kept: bool, label: float, active: int) -> bool:
    """Play round t with the desk's row; return False, with nothing changed, if box or packing have to grow for it."""
    low, high = desk.box.label
    if not (low <= label <= high and holds(desk.box, desk.x)):
        return False
    unit, rank = 0.5 + 0.5 * to_unit(label, low, high), rank_at(desk.starts, t, 1)
    far = is_far(desk.squared[0], t, rank, 0.0)
    return learn_label(desk.centers, t, far, int(kept), desk.coordinates, unit, active)


@kernel
def play_row(held: Held[Desk], t: int, learning: bool, kept: bool, label: float) -> float:
    """Return the prediction for the desk's row in round t, and play the round if told to.

    NaN, with nothing changed, if box or packing have to grow for that. There must be a centre already.
    """
    desk = held.value
    active = look_for(desk, t)
    made = from_unit(mean(desk.centers, active), desk.box.label[0], desk.box.label[1])
    if learning and not learn_row(desk, t, kept, label, active):
        made = np.nan
    return made
