"""Compiled rounds of the practical learner: encode, find neighbours, ask the experts, mix, and learn."""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.held._kernels import Held
from ellipack.lanes._kernels import FOUR, alike, at_least, load, no_more_than, store
from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares, dot, fade, regress, reward, weigh
from ellipack.learners.experts._kernels import Fit, Kriging, Neighborhood, local_predictions
from ellipack.learners.experts.names import GLOBAL
from ellipack.metric._kernels import combine
from ellipack.packing._kernels import LANES, before, block_distances
from ellipack.packing.centers import Centers
from ellipack.packing.tree._kernels import k_nearest, place_of, position_of
from ellipack.packing.tree.growth._kernels import fits, put
from ellipack.packing.tree.state import LEAVES, POINTS, ROOT, SIZE, Tree
from ellipack.validation import Floats, Ints

FARTHEST = 1e6
"""Standard deviations at which a feature is held: far beyond any sense, well within what squares can bear."""

MEAN, SQUARES, LOW, HIGH, WILD, COUNT = range(6)
"""Where the statistics of the labels stand, and all but the last of each feature's: mean, sum of squared deviations,
least and greatest, how many wild ones there were in the phase, how many others in all."""

FREE = 5
"""Labels that are taken as they come: the range of fewer says too little."""

BEYOND = 3.0
"""How far beyond the range so far a number is wild, in widths of it."""

FADED_AT_ONCE = 4.0
"""Rounds after which the regression that fades forgets a little, and so much more: that costs less than every round."""

FADING_PART, ROWS_A_COEFFICIENT = 8.0, 4.0
"""The regression that fades goes by an eighth of all rounds, but no fewer than so many for each coordinate that takes
part in local fits, and one."""


class View(NamedTuple):
    """A way to see the features, and a metric on what is seen.

    Attributes
    ----------
    knots : for each feature (a column), values between which ranks are interpolated; no rows: values count as such.
    shift, scale : take what is seen to zero mean and unit deviation; frozen, like the knots, until the phase ends.
    directions : the columns that whitening projects on, at right angles to each other.
    points : the centres in whitened coordinates.
    gop : the sum of outer products of slopes, with respect to what is seen, since the phase began.
    """

    knots: Floats
    shift: Floats
    scale: Floats
    directions: Floats
    points: Tree
    gop: Floats


class Memory(NamedTuple):
    """The centres that all views share: mean positions, sums of labels and of the rounds they came in, counts."""

    rows: Floats
    label_sums: Floats
    label_counts: Ints
    round_sums: Floats


class Machine(NamedTuple):
    """The practical learner as its kernels see it: flat arrays, most of them moved on in place."""

    views: tuple[View, ...]
    memory: Memory
    packing: Centers  # Algorithm 1's, in the first view's coordinates over their reach
    rank_starts: Ints
    reach: Floats
    ridge: LeastSquares
    fading: LeastSquares  # the same, by rounds the less the longer ago they were
    mixture: Bernstein
    stack: LeastSquares
    top: Bernstein
    labels: Floats
    features: Floats  # their statistics, a column each
    clock: Ints  # rounds in all, rounds that Algorithm 1 has played, and the most centres that it may have
    widening: Floats


class Mixing(NamedTuple):
    """What the experts say of a row, and how that is mixed."""

    predictions: Floats
    weights: Floats
    deviations: Floats  # of the predictions from their mixture, which the stack goes by
    pair: Floats  # the mixture and the stack
    pair_weights: Floats


class Room(NamedTuple):
    """Room to work in for one thread, and what the last prediction left for learning."""

    near: Neighborhood
    fit: Fit
    kriging: Kriging
    mixing: Mixing
    positions: Ints
    held: Floats
    standard: Floats
    queries: Floats
    scaled: Floats
    slopes: Floats
    gradient: Floats
    gain: Floats
    trail: Floats


class Desk(NamedTuple):
    """What rounds take: the machine, room to work in, rows and labels, and which row the room was last used for.

    `asked` holds the round for which that was (-1: none) and Algorithm 1's centre that was found, `before` that row,
    and `made` what was predicted for it and how far the centre is.
    """

    machine: Machine
    room: Room
    rows: Floats
    labels: Floats
    predictions: Floats
    asked: Ints
    before: Floats
    made: Floats


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
def look_around(
    view: View, memory: Memory, clock: int, query: Floats, positions: Ints, near: Neighborhood, trail: Floats
) -> int:
    """Find the neighbours of a query in a view and fill in their neighbourhood; return how many there are.

    There were `clock` rounds before the query's.
    """
    points, count = view.points.points, min(len(positions), view.points.counters[POINTS])
    k_nearest(view.points, query, np.inf, positions[:count], near.squared[:count], trail)
    _, sums, counts, rounds = memory
    first = position_of(positions[0])
    base = sums[first] / counts[first]
    for j in range(count):
        (leaf, lane), at = place_of(positions[j]), position_of(positions[j])
        positions[j] = at
        near.counts[j] = counts[at]
        near.labels[j] = sums[at] / counts[at] - base
        near.ages[j] = 1.0 - rounds[at] / (counts[at] * (clock + 1.0))
        for k in range(len(query)):
            near.offsets[j, k] = points[leaf, lane, k] - query[k]
    return int(count)


@subkernel
def fill_trends(
    directions: Floats, linear: Floats, fading: Floats, few: int, slopes: Floats, near: Neighborhood
) -> None:
    """Fill in what the global regressions say of a few neighbours, less what they say of the query.

    They are in standard units of the view whose neighbours these are, so that offsets are all it takes.
    """
    d = near.offsets.shape[1]
    slope, fading_slope, squares = slopes[:d], slopes[d : 2 * d], slopes[2 * d : 3 * d]
    combine(linear[:d], directions, slope)
    combine(fading[:d], directions, fading_slope)
    # As directions are at right angles to each other, slopes along them are all there is to slopes.
    for j in range(d):
        squares[j] = 0.0
    for k in range(d):
        for j in range(d):
            squares[j] += directions[k, j] * directions[k, j]
    for j in range(d):
        slope[j] /= squares[j]
        fading_slope[j] /= squares[j]
    for j in range(few):
        near.trend[j], near.fading[j] = dot(slope, near.offsets[j]), dot(fading_slope, near.offsets[j])


@subkernel
def fill_trends_by_rows(
    view: View,
    linear: Floats,
    fading: Floats,
    said: Floats,
    rows: Floats,
    kriged: Ints,
    columns: Floats,
    near: Neighborhood,
) -> None:
    """Fill in the same for neighbours in another view: what is said of some rows, less what was `said` of the query.

    Regressions are in standard units of the view, the first, which sees features as they are. Four rows at a time,
    from columns.
    """
    d, few = rows.shape[1], len(kriged)
    behind = d * few + FOUR  # the last four of the first may reach beyond the end
    for j in range(few):
        for k in range(d):
            columns[k * few + j] = rows[kriged[j], k]
    for j in range(0, few, FOUR):
        rise, fading_rise = alike(0.0), alike(0.0)
        for k in range(d):
            seen = (load(columns, k * few + j) - view.shift[k]) / view.scale[k]
            held = no_more_than(at_least(seen, -FARTHEST), FARTHEST)
            rise, fading_rise = rise + linear[k] * held, fading_rise + fading[k] * held
        store(columns, j, linear[d] - said[1] + rise)
        store(columns, behind + j, fading[d] - said[3] + fading_rise)
    for j in range(few):
        near.trend[j], near.fading[j] = columns[j], columns[behind + j]


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


@kernel
def closest_later(tree: Tree, points: Floats, nearest_of: Ints, apart: Floats) -> None:
    """Fill in, for each point, the nearest later point of the same leaf and the squared distance to it.

    A point that is the last of its leaf keeps what was there.
    """
    block, lanes = np.empty((1, points.shape[1], LANES)), np.empty(LANES)
    for leaf in range(tree.counters[LEAVES]):
        held = tree.positions[leaf, : tree.links[2 * leaf, SIZE]]
        for lane in range(len(held)):
            for k in range(points.shape[1]):
                block[0, k, lane] = points[held[lane], k]
        for at in held:
            block_distances(block, 0, len(held), points[at], np.inf, lanes)
            for lane in range(len(held)):
                other = held[lane]
                if other > at and before(lanes[lane], other, apart[at], nearest_of[at]):
                    apart[at], nearest_of[at] = lanes[lane], other


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
def encode(views: tuple[View, ...], x: Floats, standard: Floats, queries: Floats) -> None:
    """Fill in the whitened coordinates of a row in every view; its standard units in the first, and the constant 1."""
    for v in range(len(views) - 1, -1, -1):
        view = views[v]
        see(view.knots, view.shift, view.scale, x, standard[: len(x)])
        combine(standard[: len(x)], view.directions, queries[v])
    standard[len(x)] = 1.0


@subkernel
def ask_views(views: tuple[View, ...], memory: Memory, clock: int, linear: Floats, fading: Floats, room: Room) -> None:
    """Fill in the predictions of every view's local experts, and the slopes of their first fits.

    Those of the global experts are there.
    """
    near, experts, positions, columns = room.near, room.mixing.predictions, room.positions, room.kriging.columns
    local = (len(experts) - len(GLOBAL)) // len(views)
    # From the last view to the first, so that the first one's neighbours are what is left for learning.
    for v in range(len(views) - 1, -1, -1):
        count = look_around(views[v], memory, clock, room.queries[v], positions, near, room.trail)
        kriged = positions[: min(count, len(room.kriging.labels) // FOUR)]
        if v == 0:
            fill_trends(views[0].directions, linear, fading, len(kriged), columns, near)
        else:
            fill_trends_by_rows(views[0], linear, fading, experts, memory.rows, kriged, columns, near)
        own = experts[len(GLOBAL) + v * local : len(GLOBAL) + (v + 1) * local]
        local_predictions(near, room.fit, room.kriging, count, own, room.slopes[v])
        for k in range(local):
            own[k] += memory.label_sums[positions[0]] / memory.label_counts[positions[0]]


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
