"""Boxes that hold all rows and labels so far, and the change of units when one grows."""

import math
import sys
from typing import NamedTuple

import numpy as np

from ellipack._core import UnitBox
from ellipack.validation import Floats

_LARGEST = sys.float_info.max
_GROWTH = 0.1  # of its width at a time: tight enough to leave little of the unit ball empty


class Change(NamedTuple):
    """An affine change of units: of each feature in the unit ball, and of labels in [0, 1]."""

    slope: Floats
    offset: Floats
    label_slope: float
    label_offset: float


def empty(d: int) -> UnitBox:
    """Return a box that holds nothing yet."""
    return UnitBox(np.full(d, np.inf), np.full(d, -np.inf), np.array([np.inf, -np.inf]))


def grown(box: UnitBox, x: Floats, label: float) -> UnitBox:
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


def change(old: UnitBox, new: UnitBox) -> Change:
    """Return the change from units of one box to those of another that contains it."""
    root = np.sqrt(len(old.low))
    slope, offset = _affine(old.low, old.high, new.low, new.high)
    label_slope, label_offset = (float(each[0]) for each in _affine(*old.label[:, None], *new.label[:, None]))
    # From [-1, 1] to [0, 1], as labels are.
    return Change(slope, offset / root, label_slope, (label_offset + 1 - label_slope) / 2)


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
