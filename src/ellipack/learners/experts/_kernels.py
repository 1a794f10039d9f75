"""Compiled local experts: means, local linear fits and kriging, all from one neighbourhood.

Everything here is safe for any neighbourhood of at least one point: duplicates, equal labels, coordinates that never
vary. Labels come in as differences from the nearest neighbour's, so that a large common part costs no precision.
"""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
from ellipack.lanes._kernels import (
    FOUR,
    Four,
    Several,
    alike,
    alike_in,
    at_least,
    lanes,
    load,
    roots,
    store,
    transposed,
)
from ellipack.learners.experts.systems._kernels import entries, factor, row_start
from ellipack.validation import Floats

_SQRT3 = 1.7320508075688772
_LEAST_NUGGET = 1e-6  # keeps correlations of duplicates invertible however many labels a centre has taken in

RIDGES = np.array([0.01, 0.1, 0.01, 0.1])
"""Of the local fits: there are two, each twice."""

NUGGETS = np.array([0.01, 0.1, 0.01, 0.1])
"""Of kriging: a short length with a small nugget follows the labels, a long one with a large nugget smooths them."""

TREND_NUGGET = 0.03
"""Of kriging about a global trend."""

FADING = np.array([0.0, 0.2, 1.0, 5.0])
"""How much correlation kriging about a trend loses over the whole past: none, or so that the stream may drift."""


class Neighborhood(NamedTuple):
    """The neighbours of a query, nearest first.

    Attributes
    ----------
    squared, labels, counts : squared distances, mean labels less the first's, how many labels each mean is of.
    offsets : coordinates less the query's, a row each.
    trend, fading : what a global regression says of each neighbour's label, less what it says of the query's; and
        the same of the regression that fades.
    ages : rounds since a neighbour's labels came, on average, as a part of all rounds.
    """

    squared: Floats
    labels: Floats
    counts: Floats
    offsets: Floats
    trend: Floats
    fading: Floats
    ages: Floats


class Fit(NamedTuple):
    """Room for local linear fits to work in; they leave their slopes."""

    weights: Floats
    mean: Floats
    gram: Floats  # rows of `fit_width` numbers: a Gram matrix and a right-hand side
    centered: Floats  # four such rows: offsets and labels of four neighbours, less their means
    systems: Floats  # four at once, of which two are used
    slopes: Floats  # as many numbers for each coordinate


class Kriging(NamedTuple):
    """Room for kriging from at most K neighbours to work in, of four things at once."""

    columns: Floats  # the offsets, by coordinate
    distances: Floats  # between neighbours, in the order of a system's entries
    systems: Floats  # correlations; and beside them the query's, labels and ones
    labels: Floats


BESIDE = 3
"""Columns beside the correlations of a kriging system: the query's, labels and ones."""


def neighborhood(neighbors: int, d: int) -> Neighborhood:
    """Return room for so many neighbours of d coordinates."""
    squared, labels, counts, trend, fading, ages = np.empty((6, neighbors))
    return Neighborhood(squared, labels, counts, np.empty((neighbors, d)), trend, fading, ages)


def fit_room(neighbors: int, fitted: int) -> Fit:
    """Return room for fits over so many neighbours and coordinates."""
    width = fit_width(fitted)
    return Fit(
        weights=np.empty(neighbors),
        mean=np.empty(fitted),
        gram=np.empty(fitted * width),
        centered=np.zeros(FOUR * width),
        systems=np.empty(FOUR * entries(fitted, 1)),
        slopes=np.empty(FOUR * fitted),
    )


def kriging_room(kriged: int, d: int) -> Kriging:
    """Return room for kriging from so many neighbours of d coordinates."""
    held = entries(kriged, BESIDE) + FOUR  # the last four may reach beyond the end
    columns = (d + 1) * kriged + 2 * FOUR + 3 * d  # a column more, the last four of two, and room for slopes
    return Kriging(np.zeros(columns), np.zeros(held), np.empty(FOUR * held), np.empty(FOUR * kriged))


@kernel
def fit_width(fitted: int) -> int:
    """Return how many numbers a row of a Gram matrix with a right-hand side takes, in fours."""
    return (fitted + FOUR) // FOUR * FOUR


@subkernel
def mean_label(labels: Floats, counts: Floats, few: int) -> float:
    """Return the mean label of the nearest few."""
    total = label = 0.0
    for j in range(few):
        total += counts[j]
        label += counts[j] * labels[j]
    return label / total


@subkernel
def gather_slope(near: Neighborhood, fit: Fit, few: int) -> float:
    """Prepare a local linear fit over the nearest few, weights falling to 0 at the last; return their mean label.

    Leaves the centred Gram matrix, its right-hand side and the weighted mean offset for `ridge_fits`. Four neighbours
    at a time, so that an entry of the matrix is loaded once for them; they are added one after the other all the same.
    """
    weights, mean, gram, centered, _, _ = fit
    fitted, last = len(mean), near.squared[few - 1]
    width = fit_width(fitted)
    total = label = 0.0
    for i in range(fitted):
        mean[i] = 0.0
    for m in range(len(gram)):
        gram[m] = 0.0
    for j in range(few):
        weights[j] = near.counts[j] * (1.0 - near.squared[j] / last if last > 0.0 else 1.0)
        total += weights[j]
        label += weights[j] * near.labels[j]
        for i in range(fitted):
            mean[i] += weights[j] * near.offsets[j, i]
    if total <= 0.0:
        return mean_label(near.labels, near.counts, few)
    label /= total
    for i in range(fitted):
        mean[i] /= total
    for first in range(0, few, FOUR):
        for row in range(FOUR):
            j = min(first + row, few - 1)
            for i in range(fitted):
                centered[row * width + i] = near.offsets[j, i] - mean[i]
            centered[row * width + fitted] = near.labels[j] - label
        w0, w1 = weights[first], weights[first + 1] if first + 1 < few else 0.0
        w2, w3 = weights[first + 2] if first + 2 < few else 0.0, weights[first + 3] if first + 3 < few else 0.0
        for i in range(fitted):
            a, b = w0 * centered[i], w1 * centered[width + i]
            c, d = w2 * centered[2 * width + i], w3 * centered[3 * width + i]
            for m in range(i & -FOUR, width, FOUR):
                two = load(gram, i * width + m) + a * load(centered, m) + b * load(centered, width + m)
                four = two + c * load(centered, 2 * width + m) + d * load(centered, 3 * width + m)
                store(gram, i * width + m, four)
    return label


@subkernel
def ridge_fits(fit: Fit, label: float, out: Floats) -> None:
    """Put the fits at the query by each of `RIDGES`, four of them, into `out`; leaves their slopes.

    A ridge is relative to the mean variance of a coordinate.
    """
    _, mean, gram, _, systems, slopes = fit
    fitted, width = len(mean), fit_width(len(mean))
    trace = 0.0
    for i in range(fitted):
        trace += gram[i * width + i]
        store(slopes, FOUR * i, alike(0.0))
    fits = alike(label)
    if trace > 1e-290:  # neighbours closer than that can't be told apart
        e = 0
        for i in range(fitted):
            store(systems, FOUR * e, gram[i * width + i] + load(RIDGES, 0) * trace / float(fitted))
            e += 1
            for m in range(i + 1, fitted + 1):
                store(systems, FOUR * e, alike(gram[i * width + m]))
                e += 1
        factor(systems, fitted, fitted + 1)
        for i in range(fitted - 1, -1, -1):
            start = row_start(i, fitted + 1)
            value = load(systems, FOUR * (start + fitted - i))
            for m in range(i + 1, fitted):
                value = value - load(systems, FOUR * (start + m - i)) * load(slopes, FOUR * m)
            slope = value / load(systems, FOUR * start)
            store(slopes, FOUR * i, slope)
            fits = fits - slope * mean[i]
    store(out, 0, fits)


@subkernel
def fill_distances(near: Neighborhood, columns: Floats, distances: Floats, few: int) -> None:
    """Fill in the distances between the nearest few and to the query, in the order of a system's entries."""
    d, start = near.offsets.shape[1], 0
    for k in range(d):
        for j in range(few):
            columns[k * few + j] = near.offsets[j, k]
    for i in range(few):
        for j in range(i + 1, few, FOUR):
            total = alike(0.0)
            for k in range(d):
                gap = load(columns, k * few + j) - columns[k * few + i]
                total = total + gap * gap
            store(distances, start + j - i, roots(total))  # a few too many, where others belong
        distances[start] = distances[start + few - i + 1] = distances[start + few - i + 2] = 0.0
        distances[start + few - i] = math.sqrt(near.squared[i])
        start += few - i + BESIDE


@subkernel
def decayed(x: Four) -> Four:
    """Return ``exp(-x)`` for x from 0 to 0.35, by its series to full precision.

    Neighbours are no farther from each other than twice the last one's distance from the query, which is what bounds x.
    """
    tail = 1.0 - x * (1 / 9) * (1.0 - x * (1 / 10) * (1.0 - x * (1 / 11) * (1.0 - x * (1 / 12))))
    middle = 1.0 - x * (1 / 5) * (1.0 - x * (1 / 6) * (1.0 - x * (1 / 7) * (1.0 - x * (1 / 8) * tail)))
    return 1.0 - x * (1.0 - x * (1 / 2) * (1.0 - x * (1 / 3) * (1.0 - x * (1 / 4) * middle)))


@subkernel
def fill_correlations(distances: Floats, reach: float, systems: Floats, long: Floats, count: int) -> None:
    """Fill in what distances come to by four correlations, and once more by the last of them alone.

    They are ``exp(-u)`` and Matern's ``(1 + v) exp(-v)``, for u = distance / (length reach) and v = sqrt(3) u, for the
    lengths 2 and 5. All are made of two roots of exponentials, by their second and fifth power.
    """
    unit = reach / _SQRT3
    for e in range(0, count, FOUR):
        apart = load(distances, e)
        root = decayed(0.1 / reach * apart)
        exponential_long = root * root
        exponential_short = exponential_long * exponential_long * root
        root = decayed(0.1 / unit * apart)
        square = root * root
        smooth_short = square * square * root * (1.0 + apart / (2.0 * unit))
        smooth_long = square * (1.0 + apart / (5.0 * unit))
        one, two, three, four = transposed(exponential_short, exponential_long, smooth_short, smooth_long)
        store(systems, FOUR * e, one)
        store(systems, FOUR * e + 4, two)
        store(systems, FOUR * e + 8, three)
        store(systems, FOUR * e + 12, four)
        store(long, e, smooth_long)


@subkernel
def krige(systems: Several, few: int) -> Several:
    """Return the best linear unbiased predictions at the query by several systems.

    One factorisation carries three right-hand sides (the query's correlations, labels, ones): the mean by generalised
    least squares and the prediction are then sums of products.
    """
    n, width = lanes(systems), few + BESIDE
    factor(systems, few, width)
    ones = mean = alike_in(systems, 0.0)
    query = 0
    for i in range(few):
        query += width - i
        one, label = load(systems, n * (query - 1)), load(systems, n * (query - 2))
        ones, mean = ones + one * one, mean + one * label
    mean = mean / ones
    prediction, query = mean, 0
    for i in range(few):
        query += width - i
        one, label = load(systems, n * (query - 1)), load(systems, n * (query - 2))
        prediction = prediction + load(systems, n * (query - 3)) * (label - mean * one)
    return prediction


@subkernel
def put_beside(systems: Several, few: int, row: int, nuggets: Several, labels: Several) -> None:
    """Put a diagonal and the right-hand sides into a row of the systems whose correlations are there."""
    n, start = lanes(systems), row_start(row, few + BESIDE)
    store(systems, n * start, 1.0 + at_least(nuggets, _LEAST_NUGGET))
    store(systems, n * (start + few - row + 1), labels)
    store(systems, n * (start + few - row + 2), alike_in(systems, 1.0))


@subkernel
def fade_correlations(long: Floats, ages: Floats, few: int, systems: Floats) -> None:
    """Fill in correlations in space and time: those in space, four times, less by what each of four loses with time.

    ``max(0, 1 - rate |s - t|)`` is a correlation on a line, and the product of two correlations is one again.
    """
    e, rates = 0, load(FADING, 0)
    for i in range(few):
        e += 1  # what is on the diagonal is put there later
        for j in range(i + 1, few):
            store(systems, FOUR * e, long[e] * at_least(1.0 - rates * abs(ages[i] - ages[j]), 0.0))
            e += 1
        store(systems, FOUR * e, long[e] * at_least(1.0 - rates * ages[i], 0.0))
        e += BESIDE


@subkernel
def local_predictions(near: Neighborhood, fit: Fit, room: Kriging, found: int, out: Floats, slope: Floats) -> None:
    """Fill `out` with what each local expert says, as differences from the nearest neighbour's label.

    Their order is that of `ellipack.learners.experts.names.LOCAL`. `slope` is left with the first fit's.
    """
    columns, distances, systems, labels = room
    few = min(len(labels) // FOUR, found)
    label = gather_slope(near, fit, min(2 * len(slope) + 10, found))
    ridge_fits(fit, label, out[1:])
    out[0] = mean_label(near.labels, near.counts, min(16, found))
    for i in range(len(slope)):
        slope[i] = fit.slopes[FOUR * i]
    fill_distances(near, columns, distances, few)
    count = row_start(few, few + BESIDE)
    fill_correlations(distances, max(math.sqrt(near.squared[few - 1]), 1e-150), systems, distances, count)
    for i in range(few):
        put_beside(systems, few, i, load(NUGGETS, 0) / near.counts[i], alike(near.labels[i]))
    store(out, 3, krige(systems, few))
    # Once more about a global trend, by the last of the correlations; and, beside it, three times in space and time.
    fade_correlations(distances, near.ages, few, systems)
    for i in range(few):
        store(labels, FOUR * i, alike(near.labels[i] - near.fading[i]))
        labels[FOUR * i] = near.labels[i] - near.trend[i]
        put_beside(systems, few, i, alike(TREND_NUGGET / near.counts[i]), load(labels, FOUR * i))
    store(out, 7, krige(systems, few))
