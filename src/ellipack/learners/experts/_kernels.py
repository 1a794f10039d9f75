"""Compiled local experts: means, local linear fits and kriging, all from one neighbourhood.

Everything here is safe for any neighbourhood of at least one point: duplicates, equal labels, coordinates that never
vary. Labels come in as differences from the nearest neighbour's, so that a large common part costs no precision.
"""

import math
from typing import NamedTuple

import numpy as np

from ellipack._kernels import kernel, subkernel
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
    """The neighbours of a query, nearest first, and room to work in.

    Attributes
    ----------
    squared, labels, counts : squared distances, mean labels less the first's, how many labels each mean is of.
    offsets : coordinates less the query's, a row each.
    columns : the same for those that are kriged, a column each, so that loops over neighbours vectorise.
    trend : what a global regression says of each neighbour's label, less what it says of the query's.
    """

    squared: Floats
    labels: Floats
    counts: Floats
    offsets: Floats
    columns: Floats
    trend: Floats
    weights: Floats
    mean: Floats
    slope: Floats
    gram: Floats  # (r, r + 1): a Gram matrix and a right-hand side
    system: Floats  # (r, r + 1), for its factor
    distances: Floats  # (K, K), above the diagonal
    decay: Floats  # (K, K + 1): a root of all correlations; the last column belongs to the query
    correlations: Floats  # (K, K + 1)
    kriging: Floats  # (K, K + 3): correlations, and labels, ones and the query's correlations beside them


def neighborhood(neighbors: int, kriged: int, d: int, fitted: int) -> Neighborhood:
    """Return room for so many neighbours of d coordinates, of which `fitted` take part in local fits."""
    return Neighborhood(
        squared=np.empty(neighbors),
        labels=np.empty(neighbors),
        counts=np.empty(neighbors),
        offsets=np.empty((neighbors, d)),
        columns=np.empty((d, kriged)),
        trend=np.empty(neighbors),
        weights=np.empty(neighbors),
        mean=np.empty(fitted),
        slope=np.empty(fitted),
        gram=np.empty((fitted, fitted + 1)),
        system=np.empty((fitted, fitted + 1)),
        distances=np.empty((kriged, kriged)),
        decay=np.empty((kriged, kriged + 1)),
        correlations=np.empty((kriged, kriged + 1)),
        kriging=np.empty((kriged, kriged + 3)),
    )


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
def mean_label(near: Neighborhood, count: int) -> float:
    """Return the mean label of the nearest few."""
    total = labels = 0.0
    for j in range(count):
        total += near.counts[j]
        labels += near.counts[j] * near.labels[j]
    return labels / total


@kernel
def gather_slope(near: Neighborhood, count: int) -> float:
    """Prepare a local linear fit over the nearest few, weights falling to 0 at the last; return their mean label.

    Leaves the centred Gram matrix, its right-hand side and the weighted mean offset for `ridge_fit`.
    """
    fitted, last = len(near.slope), near.squared[count - 1]
    total = label = 0.0
    near.mean[:] = 0.0
    near.gram[:] = 0.0
    for j in range(count):
        near.weights[j] = near.counts[j] * (1.0 - near.squared[j] / last if last > 0.0 else 1.0)
        total += near.weights[j]
        label += near.weights[j] * near.labels[j]
        for i in range(fitted):
            near.mean[i] += near.weights[j] * near.offsets[j, i]
    if total <= 0.0:
        return mean_label(near, count)
    label /= total
    for i in range(fitted):
        near.mean[i] /= total
    centered = near.slope
    for j in range(count):
        for i in range(fitted):
            centered[i] = near.offsets[j, i] - near.mean[i]
        for i in range(fitted):
            part = near.weights[j] * centered[i]
            for m in range(i, fitted):
                near.gram[i, m] += part * centered[m]
            near.gram[i, fitted] += part * (near.labels[j] - label)
    return label


@kernel
def ridge_fit(near: Neighborhood, label: float, ridge: float) -> float:
    """Return the fit at the query; leaves the slope. The ridge is relative to the mean variance of a coordinate."""
    fitted = len(near.slope)
    trace = 0.0
    for i in range(fitted):
        trace += near.gram[i, i]
    near.slope[:] = 0.0
    if trace <= 1e-290:  # neighbours this close can't be told apart
        return label
    near.system[:] = near.gram
    for i in range(fitted):
        near.system[i, i] += ridge * trace / fitted
    factor(near.system, fitted)
    for i in range(fitted - 1, -1, -1):
        value = near.system[i, fitted]
        for m in range(i + 1, fitted):
            value -= near.system[i, m] * near.slope[m]
        near.slope[i] = value / near.system[i, i]
        label -= near.slope[i] * near.mean[i]
    return label


@kernel
def pairwise_distances(near: Neighborhood, count: int) -> None:
    """Fill in the distances between the nearest few, above the diagonal."""
    for k in range(near.columns.shape[0]):
        for j in range(count):
            near.columns[k, j] = near.offsets[j, k]
    for i in range(count):
        for j in range(i + 1, count):
            near.distances[i, j] = 0.0
        for k in range(near.columns.shape[0]):
            value = near.columns[k, i]
            for j in range(i + 1, count):
                difference = near.columns[k, j] - value
                near.distances[i, j] += difference * difference
        for j in range(i + 1, count):
            near.distances[i, j] = math.sqrt(near.distances[i, j])


@subkernel
def fill_decay(near: Neighborhood, count: int, unit: float) -> None:
    """Fill in ``exp(-distance / (10 unit))``, of which all correlations used here are made by powers."""
    for i in range(count):
        for j in range(i + 1, count):
            near.decay[i, j] = math.exp(-0.1 * near.distances[i, j] / unit)
        near.decay[i, count] = math.exp(-0.1 * math.sqrt(near.squared[i]) / unit)


@subkernel
def fill_correlations(near: Neighborhood, count: int, unit: float, length: int, smooth: bool) -> None:
    """Fill in correlations ``exp(-u)``, or Matern's ``(1 + u) exp(-u)``, for u = distance / (length unit).

    The length must be 2 or 5: the fifth and second power of what `fill_decay` left.
    """
    for i in range(count):
        for j in range(i + 1, count + 1):
            square = near.decay[i, j] * near.decay[i, j]
            near.correlations[i, j] = square if length == 5 else square * square * near.decay[i, j]
        if smooth:
            for j in range(i + 1, count):
                near.correlations[i, j] *= 1.0 + near.distances[i, j] / (length * unit)
            near.correlations[i, count] *= 1.0 + math.sqrt(near.squared[i]) / (length * unit)


@kernel
def krige(near: Neighborhood, count: int, nugget: float, labels: Floats) -> float:
    """Return the best linear unbiased prediction at the query, the nugget divided by each centre's count.

    One factorisation carries three right-hand sides (labels, ones, the query's correlations): the mean by
    generalised least squares and the prediction are then sums of products.
    """
    width = near.kriging.shape[1]
    for i in range(count):
        for j in range(i + 1, count):
            near.kriging[i, j] = near.correlations[i, j]
        near.kriging[i, i] = 1.0 + max(nugget / near.counts[i], _LEAST_NUGGET)
        for j in range(count, width - 3):
            near.kriging[i, j] = 0.0
        near.kriging[i, width - 3] = labels[i]
        near.kriging[i, width - 2] = 1.0
        near.kriging[i, width - 1] = near.correlations[i, count]
    factor(near.kriging, count)
    ones = mean = 0.0
    for i in range(count):
        ones += near.kriging[i, width - 2] * near.kriging[i, width - 2]
        mean += near.kriging[i, width - 2] * near.kriging[i, width - 3]
    mean /= ones
    prediction = mean
    for i in range(count):
        prediction += near.kriging[i, width - 1] * (near.kriging[i, width - 3] - mean * near.kriging[i, width - 2])
    return prediction


@kernel
def matern_prediction(near: Neighborhood, count: int, length: float, nugget: float) -> float:
    """Return kriging's prediction by Matern's correlations, the length relative to the last neighbour's distance."""
    unit = length * max(math.sqrt(near.squared[count - 1]), 1e-150) / _SQRT3
    pairwise_distances(near, count)
    for i in range(count):
        for j in range(i + 1, count):
            u = near.distances[i, j] / unit
            near.correlations[i, j] = (1.0 + u) * math.exp(-u)
        u = math.sqrt(near.squared[i]) / unit
        near.correlations[i, count] = (1.0 + u) * math.exp(-u)
    return krige(near, count, nugget, near.labels)


@kernel
def local_predictions(near: Neighborhood, found: int, out: Floats, slope: Floats) -> None:
    """Fill `out` with what each local expert says, as differences from the nearest neighbour's label.

    Their order is that of `ellipack.learners.experts.names.LOCAL`. `slope` is left with the first fit's.
    """
    kriged = min(len(near.distances), found)
    out[0] = mean_label(near, min(16, found))
    label = gather_slope(near, min(2 * len(near.slope) + 10, found))
    out[2] = ridge_fit(near, label, 0.1)
    out[1] = ridge_fit(near, label, 0.01)
    slope[:] = near.slope
    pairwise_distances(near, kriged)
    reach = max(math.sqrt(near.squared[kriged - 1]), 1e-150)
    at = 3
    for smooth in (False, True):
        unit = reach / _SQRT3 if smooth else reach
        fill_decay(near, kriged, unit)
        # A short length with a small nugget follows the labels, a long one with a large nugget smooths them.
        for length, nugget in ((2, 0.01), (5, 0.1)):
            fill_correlations(near, kriged, unit, length, smooth)
            out[at] = krige(near, kriged, nugget, near.labels)
            at += 1
    for j in range(kriged):
        near.weights[j] = near.labels[j] - near.trend[j]
    out[at] = krige(near, kriged, 0.03, near.weights)


@kernel
def leave_one_out(tree: Tree, coordinates: Floats, labels: Floats, judges: Ints, near: Neighborhood) -> float:
    """Return the sum of squared errors of kriging each judge's label from its neighbours' without its own."""
    kriged = min(len(near.distances), len(coordinates) - 1)
    positions, lanes = np.empty(kriged + 1, dtype=np.int64), np.empty(LANES)
    squared = np.empty(kriged + 1)
    total = 0.0
    near.counts[:] = 1.0
    for judge in judges:
        k_nearest(tree, coordinates[judge], np.inf, positions, squared, lanes)
        held = 0
        for j in range(kriged + 1):
            if positions[j] != judge and held < kriged:
                near.squared[held] = squared[j]
                near.labels[held] = labels[positions[j]] - labels[judge]
                for k in range(coordinates.shape[1]):
                    near.offsets[held, k] = coordinates[positions[j], k] - coordinates[judge, k]
                held += 1
        error = matern_prediction(near, kriged, JUDGE_LENGTH, JUDGE_NUGGET)
        total += error * error
    return total
