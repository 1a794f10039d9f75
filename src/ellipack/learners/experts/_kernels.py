"""Compiled local experts: means, local linear fits and kriging, all from one neighbourhood.

Everything here is safe for any neighbourhood of at least one point: duplicates, equal labels, coordinates that never
vary. Labels come in as differences from the nearest neighbour's, so that a large common part costs no precision.
"""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import inlined, kernel, subkernel
from ellipack.packing._kernels import LANES
from ellipack.packing.tree._kernels import k_nearest
from ellipack.packing.tree.state import Tree
from ellipack.validation import Floats, Ints

_SQRT3 = 1.7320508075688772
_LEAST_NUGGET = 1e-6  # keeps correlations of duplicates invertible however many labels a centre has taken in
_LEAST_PIVOT = 1e-12

JUDGE_LENGTH, JUDGE_NUGGET = 3.0, 0.05
"""Of the kriging that judges metrics: between those of the experts."""


class Neighborhood(NamedTuple):
    """The neighbours of a query, nearest first.

    Attributes
    ----------
    squared, labels, counts : squared distances, mean labels less the first's, how many labels each mean is of.
    offsets : coordinates less the query's, a row each.
    trend : what a global regression says of each neighbour's label, less what it says of the query's.
    """

    squared: Floats
    labels: Floats
    counts: Floats
    offsets: Floats
    trend: Floats


class Fit(NamedTuple):
    """Room for local linear fits to work in; each leaves its slope."""

    weights: Floats
    mean: Floats
    slope: Floats
    gram: Floats  # (r, r + 1): a Gram matrix and a right-hand side
    system: Floats  # (r, r + 1), for its factor
    centered: Floats  # (4, r + 1): offsets and labels of four neighbours, less their means


class Kriging(NamedTuple):
    """Room for kriging to work in."""

    columns: Floats  # the offsets, a column each, so that loops over neighbours vectorise
    distances: Floats  # (K, K), above the diagonal
    decay: Floats  # (K, K + 1): a root of all correlations; the last column belongs to the query
    correlations: Floats  # (K, K + 1)
    system: Floats  # (K, K + 3): correlations, and labels, ones and the query's correlations beside them


def neighborhood(neighbors: int, d: int) -> Neighborhood:
    """Return room for so many neighbours of d coordinates."""
    squared, labels, counts, trend = np.empty((4, neighbors))
    return Neighborhood(squared, labels, counts, np.empty((neighbors, d)), trend)


def fit_room(neighbors: int, fitted: int) -> Fit:
    """Return room for fits over so many neighbours and coordinates."""
    gram, system = np.empty((2, fitted, fitted + 1))
    return Fit(np.empty(neighbors), np.empty(fitted), np.empty(fitted), gram, system, np.empty((4, fitted + 1)))


def kriging_room(kriged: int, d: int) -> Kriging:
    """Return room for kriging from so many neighbours of d coordinates."""
    columns, distances, beside = np.empty((d, kriged)), np.empty((kriged, kriged)), (kriged, kriged + 1)
    return Kriging(columns, distances, np.empty(beside), np.empty(beside), np.empty((kriged, kriged + 3)))


@subkernel
def _pivot(system: Floats, k: int) -> None:
    """Divide a row by the root of its pivot."""
    inverse = 1.0 / math.sqrt(max(system[k, k], _LEAST_PIVOT))
    for j in range(k, system.shape[1]):
        system[k, j] *= inverse


@subkernel
def _subtract(system: Floats, k: int, i: int) -> None:
    """Take from row i what row k accounts for."""
    part = system[k, i]
    for j in range(i, system.shape[1]):
        system[i, j] -= part * system[k, j]


@kernel
def factor(system: Floats, size: int) -> None:
    """Factor a positive definite matrix, upper triangle given, in place, and carry the columns beside it along.

    Row by row, so that inner loops run over neighbouring entries and vectorise; four rows at a time, so that what is
    loaded is used four times.
    """
    width, k = system.shape[1], 0
    while k + 4 <= size:
        for row in range(k, k + 4):
            for above in range(k, row):
                _subtract(system, above, row)
            _pivot(system, row)
        for i in range(k + 4, size):
            a, b, c, d = system[k, i], system[k + 1, i], system[k + 2, i], system[k + 3, i]
            for j in range(i, width):
                near = a * system[k, j] + b * system[k + 1, j]
                system[i, j] -= near + (c * system[k + 2, j] + d * system[k + 3, j])
        k += 4
    for row in range(k, size):
        for above in range(k, row):
            _subtract(system, above, row)
        _pivot(system, row)


@subkernel
def mean_label(labels: Floats, counts: Floats, few: int) -> float:
    """Return the mean label of the nearest few."""
    total = label = 0.0
    for j in range(few):
        total += counts[j]
        label += counts[j] * labels[j]
    return label / total


@inlined
def gather_slope(near: Neighborhood, fit: Fit, few: int) -> float:
    """Prepare a local linear fit over the nearest few, weights falling to 0 at the last; return their mean label.

    Leaves the centred Gram matrix, its right-hand side and the weighted mean offset for `ridge_fit`. Four neighbours
    at a time, so that an entry of the matrix is loaded once for them; they are added one after the other all the same.
    """
    weights, mean, _, gram, _, centered = fit
    fitted, last = len(mean), near.squared[few - 1]
    total = label = 0.0
    for i in range(fitted):
        mean[i] = 0.0
        for m in range(fitted + 1):
            gram[i, m] = 0.0
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
    for first in range(0, few, 4):
        for row in range(4):
            j = min(first + row, few - 1)
            for i in range(fitted):
                centered[row, i] = near.offsets[j, i] - mean[i]
            centered[row, fitted] = near.labels[j] - label
        w0, w1 = weights[first], weights[first + 1] if first + 1 < few else 0.0
        w2, w3 = weights[first + 2] if first + 2 < few else 0.0, weights[first + 3] if first + 3 < few else 0.0
        for i in range(fitted):
            a, b, c, d = w0 * centered[0, i], w1 * centered[1, i], w2 * centered[2, i], w3 * centered[3, i]
            for m in range(i, fitted + 1):
                near_two = gram[i, m] + a * centered[0, m] + b * centered[1, m]
                gram[i, m] = near_two + c * centered[2, m] + d * centered[3, m]
    return label


@kernel
def ridge_fit(fit: Fit, label: float, ridge: float) -> float:
    """Return the fit at the query; leaves the slope. The ridge is relative to the mean variance of a coordinate."""
    _, mean, slope, gram, system, _ = fit
    fitted = len(slope)
    trace = 0.0
    for i in range(fitted):
        trace += gram[i, i]
        slope[i] = 0.0
    if trace <= 1e-290:  # neighbours this close can't be told apart
        return label
    for i in range(fitted):
        for m in range(i, fitted + 1):
            system[i, m] = gram[i, m]
        system[i, i] += ridge * trace / fitted
    factor(system, fitted)
    for i in range(fitted - 1, -1, -1):
        value = system[i, fitted]
        for m in range(i + 1, fitted):
            value -= system[i, m] * slope[m]
        slope[i] = value / system[i, i]
        label -= slope[i] * mean[i]
    return label


@kernel
def pairwise_distances(offsets: Floats, columns: Floats, distances: Floats, few: int) -> None:
    """Fill in the distances between the nearest few, above the diagonal, and their offsets as columns."""
    for k in range(columns.shape[0]):
        for j in range(few):
            columns[k, j] = offsets[j, k]
    fours = len(columns) - len(columns) % 4
    for i in range(few):
        for j in range(i + 1, few):
            distances[i, j] = 0.0
        for k in range(0, fours, 4):  # four at a time, so that a sum is loaded once for them
            c0, c1, c2, c3 = columns[k, i], columns[k + 1, i], columns[k + 2, i], columns[k + 3, i]
            for j in range(i + 1, few):
                gap0, gap1 = columns[k, j] - c0, columns[k + 1, j] - c1
                gap2, gap3 = columns[k + 2, j] - c2, columns[k + 3, j] - c3
                distances[i, j] = distances[i, j] + gap0 * gap0 + gap1 * gap1 + gap2 * gap2 + gap3 * gap3
        for k in range(fours, len(columns)):
            c0 = columns[k, i]
            for j in range(i + 1, few):
                gap0 = columns[k, j] - c0
                distances[i, j] += gap0 * gap0
        for j in range(i + 1, few):
            distances[i, j] = math.sqrt(distances[i, j])


@inlined
def decayed(x: float) -> float:
    """Return ``exp(-x)`` for x from 0 to 0.35, by its series to full precision: a loop of these vectorises.

    Neighbours are no farther from each other than twice the last one's distance from the query, which is what bounds x.
    """
    tail = 1.0 - x * (1 / 9) * (1.0 - x * (1 / 10) * (1.0 - x * (1 / 11) * (1.0 - x * (1 / 12))))
    middle = 1.0 - x * (1 / 5) * (1.0 - x * (1 / 6) * (1.0 - x * (1 / 7) * (1.0 - x * (1 / 8) * tail)))
    return 1.0 - x * (1.0 - x * (1 / 2) * (1.0 - x * (1 / 3) * (1.0 - x * (1 / 4) * middle)))


@inlined
def matern(u: float) -> float:
    """Return Matern's correlation ``(1 + u) exp(-u)`` for u from 0 to 1.4."""
    root = decayed(0.25 * u)
    return (1.0 + u) * (root * root) * (root * root)


@inlined
def fill_decay(distances: Floats, squared: Floats, unit: float, decay: Floats, few: int) -> None:
    """Fill in ``exp(-distance / (10 unit))``, of which all correlations used here are made by powers."""
    for i in range(few):
        for j in range(i + 1, few):
            decay[i, j] = decayed(0.1 / unit * distances[i, j])
        decay[i, few] = decayed(0.1 / unit * math.sqrt(squared[i]))


@inlined
def fill_correlations(room: Kriging, squared: Floats, unit: float, length: int, smooth: bool, few: int) -> None:
    """Fill in correlations ``exp(-u)``, or Matern's ``(1 + u) exp(-u)``, for u = distance / (length unit).

    The length must be 2 or 5: the fifth and second power of what `fill_decay` left.
    """
    _, distances, decay, correlations, _ = room
    for i in range(few):
        for j in range(i + 1, few + 1):
            square = decay[i, j] * decay[i, j]
            correlations[i, j] = square if length == 5 else square * square * decay[i, j]
        if smooth:
            for j in range(i + 1, few):
                correlations[i, j] *= 1.0 + distances[i, j] / (length * unit)
            correlations[i, few] *= 1.0 + math.sqrt(squared[i]) / (length * unit)


@kernel
def krige(correlations: Floats, system: Floats, labels: Floats, counts: Floats, nugget: float, few: int) -> float:
    """Return the best linear unbiased prediction at the query, the nugget divided by each centre's count.

    One factorisation carries three right-hand sides (labels, ones, the query's correlations): the mean by
    generalised least squares and the prediction are then sums of products.
    """
    width = system.shape[1]
    for i in range(few):
        for j in range(i + 1, few):
            system[i, j] = correlations[i, j]
        system[i, i] = 1.0 + max(nugget / counts[i], _LEAST_NUGGET)
        for j in range(few, width - 3):
            system[i, j] = 0.0
        system[i, width - 3] = labels[i]
        system[i, width - 2] = 1.0
        system[i, width - 1] = correlations[i, few]
    factor(system, few)
    ones = mean = 0.0
    for i in range(few):
        ones += system[i, width - 2] * system[i, width - 2]
        mean += system[i, width - 2] * system[i, width - 3]
    mean /= ones
    prediction = mean
    for i in range(few):
        prediction += system[i, width - 1] * (system[i, width - 3] - mean * system[i, width - 2])
    return prediction


@inlined
def matern_prediction(near: Neighborhood, room: Kriging, few: int, nugget: float) -> float:
    """Return kriging's prediction by Matern's correlations of the judges' length, by the last neighbour's distance."""
    unit = JUDGE_LENGTH * max(math.sqrt(near.squared[few - 1]), 1e-150) / _SQRT3
    columns, distances, _, correlations, system = room
    pairwise_distances(near.offsets, columns, distances, few)
    for i in range(few):
        for j in range(i + 1, few):
            correlations[i, j] = matern(distances[i, j] / unit)
        correlations[i, few] = matern(math.sqrt(near.squared[i]) / unit)
    return krige(correlations, system, near.labels, near.counts, nugget, few)


@inlined
def local_predictions(near: Neighborhood, fit: Fit, room: Kriging, found: int, out: Floats, slope: Floats) -> None:
    """Fill `out` with what each local expert says, as differences from the nearest neighbour's label.

    Their order is that of `ellipack.learners.experts.names.LOCAL`. `slope` is left with the first fit's.
    """
    columns, distances, decay, correlations, system = room
    few = min(len(distances), found)
    out[0] = mean_label(near.labels, near.counts, min(16, found))
    label = gather_slope(near, fit, min(2 * len(fit.slope) + 10, found))
    out[2] = ridge_fit(fit, label, 0.1)
    out[1] = ridge_fit(fit, label, 0.01)
    for i in range(len(slope)):
        slope[i] = fit.slope[i]
    pairwise_distances(near.offsets, columns, distances, few)
    reach = max(math.sqrt(near.squared[few - 1]), 1e-150)
    for j in range(few):
        fit.weights[j] = near.labels[j] - near.trend[j]
    at = 3
    for smooth in (False, True):
        unit = reach / _SQRT3 if smooth else reach
        fill_decay(distances, near.squared, unit, decay, few)
        # A short length with a small nugget follows the labels, a long one with a large nugget smooths them.
        for length, nugget in ((2, 0.01), (5, 0.1)):
            fill_correlations(room, near.squared, unit, length, smooth, few)
            out[at] = krige(correlations, system, near.labels, near.counts, nugget, few)
            at += 1
    out[at] = krige(correlations, system, fit.weights, near.counts, 0.03, few)


@kernel
def leave_one_out(
    tree: Tree, coordinates: Floats, labels: Floats, judges: Ints, near: Neighborhood, room: Kriging
) -> float:
    """Return the sum of squared errors of kriging each judge's label from its neighbours' without its own."""
    kriged = min(len(room.distances), len(coordinates) - 1)
    positions, lanes = np.empty(kriged + 1, dtype=np.int64), np.empty(LANES)
    squared = np.empty(kriged + 1)
    total = 0.0
    for judge in judges:
        k_nearest(tree, coordinates[judge], np.inf, positions, squared, lanes)
        held = 0
        for j in range(kriged + 1):
            if positions[j] != judge and held < kriged:
                near.squared[held] = squared[j]
                near.labels[held] = labels[positions[j]] - labels[judge]
                near.counts[held] = 1.0
                for k in range(coordinates.shape[1]):
                    near.offsets[held, k] = coordinates[positions[j], k] - coordinates[judge, k]
                held += 1
        error = matern_prediction(near, room, kriged, JUDGE_NUGGET)
        total += error * error
    return total
