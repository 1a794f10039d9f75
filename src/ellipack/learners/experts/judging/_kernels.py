"""Kriging what is known already, to judge the metric it is done in.

Whether one metric is better than another shows in the third digit, if at all: so single precision will do, in which
eight neighbourhoods are kriged at once. For that, each is brought to a size of one: distances by the farthest
neighbour's, and labels as they are given.
"""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.lanes._kernels import EIGHT, Eight, Singles, alike_in, load, roots, store
from ellipack.learners.experts._kernels import BESIDE, krige, put_beside
from ellipack.learners.experts.systems._kernels import entries, row_start
from ellipack.validation import Floats, Ints

LENGTH, NUGGET = 3.0, 0.05
"""Of the correlations, between those of the experts."""

_SQRT3 = 1.7320508075688772
_LEAST_REACH = 1e-150


class Bench(NamedTuple):
    """Room to krige eight neighbourhoods at once, side by side."""

    columns: Singles  # offsets from the judges, by coordinate
    squared: Singles  # distances from the judges
    labels: Singles  # less the judges'
    systems: Singles
    errors: Singles


def bench(kriged: int, d: int) -> Bench:
    """Return room for kriging from so many neighbours of d coordinates."""
    sizes = d * kriged, kriged, kriged, entries(kriged, BESIDE), 1
    columns, squared, labels, systems, errors = (np.zeros(EIGHT * size, dtype=np.float32) for size in sizes)
    return Bench(columns, squared, labels, systems, errors)


@subkernel
def matern(u: Eight) -> Eight:
    """Return Matern's correlation ``(1 + u) exp(-u)`` for u from 0 to 1.4, by a series to single precision."""
    x = 0.25 * u
    root = 1.0 - x * (1 / 4) * (1.0 - x * (1 / 5) * (1.0 - x * (1 / 6) * (1.0 - x * (1 / 7))))
    root = 1.0 - x * (1.0 - x * (1 / 2) * (1.0 - x * (1 / 3) * root))
    return (1.0 + u) * (root * root) * (root * root)


@subkernel
def judge(room: Bench, kriged: int, d: int) -> Eight:
    """Return kriging's predictions from eight neighbourhoods, all of which reach as far as 1."""
    columns, squared, labels, systems, _ = room
    # Distances first and correlations then: the processor waits for neither if it can work on several at once.
    for i in range(kriged):
        e = row_start(i, kriged + BESIDE) - i
        for j in range(i + 1, kriged):
            total = alike_in(systems, 0.0)
            for k in range(0, EIGHT * d * kriged, EIGHT * kriged):
                gap = load(columns, k + EIGHT * j) - load(columns, k + EIGHT * i)
                total = total + gap * gap
            store(systems, EIGHT * (e + j), total)
        store(systems, EIGHT * (e + kriged), load(squared, EIGHT * i))
        put_beside(systems, kriged, i, alike_in(systems, 0.0), alike_in(systems, 0.0))
    for e in range(0, EIGHT * row_start(kriged, kriged + BESIDE), EIGHT):
        store(systems, e, matern(roots(load(systems, e)) * (_SQRT3 / LENGTH)))
    for i in range(kriged):
        put_beside(systems, kriged, i, alike_in(systems, NUGGET), load(labels, EIGHT * i))
    return krige(systems, kriged)


@kernel
def fill_farthest(coordinates: Floats, judges: Ints, near: Ints, out: Floats) -> None:
    """Fill in how far the farthest of some points is from each judge, squared, with the bits that a search finds."""
    for row in range(len(judges)):
        out[row] = 0.0
        for other in near[row]:
            total = 0.0
            for k in range(coordinates.shape[1]):
                gap = coordinates[judges[row], k] - coordinates[other, k]
                total += gap * gap
            out[row] = max(out[row], total)


@subkernel
def seat(coordinates: Floats, labels: Floats, own: int, near: Ints, squared: Floats, room: Bench, lane: int) -> None:
    """Put the neighbourhood of a judge, all but the judge, into one lane of eight."""
    kriged = near.shape[0] - 1
    scale, at = 1.0 / max(math.sqrt(squared[kriged]), _LEAST_REACH), lane
    for j in range(kriged + 1):
        if near[j] != own and at < EIGHT * kriged:
            room.squared[at] = (math.sqrt(squared[j]) * scale) ** 2
            room.labels[at] = labels[near[j]] - labels[own]
            for k in range(coordinates.shape[1]):
                room.columns[EIGHT * kriged * k + at] = (coordinates[near[j], k] - coordinates[own, k]) * scale
            at += EIGHT


@kernel
def leave_one_out(coordinates: Floats, labels: Floats, judges: Ints, near: Ints, squared: Floats, room: Bench) -> float:
    """Return the sum of squared errors of kriging each judge's label from its neighbours' without its own.

    Labels are to be about as large as 1. `near` and `squared` have a row for each judge: the nearest points, itself
    most likely among them, and their squared distances.
    """
    kriged, d, total = near.shape[1] - 1, coordinates.shape[1], 0.0
    for first in range(0, len(judges), EIGHT):
        for lane in range(EIGHT):
            row = min(first + lane, len(judges) - 1)
            seat(coordinates, labels, judges[row], near[row], squared[row], room, lane)
        store(room.errors, 0, judge(room, kriged, d))
        for lane in range(min(EIGHT, len(judges) - first)):
            total += float(room.errors[lane]) ** 2
    return total
