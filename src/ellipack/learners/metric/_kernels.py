"""Compiled rounds of the practical learner: encode, find neighbours, ask the experts, mix, and learn."""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.learners._kernels import found, take_in
from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares, dot, regress, reward, weigh
from ellipack.learners.experts._kernels import Neighborhood, local_predictions
from ellipack.packing.centers import Centers
from ellipack.packing.tree._kernels import k_nearest, nearest
from ellipack.packing.tree.growth._kernels import insert
from ellipack.packing.tree.state import LEAVES, POINTS, SIZE, Tree
from ellipack.validation import Floats, Ints

FARTHEST = 1e6
"""Standard deviations at which a feature is held: far beyond any sense, well within what squares can bear."""

SPARE = 4
"""Leaves that a tree must have to spare before a point is inserted without asking."""

COUNT, MEAN, SQUARES, LOW, HIGH = 0, 1, 2, 3, 4
"""Where the statistics of the labels stand."""


class View(NamedTuple):
    """A way to see the features, and a metric on what is seen.

    Attributes
    ----------
    knots : for each feature (a column), values between which ranks are interpolated; no rows: values count as such.
    shift, scale : take what is seen to zero mean and unit deviation; frozen, like the knots, until the phase ends.
    directions : the columns that whitening projects on.
    coordinates, points : the centres in whitened coordinates, by row and for searching.
    gop : the sum of outer products of slopes, with respect to what is seen, since the phase began.
    """

    knots: Floats
    shift: Floats
    scale: Floats
    directions: Floats
    coordinates: Floats
    points: Tree
    gop: Floats


class Memory(NamedTuple):
    """The centres that all views share: mean positions, label sums and counts."""

    rows: Floats
    label_sums: Floats
    label_counts: Ints


class Machine(NamedTuple):
    """The practical learner as its kernels see it: flat arrays, most of them moved on in place."""

    views: tuple[View, ...]
    memory: Memory
    packing: Centers  # Algorithm 1's, in the first view's coordinates over their reach
    rank_starts: Ints
    reach: Floats
    ridge: LeastSquares
    mixture: Bernstein
    stack: LeastSquares
    top: Bernstein
    labels: Floats
    features: Floats  # running means, and sums of squared deviations
    clock: Ints  # rounds in all, rounds of the phase, and the most centres that Algorithm 1 may have
    widening: Floats


class Room(NamedTuple):
    """Room to work in for one thread, and what the last consultation left for learning."""

    near: Neighborhood
    positions: Ints
    standard: Floats
    queries: Floats
    seen: Floats
    scaled: Floats
    predictions: Floats
    weights: Floats
    deviations: Floats
    pair: Floats
    pair_weights: Floats
    slopes: Floats
    gradient: Floats
    gain: Floats
    lanes: Floats


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
def see(view: View, x: Floats, out: Floats) -> None:
    """Fill in the features as a view sees them, in standard units."""
    for k in range(len(x)):
        value = rank_of(x[k], view.knots, k) if view.knots.shape[0] > 0 else x[k]
        standard = (value - view.shift[k]) / view.scale[k]
        out[k] = min(max(standard, -FARTHEST), FARTHEST)


@subkernel
def whiten(view: View, seen: Floats, out: Floats) -> None:
    """Fill in whitened coordinates."""
    out[:] = 0.0
    for k in range(len(seen)):
        for j in range(len(seen)):
            out[j] += seen[k] * view.directions[k, j]


@kernel
def see_rows(view: View, rows: Floats, out: Floats) -> None:
    """Fill in many rows as a view sees them."""
    for t in range(len(rows)):
        see(view, rows[t], out[t])


@kernel
def embed(view: View, rows: Floats, out: Floats) -> None:
    """Fill in the whitened coordinates of many rows, each with the bits it would have alone."""
    seen = np.empty(rows.shape[1])
    for t in range(len(rows)):
        see(view, rows[t], seen)
        whiten(view, seen, out[t])


@subkernel
def look_around(machine: Machine, v: int, room: Room, linear: float) -> int:
    """Find the neighbours of the query in a view and fill in their neighbourhood; return how many there are."""
    view, memory, near = machine.views[v], machine.memory, room.near
    query = room.queries[v]
    count = min(len(room.positions), view.points.counters[POINTS])
    k_nearest(view.points, query, np.inf, room.positions[:count], near.squared[:count], room.lanes)
    base = memory.label_sums[room.positions[0]] / memory.label_counts[room.positions[0]]
    first = machine.views[0]
    for j in range(count):
        at = room.positions[j]
        near.counts[j] = memory.label_counts[at]
        near.labels[j] = memory.label_sums[at] / memory.label_counts[at] - base
        for k in range(len(query)):
            near.offsets[j, k] = view.coordinates[at, k] - query[k]
        if j < len(near.distances):
            see(first, memory.rows[at], room.seen)
            trend = machine.ridge.coefficients[len(query)] - linear
            near.trend[j] = trend + dot(machine.ridge.coefficients[: len(query)], room.seen)
    return int(count)


@subkernel
def ask_experts(machine: Machine, x: Floats, room: Room) -> None:
    """Fill in every expert's prediction, held to the range of the labels seen, a little widened."""
    labels, d = machine.labels, len(x)
    for v in range(len(machine.views)):
        see(machine.views[v], x, room.standard[:d])
        whiten(machine.views[v], room.standard[:d], room.queries[v])
    see(machine.views[0], x, room.standard[:d])
    room.standard[d] = 1.0
    linear = dot(machine.ridge.coefficients, room.standard)
    for k in range(d):
        room.scaled[k] = room.queries[0, k] / machine.reach[0]
    active, _ = nearest(machine.packing.points, room.scaled, room.lanes)
    room.predictions[0], room.predictions[1], room.predictions[2] = labels[MEAN], linear, labels[MEAN]
    if active >= 0 and machine.packing.label_counts[active] > 0:
        room.predictions[2] = machine.packing.label_sums[active] / machine.packing.label_counts[active]
    local = (len(room.predictions) - 3) // len(machine.views)
    # From the last view to the first, so that the first one's nearest centre is what is left for learning.
    for v in range(len(machine.views) - 1, -1, -1):
        count = look_around(machine, v, room, linear)
        own = room.predictions[3 + v * local : 3 + (v + 1) * local]
        local_predictions(room.near, count, own, room.slopes[v])
        base = machine.memory.label_sums[room.positions[0]] / machine.memory.label_counts[room.positions[0]]
        for k in range(local):
            own[k] += base
    slack = machine.widening[0] * (labels[HIGH] - labels[LOW])
    for k in range(len(room.predictions)):
        held = min(max(room.predictions[k], labels[LOW] - slack), labels[HIGH] + slack)
        # An overflow on the way may have left NaN.
        room.predictions[k] = labels[MEAN] if math.isnan(held) else held


@subkernel
def consult(machine: Machine, x: Floats, room: Room) -> float:
    """Return the prediction for a row; leaves in `room` what `learn_row` needs. Nothing of the machine changes."""
    labels = machine.labels
    if labels[COUNT] == 0.0:
        return 0.0
    ask_experts(machine, x, room)
    weigh(machine.mixture, room.weights)
    mixture = dot(room.weights, room.predictions)
    stacked = mixture
    for k in range(len(room.predictions)):
        room.deviations[k] = room.predictions[k] - mixture
        stacked += machine.stack.coefficients[k] * room.deviations[k]
    slack = machine.widening[0] * (labels[HIGH] - labels[LOW])
    room.pair[0] = mixture
    room.pair[1] = min(max(stacked, labels[LOW] - slack), labels[HIGH] + slack)
    weigh(machine.top, room.pair_weights)
    return dot(room.pair_weights, room.pair)


@subkernel
def learn_row(machine: Machine, x: Floats, label: float, prediction: float, room: Room) -> None:
    """Move everything on by a round, after `consult` on the same row; there must be room for one more centre."""
    if machine.labels[COUNT] > 0.0:
        reward(machine.top, room.pair, prediction, label)
        reward(machine.mixture, room.predictions, room.pair[0], label)
        regress(machine.stack, room.deviations, label - room.pair[0], room.gain[: len(room.deviations)])
        add_slopes(machine, room)
    else:
        for v in range(len(machine.views)):
            see(machine.views[v], x, room.standard[: len(x)])
            whiten(machine.views[v], room.standard[: len(x)], room.queries[v])
        see(machine.views[0], x, room.standard[: len(x)])
        room.standard[len(x)] = 1.0
        for k in range(len(x)):
            room.scaled[k] = room.queries[0, k] / machine.reach[0]
    regress(machine.ridge, room.standard, label, room.gain[: len(room.standard)])
    pack(machine, label, room)
    remember(machine, x, label, room)
    count_in(machine, x, label)


@subkernel
def add_slopes(machine: Machine, room: Room) -> None:
    """Add to each view's gradient outer product the slope that its first local fit has found."""
    d, fitted = room.queries.shape[1], room.slopes.shape[1]
    for v in range(len(machine.views)):
        view = machine.views[v]
        for i in range(d):
            # Coordinates that take no part in local fits have the global regression's slope.
            room.gradient[i] = machine.ridge.coefficients[i] if fitted < d else 0.0
        if fitted < d:
            for j in range(fitted):
                along = 0.0
                for i in range(d):
                    along += view.directions[i, j] * machine.ridge.coefficients[i]
                norm = 0.0
                for i in range(d):
                    norm += view.directions[i, j] * view.directions[i, j]
                for i in range(d):
                    room.gradient[i] -= view.directions[i, j] * along / norm
        for i in range(d):
            for j in range(fitted):
                room.gradient[i] += view.directions[i, j] * room.slopes[v, j]
        for i in range(d):
            for j in range(d):
                view.gop[i, j] += room.gradient[i] * room.gradient[j]


@subkernel
def pack(machine: Machine, label: float, room: Room) -> None:
    """Play a round of Algorithm 1 in the present metric."""
    t, rank = machine.clock[1] + 1, 1
    while rank <= len(machine.rank_starts) and machine.rank_starts[rank - 1] <= t:
        rank += 1
    centers = machine.packing
    active, squared = nearest(centers.points, room.scaled, room.lanes)
    far = math.sqrt(squared) > float(t) ** (-1.0 / (1.0 + rank))
    if active < 0 or (far and centers.points.counters[POINTS] < machine.clock[2]):
        active = centers.points.counters[POINTS]
        found(centers, room.scaled, t)
    take_in(centers, active, label, 1)


@subkernel
def remember(machine: Machine, x: Floats, label: float, room: Room) -> None:
    """Let the row be absorbed by its nearest centre, if that is in the same place, or else found one."""
    memory, first = machine.memory, machine.views[0]
    if first.points.counters[POINTS] > 0 and room.near.squared[0] == 0.0:
        at = room.positions[0]
        memory.label_sums[at] += label
        memory.label_counts[at] += 1
        for k in range(len(x)):
            memory.rows[at, k] += (x[k] - memory.rows[at, k]) / memory.label_counts[at]
        return
    at = first.points.counters[POINTS]
    memory.rows[at] = x
    memory.label_sums[at] = label
    memory.label_counts[at] = 1
    for v in range(len(machine.views)):
        machine.views[v].coordinates[at] = room.queries[v]
        insert(machine.views[v].points, room.queries[v])


@subkernel
def count_in(machine: Machine, x: Floats, label: float) -> None:
    """Move the running statistics of labels and features on, and the clocks."""
    labels, features = machine.labels, machine.features
    labels[COUNT] += 1.0
    change = label - labels[MEAN]
    labels[MEAN] += change / labels[COUNT]
    labels[SQUARES] += change * (label - labels[MEAN])
    labels[LOW] = label if labels[COUNT] == 1.0 else min(labels[LOW], label)
    labels[HIGH] = label if labels[COUNT] == 1.0 else max(labels[HIGH], label)
    for k in range(len(x)):
        step = x[k] - features[0, k]
        features[0, k] += step / labels[COUNT]
        features[1, k] += step * (x[k] - features[0, k])
    machine.clock[0] += 1
    machine.clock[1] += 1


@subkernel
def has_leaves(tree: Tree) -> bool:
    """Whether a tree has leaves enough to spare for one more point, whatever has to be parted for it."""
    return bool(tree.blocks.shape[0] - tree.counters[LEAVES] >= SPARE)


@subkernel
def has_room(machine: Machine) -> bool:
    """Whether one more centre finds room everywhere."""
    room = machine.views[0].points.counters[POINTS] < len(machine.memory.label_sums)
    room = room and has_leaves(machine.packing.points)
    for v in range(len(machine.views)):
        room = room and has_leaves(machine.views[v].points)
    return room


@kernel
def closest_earlier(tree: Tree, nearest_of: Ints, apart: Floats) -> None:
    """Fill in, for each point, the nearest earlier point of the same leaf and the squared distance to it.

    A point that is the earliest of its leaf keeps what was there.
    """
    d = tree.blocks.shape[1]
    for leaf in range(tree.counters[LEAVES]):
        for a in range(tree.links[2 * leaf, SIZE]):
            point = tree.positions[leaf, a]
            for b in range(tree.links[2 * leaf, SIZE]):
                other = tree.positions[leaf, b]
                if other < point:
                    squared = 0.0
                    for k in range(d):
                        difference = tree.blocks[leaf, k, a] - tree.blocks[leaf, k, b]
                        squared += difference * difference
                    if squared < apart[point] or (squared == apart[point] and other < nearest_of[point]):
                        apart[point], nearest_of[point] = squared, other


@kernel
def run_rounds(machine: Machine, X: Floats, labels: Floats, predictions: Floats, room: Room) -> int:
    """Predict row by row, and learn as long as there are labels; return how many rows were done.

    Stops early where there is no room for another centre. Without labels nothing of the machine changes. (One
    kernel for both, because compiling it is what a first call waits for.)
    """
    for t in range(len(X)):
        if t < len(labels) and not has_room(machine):
            return t
        predictions[t] = consult(machine, X[t], room)
        if t < len(labels):
            learn_row(machine, X[t], labels[t], predictions[t], room)
    return len(X)
