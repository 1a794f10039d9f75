"""Baselines in plain NumPy: Algorithm 1, appendix A and a scan for nearest neighbors."""

import numpy as np

from ellipack.metric import Metric
from ellipack.validation import Floats


def packing_as_printed(metric: Metric, X: Floats, y: Floats) -> Floats:
    """Return the predictions of Algorithm 1 as printed: the radius by definition, distances in M, in every round."""
    M, eigenvalues = metric.matrix, metric.eigenvalues
    ranks = np.arange(1, len(eigenvalues) + 1)
    centers, sums, counts = X[:1], [0.0], [0]
    predictions = np.empty(len(y))
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        kappa = (eigenvalues[:, None] >= t ** (-2 / (1 + ranks))).sum(axis=0)
        radius = t ** (-1 / (1 + ranks[kappa <= ranks].min()))
        differences = centers - x
        distances = np.sqrt(((differences @ M) * differences).sum(axis=1))
        active = int(distances.argmin())
        predictions[t - 1] = sums[active] / counts[active] if counts[active] else 0.5
        if distances[active] <= radius:
            sums[active] += label
            counts[active] += 1
        else:
            centers = np.vstack([centers, x])
            sums.append(label)
            counts.append(1)
    return predictions


def packing_whitened(metric: Metric, X: Floats, y: Floats) -> Floats:
    """Return the same predictions faster: rows whitened once, effective rank updated, centers preallocated."""
    coordinates = X @ metric.directions
    eigenvalues = metric.eigenvalues
    n, d = X.shape
    centers, sums, counts = np.empty((n + 1, d)), np.zeros(n + 1), np.zeros(n + 1)
    size, rank = 0, 1
    predictions = np.empty(n)
    for t, (x, label) in enumerate(zip(coordinates, y, strict=True), start=1):
        # The effective rank never falls, so the search continues from that of the round before.
        while rank < d and eigenvalues[rank] >= t ** (-2 / (1 + rank)):
            rank += 1
        radius = t ** (-1 / (1 + rank))
        if size == 0:
            centers[0] = x
            size = 1
        squared = ((centers[:size] - x) ** 2).sum(axis=1)
        active = squared.argmin()
        predictions[t - 1] = sums[active] / counts[active] if counts[active] else 0.5
        if np.sqrt(squared[active]) > radius:
            active = size
            centers[active] = x
            size += 1
        sums[active] += label
        counts[active] += 1
    return predictions


def appendix_a_gradients(anchors: Floats, X: Floats, y: Floats, scales: tuple[float, float, float]) -> Floats:
    """Return the gradients of appendix A, literally: a kernel regression at each of the 2d shifts of an anchor.

    `scales` are the bandwidth, the step and the mass threshold; the kernel is ``1 - u^2``.
    """
    _, step, mass = scales
    out = np.zeros_like(anchors)
    for a, anchor in enumerate(anchors):
        for i, shift in enumerate(step * np.eye(X.shape[1])):
            forward, mass_forward = _regression(anchor + shift, X, y, scales[0])
            back, mass_back = _regression(anchor - shift, X, y, scales[0])
            if min(mass_forward, mass_back) >= mass:
                out[a, i] = (forward - back) / (2 * step)
    return out


def _regression(query: Floats, X: Floats, y: Floats, bandwidth: float) -> tuple[float, int]:
    """Return the kernel regression at a point, and the number of rows within half a bandwidth."""
    u = np.sqrt(((X - query) ** 2).sum(axis=1)) / bandwidth
    weights = np.maximum(1 - u**2, 0)
    total = weights.sum()
    value = weights @ y / total if total > 0 else y.mean()
    return float(value), int((u <= 0.5).sum())


def squared_distances(columns: Floats, query: Floats) -> Floats:
    """Return the squared distance of every point to a query, summed in the order of coordinates.

    Row i of `columns` holds coordinate i of all points.
    """
    squared = np.zeros(columns.shape[1])
    for column, coordinate in zip(columns, query, strict=True):
        differences = column - coordinate
        squared += differences * differences
    return squared
