"""Compiled rounds of the practical learner: see the row, ask the experts, mix what they say, and learn."""

import math

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.held._kernels import Held
from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares, dot, weigh
from ellipack.learners.metric.asking._kernels import ask_views
from ellipack.learners.metric.learning._kernels import (
    add_slope,
    count_in,
    has_room,
    learn_mixing,
    learn_regressions,
    play,
    remember,
)
from ellipack.learners.metric.machine import COUNT, HIGH, LOW, MEAN, WILD, Desk, Machine, Mixing, Room
from ellipack.learners.metric.seeing._kernels import FREE, encode, hold, wild
from ellipack.packing.tree._kernels import k_nearest, position_of
from ellipack.validation import Floats


@subkernel
def within_labels(value: float, labels: Floats, widening: float) -> float:
    """Return a prediction held to the range of the labels, a little widened; their mean, if it is NaN by overflow."""
    slack = widening * (labels[HIGH] - labels[LOW])
    held = min(max(value, labels[LOW] - slack), labels[HIGH] + slack)
    return float(labels[MEAN] if math.isnan(held) else held)


@subkernel
def mix(
    mixture: Bernstein, stack: LeastSquares, top: Bernstein, labels: Floats, widening: float, room: Mixing
) -> float:
    """Return the prediction that the experts' come to, each of them held to the range of the labels first."""
    predictions, weights, deviations, pair, pair_weights = room
    for k in range(len(predictions)):
        predictions[k] = within_labels(predictions[k], labels, widening)
    weigh(mixture, weights)
    mean = dot(weights, predictions)
    stacked = mean
    for k in range(len(predictions)):
        deviations[k] = predictions[k] - mean
        stacked += stack.coefficients[k] * deviations[k]
    pair[0], pair[1] = mean, within_labels(stacked, labels, widening)
    weigh(top, pair_weights)
    return dot(pair_weights, pair)


@subkernel
def consult(machine: Machine, x: Floats, room: Room) -> tuple[float, int, float]:
    """Return the prediction for a row, and Algorithm 1's centre nearest to it with its squared distance.

    What learning the row takes is left in the room. Nothing of the machine changes.
    """
    known, mixing, scaled, prediction = machine.labels, room.mixing, room.scaled, 0.0
    hold(machine.features, known[COUNT] >= FREE, x, room.held)
    encode(machine.views, room.held, room.standard, room.queries)
    for k in range(len(scaled)):
        scaled[k] = room.queries[0, k] / machine.reach[0]
    # Found as neighbours are, and not by `nearest`: that would be quicker by less than compiling both here takes.
    first, squared = room.positions[:1], room.near.squared[:1]
    found = k_nearest(machine.packing.points, scaled, np.inf, first, squared, room.trail)
    active, away = (position_of(first[0]), float(squared[0])) if found else (-1, np.inf)
    if known[COUNT] > 0.0:
        linear, fading, out = machine.ridge.coefficients, machine.fading.coefficients, mixing.predictions
        out[0], out[1], out[2] = known[MEAN], dot(linear, room.standard), known[MEAN]
        out[3] = dot(fading, room.standard)
        if active >= 0:
            out[2] = machine.packing.label_sums[active] / machine.packing.label_counts[active]
        ask_views(machine.views, machine.memory, machine.clock[0], linear, fading, room)
        prediction = mix(machine.mixture, machine.stack, machine.top, known, machine.widening[0], mixing)
    return prediction, active, away


@subkernel
def learn_row(machine: Machine, x: Floats, label: float, asked: tuple[float, int, float], room: Room) -> bool:
    """Move everything on by a round, `asked` being what `consult` has just returned for the row.

    Returns False, with nothing changed, if the row, were it a centre, would find no room. From a wild label nothing is
    learned but that there was one.
    """
    known, ridge, gain = machine.labels, machine.ridge, room.gain[: len(room.standard)]
    if known[COUNT] >= FREE and wild(label, known[LOW], known[HIGH], known[WILD]):
        machine.clock[0] += 1
        known[WILD] += 1.0
        return True
    if not has_room(machine, room.queries, room.scaled):
        return False
    machine.clock[0] += 1
    if known[COUNT] > 0.0:
        learn_mixing(machine.mixture, machine.stack, machine.top, room.mixing, asked[0], label, room.gain)
        for v in range(len(machine.views)):
            view = machine.views[v]
            add_slope(view.directions, ridge.coefficients, room.slopes[v], room.gradient, view.gop)
    learn_regressions(ridge, machine.fading, known, room.slopes.shape[1], room.standard, label, gain)
    play(machine.packing, machine.clock, machine.rank_starts, asked[1], asked[2], room.scaled, label)
    remember(machine.views, machine.memory, machine.clock[0], room, label)
    count_in(known, machine.features, label, x, room.held)
    return True


@subkernel
def same_row(left: Floats, right: Floats) -> bool:
    """Whether two rows have the same bits (0 and -0 are equal, and are told apart here)."""
    same = True
    for k in range(len(left)):
        same = same and left[k] == right[k] and math.copysign(1.0, left[k]) == math.copysign(1.0, right[k])
    return same


@kernel
def run_rounds(held: Held[Desk], count: int, learning: bool) -> int:
    """Predict the first rows on the desk one by one, and learn from them if told to; return how many were done.

    Stops early where a row, were it a centre, would find no room. Without learning nothing of the machine changes. What
    predicting a row in the same round has left in the room is not worked out again.
    """
    desk = held.value
    machine, asked, made = desk.machine, desk.asked, desk.made
    for t in range(count):
        x = desk.rows[t]
        if asked[0] != machine.clock[0] or not same_row(desk.before, x):
            made[0], asked[1], made[1] = consult(machine, x, desk.room)
            asked[0] = machine.clock[0]
            for k in range(len(x)):
                desk.before[k] = x[k]
        desk.predictions[t] = made[0]
        if learning:
            if not learn_row(machine, x, desk.labels[t], (made[0], asked[1], made[1]), desk.room):
                return t
            asked[0] = -1
    return count
