"""Brute-force nearest neighbors, and the local experts by their textbook formulas."""

from typing import NamedTuple

import numpy as np

from tests.reference.feature_views import Floats, Ints

FIT_RIDGES = (0.01, 0.1)
"""Ridges of the local linear fits, relative to the mean variance of a coordinate."""

ROUNDING = 1e-14
"""Offsets are equal if their difference relative to their mean is smaller."""

TREND_NUGGET = 0.03
TIME_DECAYS = (0.2, 1.0, 5.0)
"""Loss of correlation over the whole past for each space-time kriging."""


class Neighborhood(NamedTuple):
    """The neighbors of a query, nearest first.

    `labels` are mean labels minus the label of the nearest neighbor. `trend` and `forgetting_trend` are predictions of
    the global regressions for the neighbors minus those for the query. `ages` are ages in rounds, relative to the
    number of all rounds.
    """

    positions: Ints
    squared: Floats
    offsets: Floats
    labels: Floats
    counts: Floats
    trend: Floats
    forgetting_trend: Floats
    ages: Floats

    def nearest(self, few: int) -> "Neighborhood":
        return Neighborhood(self.positions[:few], *(each[:few] for each in self[1:]))


def squared_distances(points: Floats, queries: Floats) -> Floats:
    """Return the squared distances of all points to each query, summed coordinate by coordinate."""
    total = np.zeros((*queries.shape[:-1], len(points)))
    for k in range(points.shape[1]):
        gap = queries[..., k, None] - points[:, k]
        total += gap * gap
    return total


def nearest_neighbors(points: Floats, queries: Floats, count: int) -> tuple[Ints, Floats]:
    """Return positions and squared distances of the nearest points of each query. Ties go to the earliest point."""
    squared = squared_distances(points, queries)
    order = np.argsort(squared, axis=-1, kind="stable")[..., :count]
    return order, np.take_along_axis(squared, order, axis=-1)


def mean_label(near: Neighborhood) -> float:
    return float(near.counts @ near.labels / near.counts.sum())


def local_linear_fits(near: Neighborhood, fit_dimension: int) -> tuple[list[float], Floats]:
    """Return the fits at the query, one for each ridge, by weighted regression on the leading coordinates.

    The weights fall to 0 at the last neighbor. The slope of the first fit is returned as well.
    """
    last = near.squared[-1]
    weights = near.counts * (1 - near.squared / last if last > 0 else 1.0)
    if weights.sum() <= 0:
        return [mean_label(near)] * len(FIT_RIDGES), np.zeros(fit_dimension)
    offsets = near.offsets[:, :fit_dimension]
    mean, label = np.average(offsets, axis=0, weights=weights), np.average(near.labels, weights=weights)
    centered = offsets - mean
    gram = centered.T @ np.diag(weights) @ centered
    if not np.trace(gram) > 1e-290 + weights.sum() * (ROUNDING * np.linalg.norm(mean)) ** 2:
        return [float(label)] * len(FIT_RIDGES), np.zeros(fit_dimension)
    slopes = []
    for ridge in FIT_RIDGES:
        penalty = ridge * np.trace(gram) / fit_dimension
        moments = centered.T @ (weights * (near.labels - label))
        slopes.append(np.linalg.solve(gram + penalty * np.eye(fit_dimension), moments))
    return [float(label - mean @ slope) for slope in slopes], slopes[0]


def exponential_correlation(distances: Floats, length: float | Floats) -> Floats:
    return np.exp(-distances / length)


def matern_correlation(distances: Floats, length: float | Floats) -> Floats:
    scaled = np.sqrt(3) * distances / length
    return np.asarray((1 + scaled) * np.exp(-scaled))


def ordinary_kriging(correlations: Floats, to_query: Floats, nuggets: Floats, labels: Floats) -> Floats:
    """Return predictions by the ordinary kriging equations: weights that add up to 1, by a Lagrange multiplier.

    Any leading axes are for separate systems.
    """
    n = correlations.shape[-1]
    system, right = np.ones((*correlations.shape[:-2], n + 1, n + 1)), np.ones((*correlations.shape[:-2], n + 1, 1))
    system[..., :n, :n] = correlations + np.maximum(nuggets, 1e-6)[..., None] * np.eye(n)
    system[..., n, n] = 0.0
    right[..., :n, 0] = to_query
    weights = np.linalg.solve(system, right)[..., :n, 0]
    return np.asarray((weights * labels).sum(axis=-1))


def pairwise_distances(points: Floats) -> Floats:
    """Return the distances between points; the last two axes are points and coordinates."""
    total = np.zeros((*points.shape[:-1], points.shape[-2]))
    for k in range(points.shape[-1]):
        total += (points[..., :, None, k] - points[..., None, :, k]) ** 2
    return np.sqrt(total)


def spatial_krigings(near: Neighborhood, distances: Floats, reach: float) -> Floats:
    """Return four krigings: each of two correlations, with short range and small nugget and with long and large."""
    to_query = np.sqrt(near.squared)
    within, across, nuggets = [], [], []
    for correlation in (exponential_correlation, matern_correlation):
        for length, nugget in ((2.0, 0.01), (5.0, 0.1)):
            within.append(correlation(distances, length * reach))
            across.append(correlation(to_query, length * reach))
            nuggets.append(nugget / near.counts)
    return ordinary_kriging(np.array(within), np.array(across), np.array(nuggets), near.labels)


def krigings_about_trends(near: Neighborhood, distances: Floats, reach: float) -> Floats:
    """Return regression kriging, and three space-time krigings about the regression with forgetting."""
    length = 5 * reach
    within = matern_correlation(distances, length)
    across = matern_correlation(np.sqrt(near.squared), length)
    gaps = np.abs(near.ages[:, None] - near.ages)
    systems, queries, labels = [within], [across], [near.labels - near.trend]
    for decay in TIME_DECAYS:
        systems.append(within * np.maximum(0, 1 - decay * gaps))
        queries.append(across * np.maximum(0, 1 - decay * near.ages))
        labels.append(near.labels - near.forgetting_trend)
    return ordinary_kriging(np.array(systems), np.array(queries), TREND_NUGGET / near.counts, np.array(labels))


def krigings(near: Neighborhood) -> Floats:
    """Return the predictions by kriging. Lengths are multiples of the distance to the last neighbor."""
    distances, reach = pairwise_distances(near.offsets), max(float(np.sqrt(near.squared[-1])), 1e-150)
    return np.concatenate([spatial_krigings(near, distances, reach), krigings_about_trends(near, distances, reach)])


def local_predictions(near: Neighborhood, fit_dimension: int, kriged: int) -> tuple[Floats, Floats]:
    """Return predictions of local experts minus the label of the nearest neighbor, and the slope of the first fit."""
    fits, slope = local_linear_fits(near.nearest(2 * fit_dimension + 10), fit_dimension)
    return np.array([mean_label(near.nearest(16)), *fits, *krigings(near.nearest(kriged))]), slope
