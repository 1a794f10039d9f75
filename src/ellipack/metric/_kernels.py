"""Compiled loops of the metric layer: projection, appendix A's differences, local slopes."""

import math

import numpy as np
from numpy.typing import NDArray

from ellipack._kernels import kernel, subkernel
from ellipack.lanes._kernels import FOUR, alike, load, store
from ellipack.validation import Floats, Ints


@subkernel
def combine(row: Floats, directions: Floats, out: Floats) -> None:
    """Fill in ``row @ directions``, each sum in the order of the row."""
    width = directions.shape[1]
    fours = width - width % FOUR
    for j in range(0, fours, FOUR):
        four = alike(0.0)
        for k in range(row.shape[0]):
            four = four + row[k] * load(directions, k * width + j)
        store(out, j, four)
    for j in range(fours, width):
        total = 0.0
        for k in range(row.shape[0]):
            total += row[k] * directions[k, j]
        out[j] = total


@kernel
def project(rows: Floats, directions: Floats) -> Floats:
    """Return ``rows @ directions``, each row by itself and in one order, so that batching can't change a bit.

    Both have to be stored row by row.
    """
    out = np.empty((rows.shape[0], directions.shape[1]))
    for t in range(rows.shape[0]):
        combine(rows[t], directions, out[t])
    return out


@kernel
def difference_gradients(
    anchors: Floats,
    X: Floats,
    y: Floats,
    scales: tuple[float, float, float],
    powers: tuple[int, int],
    near: tuple[Ints, Ints],
    out: Floats,
    enough_mass: NDArray[np.bool_],
) -> None:
    """Fill `out` with appendix A's gradient at each anchor, and `enough_mass` with whether each entry had it.

    `near` says which rows can matter to an anchor: ends of lists, and the lists, one after the other, each in
    rising order. A single list serves all anchors.

    `scales` are the bandwidth, the step and the mass threshold; `powers` make the kernel ``(1 - u^a)^b``. All
    2d shifted queries of an anchor share one vector of differences:
    ``|x +- step e_i - x_j|^2 = |x - x_j|^2 +- 2 step (x - x_j)_i + step^2``.
    """
    bandwidth, step, mass = scales
    n, d = X.shape
    inverse = 1.0 / (bandwidth * bandwidth)
    everyone = 0.0
    for j in range(n):
        everyone += y[j]
    everyone /= n
    difference = np.empty(d)
    # Entries 0 to d belong to the queries shifted forward, d to 2d to those shifted back.
    weight = np.empty(2 * d)
    weights, labels, nearby = np.empty(2 * d), np.empty(2 * d), np.empty(2 * d)
    for a in range(len(anchors)):
        for i in range(2 * d):
            weights[i] = labels[i] = nearby[i] = 0.0
        start = near[0][a - 1] if len(near[0]) > 1 and a > 0 else 0
        for m in range(start, near[0][min(a, len(near[0]) - 1)]):
            j = near[1][m]
            squared = step * step
            for i in range(d):
                difference[i] = anchors[a, i] - X[j, i]
                squared += difference[i] * difference[i]
            for i in range(d):
                shift = 2.0 * step * difference[i]
                weight[i] = max(squared + shift, 0.0) * inverse
                weight[d + i] = max(squared - shift, 0.0) * inverse
            for i in range(2 * d):  # within half a bandwidth
                nearby[i] += 1.0 if weight[i] <= 0.25 else 0.0
                weight[i] = min(weight[i], 1.0)
            kernel_weights(weight, powers)
            for i in range(2 * d):
                weights[i] += weight[i]
                labels[i] += weight[i] * y[j]
        for i in range(d):
            forward = labels[i] / weights[i] if weights[i] > 0.0 else everyone
            back = labels[d + i] / weights[d + i] if weights[d + i] > 0.0 else everyone
            enough_mass[a, i] = min(nearby[i], nearby[d + i]) >= mass
            out[a, i] = (forward - back) / (2.0 * step) if enough_mass[a, i] else 0.0


@subkernel
def kernel_weights(u: Floats, powers: tuple[int, int]) -> None:
    """Turn squared relative distances, 1 at most, into kernel weights ``(1 - u^a)^b``, in place.

    In passes over a short array, because each of them vectorises; one loop with the branches inside would not.
    """
    inner, outer = powers
    if inner == 1:
        for i in range(len(u)):
            u[i] = math.sqrt(u[i])
    elif inner != 2:
        for i in range(len(u)):
            u[i] = math.sqrt(u[i]) ** inner
    for i in range(len(u)):
        u[i] = 1.0 - u[i]
    if outer == 2:
        for i in range(len(u)):
            u[i] = u[i] * u[i]
    elif outer != 1:
        for i in range(len(u)):
            u[i] = u[i] ** outer


@kernel
def neighbor_slopes(
    queries: Floats, rows: Floats, labels: Floats, positions: Ints, squared: Floats, ridge: float, out: Floats
) -> None:
    """Fill `out` with the local slope at each query, from its nearest `rows`: where, and at which distances."""
    neighbors = positions.shape[1]
    offsets = np.empty((neighbors, rows.shape[1]))
    near = np.empty(neighbors)
    for t in range(len(queries)):
        for j in range(neighbors):
            near[j] = labels[positions[t, j]]
            for i in range(rows.shape[1]):
                offsets[j, i] = rows[positions[t, j], i] - queries[t, i]
        local_slope(offsets, squared[t], near, ridge, out[t])


@subkernel
def local_slope(offsets: Floats, squared: Floats, labels: Floats, ridge: float, out: Floats) -> None:
    """Fill `out` with the slope of a weighted ridge regression of `labels` on `offsets`, nearest neighbours first.

    Weights fall with the squared distance to 0 at the last neighbour. The ridge is relative to the mean variance
    of the neighbours along a coordinate; the intercept is free.
    """
    k, d = offsets.shape
    total = 0.0
    mean_label = 0.0
    mean, gram, weights = np.empty(d), np.empty((d, d)), np.empty(k)
    for i in range(d):
        out[i] = mean[i] = 0.0
        for m in range(d):
            gram[i, m] = 0.0
    for j in range(k):
        weights[j] = 1.0 - squared[j] / squared[k - 1] if squared[k - 1] > 0.0 else 0.0
        total += weights[j]
        mean_label += weights[j] * labels[j]
        for i in range(d):
            mean[i] += weights[j] * offsets[j, i]
    if total <= 0.0:
        return
    for j in range(k):
        label = labels[j] - mean_label / total
        for i in range(d):
            scaled = weights[j] * (offsets[j, i] - mean[i] / total)
            out[i] += scaled * label
            for m in range(i + 1):
                gram[i, m] += scaled * (offsets[j, m] - mean[m] / total)
    trace = 0.0
    for i in range(d):
        trace += gram[i, i]
    if trace <= 1e-290:  # neighbours this close can't be told apart; their slope would overflow when squared
        for i in range(d):
            out[i] = 0.0
        return
    for i in range(d):
        gram[i, i] += ridge * trace / d
    _solve(gram, out)


@subkernel
def _solve(gram: Floats, vector: Floats) -> None:
    """Solve a positive definite system in place by Cholesky, given the lower triangle; leaves the factor in it."""
    d = len(vector)
    for i in range(d):
        for j in range(i + 1):
            value = gram[i, j]
            for m in range(j):
                value -= gram[i, m] * gram[j, m]
            gram[i, j] = math.sqrt(value) if i == j else value / gram[j, j]
    for i in range(d):
        value = vector[i]
        for m in range(i):
            value -= gram[i, m] * vector[m]
        vector[i] = value / gram[i, i]
    for i in range(d - 1, -1, -1):
        value = vector[i]
        for m in range(i + 1, d):
            value -= gram[m, i] * vector[m]
        vector[i] = value / gram[i, i]
