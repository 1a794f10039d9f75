"""Compiled loops of the paper's learners: Algorithm 1's rounds and its predictions."""

import math

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.packing.centers import Centers
from ellipack.packing.tree._kernels import TRAIL, nearest
from ellipack.packing.tree.growth._kernels import make_room, put
from ellipack.packing.tree.state import POINTS
from ellipack.validation import Floats, Ints


@subkernel
def rank_at(starts: Ints, t: int, rank: int) -> int:
    """Return the effective rank at round t, which is `rank` or more."""
    while rank <= len(starts) and starts[rank - 1] <= t:
        rank += 1
    return rank


@subkernel
def learn_label(
    centers: Centers, t: int, rank: int, kept: int, point: Floats, label: float, near: tuple[int, float]
) -> bool:
    """Let the nearest centre take in the label, or a new one; return False, with nothing changed, if there is no room.

    `near` is the nearest centre and its squared distance. Room is what `ellipack.packing.tree.growth` makes.
    """
    active, squared = near
    far = math.sqrt(squared) > float(t) ** (-1.0 / (1.0 + rank))
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
    rank, row, room = 1, 0, True
    while room and row < len(coordinates):
        t = clock + row + 1
        rank = rank_at(starts, t, rank)
        if centers.points.counters[POINTS] == 0:
            found(centers, coordinates[row], t)
        active, squared = nearest(centers.points, coordinates[row], trail)
        predictions[row] = mean(centers, active)
        room = learn_label(centers, t, rank, kept, coordinates[row], labels[row], (active, squared))
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
