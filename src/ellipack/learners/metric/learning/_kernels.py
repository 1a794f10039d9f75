"""What each part of the practical learner learns from a round."""

import math

from ellipack._kernels import subkernel
from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares, fade, regress, reward
from ellipack.learners.metric.machine import (
    COUNT,
    HIGH,
    LOW,
    MEAN,
    SQUARES,
    WILD,
    Machine,
    Memory,
    Mixing,
    Room,
    View,
)
from ellipack.packing.centers import Centers
from ellipack.packing.tree.growth._kernels import fits, put
from ellipack.packing.tree.state import POINTS, ROOT, Tree
from ellipack.validation import Floats, Ints

FADED_AT_ONCE = 4.0
"""Rounds after which the regression that fades forgets a little, and so much more: that costs less than every round."""

FADING_PART, ROWS_A_COEFFICIENT = 8.0, 4.0
"""The regression that fades goes by an eighth of all rounds, but no fewer than so many for each coordinate that takes
part in local fits, and one."""


@subkernel
def add_slope(directions: Floats, linear: Floats, slope: Floats, gradient: Floats, gop: Floats) -> None:
    """Add to a view's gradient outer product the slope that its first local fit has found.

    Coordinates that take no part in local fits have the global regression's slope, `linear`.
    """
    d, fitted = len(gradient), len(slope)
    for i in range(d):
        gradient[i] = linear[i] if fitted < d else 0.0
    if fitted < d:
        for j in range(fitted):
            along = norm = 0.0
            for i in range(d):
                along += directions[i, j] * linear[i]
                norm += directions[i, j] * directions[i, j]
            for i in range(d):
                gradient[i] -= directions[i, j] * along / norm
    for i in range(d):
        for j in range(fitted):
            gradient[i] += directions[i, j] * slope[j]
    for i in range(d):
        for j in range(d):
            gop[i, j] += gradient[i] * gradient[j]


@subkernel
def count_in(labels: Floats, features: Floats, label: float, x: Floats, held: Floats) -> None:
    """Move the running statistics of labels and features on; a range is that of what was not wild."""
    first = labels[COUNT] == 0.0
    labels[COUNT] += 1.0
    change = label - labels[MEAN]
    labels[MEAN] += change / labels[COUNT]
    labels[SQUARES] += change * (label - labels[MEAN])
    labels[LOW] = label if first else min(labels[LOW], label)
    labels[HIGH] = label if first else max(labels[HIGH], label)
    for k in range(len(x)):
        step = held[k] - features[MEAN, k]
        features[MEAN, k] += step / labels[COUNT]
        features[SQUARES, k] += step * (held[k] - features[MEAN, k])
        if held[k] != x[k]:
            features[WILD, k] += 1.0
        else:
            features[LOW, k] = x[k] if first else min(features[LOW, k], x[k])
            features[HIGH, k] = x[k] if first else max(features[HIGH, k], x[k])


@subkernel
def fits_in(tree: Tree, point: Floats) -> bool:
    """Whether a tree has room for a point."""
    return fits(tree.links, tree.splits, tree.counters[ROOT], point)


@subkernel
def has_room(machine: Machine, queries: Floats, scaled: Floats) -> bool:
    """Whether one more centre finds room everywhere, given its coordinates."""
    views = machine.views
    room = views[0].points.counters[POINTS] < len(machine.memory.label_sums) and fits_in(machine.packing.points, scaled)
    for v in range(len(views)):
        room = room and fits_in(views[v].points, queries[v])
    return room


@subkernel
def learn_mixing(
    mixture: Bernstein, stack: LeastSquares, top: Bernstein, room: Mixing, mixed: float, label: float, gain: Floats
) -> None:
    """Let the aggregations and the stack between them learn from a round."""
    predictions, _, deviations, pair, _ = room
    reward(top, pair, mixed, label)
    reward(mixture, predictions, pair[0], label)
    regress(stack, deviations, label - pair[0], gain[: len(deviations)])


@subkernel
def learn_regressions(
    ridge: LeastSquares, fading: LeastSquares, known: Floats, fitted: int, x: Floats, label: float, gain: Floats
) -> None:
    """Let the global regressions learn from a row in standard units."""
    regress(ridge, x, label, gain)
    if known[COUNT] % FADED_AT_ONCE == 0.0:
        span = max(known[COUNT] / FADING_PART, ROWS_A_COEFFICIENT * (fitted + 1.0))
        fade(fading, span / FADED_AT_ONCE, gain)
    regress(fading, x, label, gain)


@subkernel
def play(
    centers: Centers, clock: Ints, rank_starts: Ints, active: int, away: float, point: Floats, label: float
) -> None:
    """Play a round of Algorithm 1, whose nearest centre is `active` and so far `away` (squared)."""
    clock[1] += 1
    rank = 1
    while rank <= len(rank_starts) and rank_starts[rank - 1] <= clock[1]:
        rank += 1
    far = math.sqrt(away) > float(clock[1]) ** (-1.0 / (1.0 + rank))
    if active < 0 or (far and centers.points.counters[POINTS] < clock[2]):
        active = centers.points.counters[POINTS]
        put(centers.points, point)
        centers.label_sums[active], centers.label_counts[active], centers.founded[active] = 0.0, 0, clock[1]
    centers.label_sums[active] += label
    centers.label_counts[active] += 1


@subkernel
def remember(views: tuple[View, ...], memory: Memory, clock: int, room: Room, label: float) -> None:
    """Let a row be absorbed by the nearest centre, if that is in the same place, or else found one."""
    rows, sums, counts, rounds = memory
    x, at = room.held, room.positions[0]
    size = views[0].points.counters[POINTS]
    if size > 0 and room.near.squared[0] == 0.0:
        sums[at] += label
        rounds[at] += clock
        counts[at] += 1
        for k in range(len(x)):
            rows[at, k] += (x[k] - rows[at, k]) / counts[at]
    else:
        sums[size], counts[size], rounds[size] = label, 1, clock
        for k in range(len(x)):
            rows[size, k] = x[k]
        for v in range(len(views)):
            put(views[v].points, room.queries[v])
