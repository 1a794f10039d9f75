"""Eviction of redundant centers: at `max_centers` centers, a quarter of them are evicted."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ellipack._core import CenterIndex, CenterMemory, FeatureView, KdTree, MetricParts
from ellipack.learners.metric.state import replace_parts
from ellipack.validation import Floats, Ints

_EVICTED_FRACTION = 0.25  # large, because evictions are expensive
_TREE_COORDINATES = 8  # leading coordinates, by which the kd-tree groups the points
_MIN_MEDIAN = 1e-150  # smaller medians are not used as units

IndexedCenters = tuple[CenterMemory, CenterIndex]
"""Centers, and their index."""


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
    centers, index = _evict(parts.centers, parts.index.coordinates[0], parts.views, _EVICTED_FRACTION)
    return replace_parts(parts, centers=centers, index=index)


def evict_to_bound(
    centers: CenterMemory, coordinates: Floats, views: Sequence[FeatureView], max_centers: int
) -> IndexedCenters:
    """Evict redundant centers until there are fewer than `max_centers`: as many as if a quarter went each time.

    Parameters
    ----------
    centers : CenterMemory
        Centers, oldest first. They are not changed.
    coordinates : array of shape (n_centers, rank)
        Their coordinates in the first view.
    views : sequence of FeatureView
        All views.
    max_centers : int
        Bound of the number of centers.

    Returns
    -------
    smaller, index : CenterMemory, CenterIndex
    """
    kept = 1.0
    while np.ceil(kept * len(centers)) >= max_centers:
        kept *= 1 - _EVICTED_FRACTION
    smaller, index = _evict(centers, coordinates, views, 1 - kept)
    while len(smaller) >= max_centers:  # too few had a later point in their leaf
        smaller, index = _evict(smaller, index.coordinates[0], views, _EVICTED_FRACTION)
    return smaller, index


def _evict(centers: CenterMemory, coordinates: Floats, views: Sequence[FeatureView], fraction: float) -> IndexedCenters:
    """Return centers without a fraction of them."""
    redundant = find_redundant(coordinates, centers.label_sums / centers.label_counts, fraction)
    return keep_centers(centers, np.flatnonzero(~redundant), views)


def keep_centers(centers: CenterMemory, places: Ints, views: Sequence[FeatureView]) -> IndexedCenters:
    """Return some of the centers.

    Parameters
    ----------
    centers : CenterMemory
        Centers. They are not changed.
    places : array of int
        Places of those to keep.
    views : sequence of FeatureView
        All views.

    Returns
    -------
    kept, index : CenterMemory, CenterIndex
    """
    # Rows are projected again: merged rows may have moved since they were projected.
    coordinates = [centers.project(view, places, view.directions) for view in views]
    return centers.take(places), CenterIndex(coordinates)


def find_redundant(points: Floats, labels: Floats, fraction: float) -> NDArray[np.bool_]:
    """Return a mask of redundant points.

    Only points with a later point in the same leaf of a kd-tree can be redundant. Each of them has two ranks: one by
    its loss, one by its age, oldest first, because streams drift. The loss is the squared distance plus the squared
    label difference to the nearest later point in the leaf, each in units of its median. The points with the smallest
    sum of ranks are marked.

    Only pairs within leaves are compared: most close pairs share a leaf, and comparing all pairs would be too
    expensive. The tree is built here, because the shape of a tree that grew with the points depends on its history.

    Parameters
    ----------
    points : array of shape (n, d)
        Points, oldest first.
    labels : array of shape (n,)
        Their labels.
    fraction : float
        Fraction of the points to mark. The number is rounded up; it is smaller if fewer points have a later one.

    Returns
    -------
    redundant : array of bool, shape (n,)

    Examples
    --------
    The nearest later point of 10.0 is 10.1. The oldest point, 100.0, is far from all later ones.

    >>> points = np.array([[100.0], [10.0], [30.0], [10.1], [60.0]])
    >>> find_redundant(points, np.zeros(5), 0.2).tolist()
    [False, True, False, False, False]
    """
    size = len(points)
    tree = KdTree.build(np.ascontiguousarray(points[:, :_TREE_COORDINATES]))
    nearest, squared_distances = tree.nearest_later_in_leaf(points)
    candidates = np.flatnonzero(np.isfinite(squared_distances))  # points with a later one in their leaf
    label_differences = labels[candidates] - labels[nearest[candidates]]
    loss = _divide_by_median(squared_distances[candidates]) + _divide_by_median(label_differences**2)
    loss_rank = np.empty(len(candidates))
    loss_rank[np.argsort(loss, kind="stable")] = np.arange(len(candidates))
    age_rank = candidates  # positions: oldest first
    count = min(int(np.ceil(fraction * size)), len(candidates))
    redundant = np.zeros(size, dtype=bool)
    if count:
        rank_sums = (loss_rank + age_rank) * size + candidates  # unique: of equal sums, the oldest comes first
        redundant[candidates[np.argpartition(rank_sums, count - 1)[:count]]] = True
    return redundant


def _divide_by_median(values: Floats) -> Floats:
    """Return values in units of their median, or unchanged if the median is nearly 0."""
    median = np.median(values) if len(values) else 0.0
    return np.asarray(values / median) if median > _MIN_MEDIAN else values
