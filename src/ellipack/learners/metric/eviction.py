"""Bounded memory: when there are `max_centers` centers, a quarter of them are evicted."""

import numpy as np
from numpy.typing import NDArray

from ellipack._core import CenterMemory, KdTree, MetricParts
from ellipack.learners.metric.state import project_rows
from ellipack.validation import Floats

_EVICTED_PART = 0.25  # so that the next time is far off
_LEADING = 8  # coordinates of the tree whose leaves are searched for pairs: the others vary too little
_LEAST_UNIT = 1e-150  # to divide by


def evict_redundant_centers(parts: MetricParts) -> MetricParts:
    """Return the parts with a quarter of the centers evicted, chosen in the first view's coordinates."""
    means = parts.centers.label_sums / parts.centers.label_counts
    return keep_centers(parts, ~find_redundant(parts.coordinates[0], means, _EVICTED_PART))


def keep_centers(parts: MetricParts, kept: NDArray[np.bool_]) -> MetricParts:
    """Return the parts with those centers that a mask names."""
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


def find_redundant(points: Floats, labels: Floats, part: float) -> NDArray[np.bool_]:
    """Return a mask of the points to evict, this part of all.

    A point is redundant if a later one in the same leaf of a kd-tree is close to it. Most close pairs share a leaf, and
    the pairs of a leaf are a few thousand where all pairs would be billions. Points are ranked by how close their
    nearest later one is, in place and in label, and by age, since streams drift; both ranks count alike. The tree is
    built for this purpose: the shape of the one that grew with the points depends on more than the points.
    """
    size = len(points)
    tree = KdTree.build(np.ascontiguousarray(points[:, :_LEADING]))
    nearest, apart = tree.nearest_later_in_leaf(points)
    able = np.flatnonzero(np.isfinite(apart))
    loss = _in_medians(apart[able]) + _in_medians((labels[able] - labels[nearest[able]]) ** 2)
    rank = np.empty(len(able))
    rank[np.argsort(loss, kind="stable")] = np.arange(len(able))
    evicted = np.zeros(size, dtype=bool)
    evicted[able[np.argsort(rank + able, kind="stable")[: int(np.ceil(part * size))]]] = True
    return evicted


def _in_medians(values: Floats) -> Floats:
    """Return values in units of their median, so that distances and labels can be added."""
    middle = np.median(values) if len(values) else 0.0
    return np.asarray(values / middle) if middle > _LEAST_UNIT else values
