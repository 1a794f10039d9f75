"""Compiled loops of the paper's learners: Algorithm 1's rounds."""

import math

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.packing.centers import Centers
from ellipack.packing.tree._kernels import TRAIL, nearest
from ellipack.packing.tree.growth._kernels import make_room, put
from ellipack.packing.tree.state import POINTS
from ellipack.validation import Floats, Ints

AHEAD, SLACK = 256, 1e-9
"""Rounds for which a bound on the radius is worked out at once, and more than rounding can make of a power."""


@subkernel
def rank_at(starts: Ints, t: int, rank: int) -> int:
    """Return the effective rank at round t, which is `rank` or more."""
    while rank <= len(starts) and starts[rank - 1] <= t:
        rank += 1
    return rank


@subkernel
def radius_at(t: int, rank: int) -> float:
    """Return how far a centre reaches in round t."""
    return math.pow(t, -1.0 / (1.0 + rank))


@subkernel
def is_far(squared: float, t: int, rank: int, near: float) -> bool:
    """Whether a point at this squared distance is beyond the radius of round t, which is `near` at least.

    To work out a power takes longer than a bound on it, which mostly will do.
    """
    distance = math.sqrt(squared)
    return distance > near and distance > radius_at(t, rank)


@subkernel
def learn_label(centers: Centers, t: int, far: bool, kept: int, point: Floats, label: float, active: int) -> bool:
    """Let the nearest centre take in the label, or a new one; return False, with nothing changed, if there is no room.

    `active` is the nearest centre, `far` whether it is too far. Room is what `ellipack.packing.tree.growth` makes.
    """
    new = centers.points.counters[POINTS]
    room = not far or found(centers, point, t)
    if room:
        take_in(centers, new if far else active, label, kept if far else 1)
    return room


@subkernel
def play_rounds(
    centers: Centers,
    starts: Ints,
    clock: int,
    kept: int,
    coordinates: Floats,
    labels: Floats,
    predictions: Floats,
    trail: Floats,
) -> int:
    """Play rounds ``clock + 1, ...`` of Algorithm 1 until the rows run out, or the room in a leaf; say how many."""
    rank, row, room, near, until = 1, 0, True, 0.0, 0
    while room and row < len(coordinates):
        t = clock + row + 1
        rank = rank_at(starts, t, rank)
        if t > until:  # radii fall from round to round, and rise with the rank
            until = t + AHEAD
            near = radius_at(until, rank) * (1.0 - SLACK)
        if centers.points.counters[POINTS] == 0:
            found(centers, coordinates[row], t)
        active, squared = nearest(centers.points, coordinates[row], trail)
        predictions[row] = mean(centers, active)
        far = is_far(squared, t, rank, near)
        room = learn_label(centers, t, far, kept, coordinates[row], labels[row], active)
        row += room
    return row


@kernel
def run_rounds(
    centers: Centers, starts: Ints, clock: int, kept: int, coordinates: Floats, labels: Floats, predictions: Floats
) -> int:
    """Play rounds ``clock + 1, ...`` of Algorithm 1, until the rows or the room for centres run out; say how many.

    `starts` are the rounds at which the effective rank goes up. `kept` is how many labels a new centre starts
    with: its founder's (1) or none (0). See `ellipack.learners.packing` for the paper's errata.
    """
    done, room, trail = 0, True, np.empty(TRAIL)
    while room and done < len(coordinates):
        done += play_rounds(
            centers, starts, clock + done, kept, coordinates[done:], labels[done:], predictions[done:], trail
        )
        room = done == len(coordinates) or make_room(centers.points, coordinates[done])
    return done


@subkernel
def found(centers: Centers, point: Floats, t: int) -> bool:
    """Add a centre that has taken in no label yet; return False, with nothing changed, if its leaf has no room."""
    new = centers.points.counters[POINTS]
    room = put(centers.points, point)
    if room:
        centers.label_sums[new] = 0.0
        centers.label_counts[new] = 0
        centers.founded[new] = t
    return room


@subkernel
def take_in(centers: Centers, active: int, label: float, times: int) -> None:
    """Let a centre take in a label, once or not at all."""
    centers.label_sums[active] += times * label
    centers.label_counts[active] += times


@subkernel
def mean(centers: Centers, active: int) -> float:
    """Return the mean label of a centre, or 1/2 if there is no centre or it has taken in no label."""
    if active < 0 or centers.label_counts[active] == 0:
        return 0.5
    return float(centers.label_sums[active] / centers.label_counts[active])
