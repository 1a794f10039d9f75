"""What the local experts of every view say of a row: its neighbours, their trends, and predictions from both."""

import numpy as np

from ellipack._kernels import subkernel
from ellipack.lanes._kernels import FOUR, alike, at_least, load, no_more_than, store
from ellipack.learners.aggregation._kernels import dot
from ellipack.learners.experts._kernels import Neighborhood, local_predictions
from ellipack.learners.experts.names import GLOBAL
from ellipack.learners.metric.machine import Memory, Room, View
from ellipack.learners.metric.seeing._kernels import FARTHEST
from ellipack.metric._kernels import combine
from ellipack.packing.tree._kernels import k_nearest, place_of, position_of
from ellipack.packing.tree.state import POINTS
from ellipack.validation import Floats, Ints


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
