"""Eviction of redundant centers: at `max_centers` centers, a quarter of them are evicted."""

import numpy as np
from numpy.typing import NDArray

from ellipack._core import CenterMemory, KdTree, MetricParts
from ellipack.learners.metric.state import project_rows
from ellipack.validation import Floats

_EVICTED_FRACTION = 0.25  # large, because evictions are expensive
_TREE_COORDINATES = 8  # leading coordinates, by which the kd-tree groups the points
_MIN_MEDIAN = 1e-150  # smaller medians are not used as units


def evict_redundant_centers(parts: MetricParts) -> MetricParts:
    """Return the parts of a core without a quarter of the centers, chosen by their coordinates in the first view.

    Parameters
    ----------
    parts : MetricParts
        Parts of a core. They are not changed.

    Returns
    -------
    smaller : MetricParts
    """
    means = parts.centers.label_sums / parts.centers.label_counts
    return keep_centers(parts, ~find_redundant(parts.coordinates[0], means, _EVICTED_FRACTION))


def keep_centers(parts: MetricParts, kept: NDArray[np.bool_]) -> MetricParts:
    """Return the parts of a core with a subset of the centers.

    Parameters
    ----------
    parts : MetricParts
        Parts of a core. They are not changed.
    kept : array of bool, shape (n_centers,)
        Mask of the centers to keep.

    Returns
    -------
    smaller : MetricParts
    """
    old = parts.centers
    centers = CenterMemory(old.rows[kept], old.label_sums[kept], old.label_counts[kept], old.round_sums[kept])
    return MetricParts(
        views=parts.views,
        centers=centers,
        packing=parts.packing,
        regressions=parts.regressions,
        aggregation=parts.aggregation,
        label_statistics=parts.label_statistics,
        feature_statistics=parts.feature_statistics,
        coordinates=[project_rows(view, centers.rows) for view in parts.views],
        clock=parts.clock,
    )


def find_redundant(points: Floats, labels: Floats, fraction: float) -> NDArray[np.bool_]:
    """Return a mask of redundant points.

    A point is redundant if a later point in the same leaf of a kd-tree is close to it. Only pairs within leaves are
    compared: most close pairs share a leaf, and comparing all pairs would be too expensive. Points are ranked by the
    distance and label difference to their nearest later point, and by age, because streams drift. Both ranks have equal
    weight. The tree is built here, because the shape of a tree that grew with the points depends on its history.

    Parameters
    ----------
    points : array of shape (n, d)
        Points, oldest first.
    labels : array of shape (n,)
        Their labels.
    fraction : float
        Largest fraction of the points to mark.

    Returns
    -------
    redundant : array of bool, shape (n,)

    Examples
    --------
    >>> points = np.array([[0.0], [5.0], [9.0], [0.1]])
    >>> find_redundant(points, np.zeros(4), 0.25).tolist()
    [True, False, False, False]
    """
    size = len(points)
    tree = KdTree.build(np.ascontiguousarray(points[:, :_TREE_COORDINATES]))
    nearest, squared_distances = tree.nearest_later_in_leaf(points)
    with_later = np.flatnonzero(np.isfinite(squared_distances))  # points with a later one in their leaf
    label_differences = labels[with_later] - labels[nearest[with_later]]
    loss = _in_medians(squared_distances[with_later]) + _in_medians(label_differences**2)
    rank = np.empty(len(with_later))
    rank[np.argsort(loss, kind="stable")] = np.arange(len(with_later))
    order = np.argsort(rank + with_later, kind="stable")
    redundant = np.zeros(size, dtype=bool)
    redundant[with_later[order[: int(np.ceil(fraction * size))]]] = True
    return redundant


def _in_medians(values: Floats) -> Floats:
    """Return values divided by their median, so that distances and label differences can be added."""
    median = np.median(values) if len(values) else 0.0
    return np.asarray(values / median) if median > _MIN_MEDIAN else values
