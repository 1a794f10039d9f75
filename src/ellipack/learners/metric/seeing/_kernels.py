"""How rows are seen: wild features held, ranks or standard units, and whitened coordinates in every view."""

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.learners.metric.machine import HIGH, LOW, WILD, View
from ellipack.metric._kernels import combine
from ellipack.validation import Floats

FARTHEST = 1e6
"""Standard deviations at which a feature is held: far beyond any sense, well within what squares can bear."""

FREE = 5
"""Labels that are taken as they come: the range of fewer says too little."""

BEYOND = 3.0
"""How far beyond the range so far a number is wild, in widths of it."""


@subkernel
def wild(value: float, low: float, high: float, before: float) -> bool:
    """Whether a number is too far from the range of those so far to be believed, `before` of them having been wild.

    Ten times as far for each of those: what comes again and again is believed in the end. While all are equal,
    nothing is wild.
    """
    width = BEYOND * (high - low)
    if width <= 0.0 or low - width <= value <= high + width:
        return False
    width *= 10.0**before
    return bool(value < low - width or value > high + width)


@subkernel
def hold(features: Floats, enough: bool, x: Floats, out: Floats) -> None:
    """Fill in a row, its wild features held to a width of their range beyond it, if `enough` rows were seen."""
    for k in range(len(x)):
        out[k] = x[k]
        low, high = features[LOW, k], features[HIGH, k]
        if enough and wild(x[k], low, high, features[WILD, k]):
            out[k] = min(max(x[k], low - (high - low)), high + (high - low))


@subkernel
def rank_of(value: float, knots: Floats, feature: int) -> float:
    """Return where a value stands among the knots of a feature, from 0 to 1, interpolated between them."""
    low, high = 0, knots.shape[0] - 1
    if value <= knots[low, feature]:
        return 0.0
    if value >= knots[high, feature]:
        return 1.0
    while high - low > 1:  # the first knot is below the value, the last is not
        middle = (low + high) // 2
        if knots[middle, feature] < value:
            low = middle
        else:
            high = middle
    # Among equal knots the value stands in the middle of them.
    last = high
    while last + 1 < knots.shape[0] and knots[last + 1, feature] == value:
        last += 1
    if knots[high, feature] == value:
        return float(0.5 * (high + last) / (knots.shape[0] - 1))
    part = (value - knots[low, feature]) / (knots[high, feature] - knots[low, feature])
    return float((low + part) / (knots.shape[0] - 1))


@subkernel
def see(knots: Floats, shift: Floats, scale: Floats, x: Floats, out: Floats) -> None:
    """Fill in the features as a view sees them, in standard units."""
    for k in range(len(x)):
        value = rank_of(x[k], knots, k) if knots.shape[0] > 0 else x[k]
        out[k] = min(max((value - shift[k]) / scale[k], -FARTHEST), FARTHEST)


@kernel
def see_rows(view: View, rows: Floats, out: Floats) -> None:
    """Fill in many rows as a view sees them."""
    for t in range(len(rows)):
        see(view.knots, view.shift, view.scale, rows[t], out[t])


@kernel
def embed(view: View, rows: Floats, out: Floats) -> None:
    """Fill in the whitened coordinates of many rows, each with the bits it would have alone."""
    seen = np.empty(rows.shape[1])
    for t in range(len(rows)):
        see(view.knots, view.shift, view.scale, rows[t], seen)
        combine(seen, view.directions, out[t])


@subkernel
def encode(views: tuple[View, ...], x: Floats, standard: Floats, queries: Floats) -> None:
    """Fill in the whitened coordinates of a row in every view; its standard units in the first, and the constant 1."""
    for v in range(len(views) - 1, -1, -1):
        view = views[v]
        see(view.knots, view.shift, view.scale, x, standard[: len(x)])
        combine(standard[: len(x)], view.directions, queries[v])
    standard[len(x)] = 1.0
