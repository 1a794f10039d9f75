"""Eviction of redundant centers."""

import math

import numpy as np

from tests.reference.feature_views import Floats, Ints
from tests.reference.local_experts import squared_distances

LEAF, LEADING, EVICTED_PART = 60, 8, 0.25


def leaves(points: Floats) -> list[Ints]:
    """Return the leaves of a tree built in bulk: up to 60 points are one leaf, up to 120 are two.

    Two leaves are split at the median of the coordinate that is widest over a sample.
    """
    size = len(points)
    if size <= LEAF:
        return [np.arange(size)]
    if size > 2 * LEAF:
        raise NotImplementedError(f"points must be at most {2 * LEAF}, got {size}")
    sample = points[:: 1 + size // 32]
    order = np.argsort(points[:, int(np.ptp(sample, axis=0).argmax())], kind="stable")
    return [np.sort(order[: size // 2]), np.sort(order[size // 2 :])]


def in_medians(values: Floats) -> Floats:
    median = np.median(values) if len(values) else 0.0
    return np.asarray(values / median) if median > 1e-150 else values


def evicted_centers(points: Floats, labels: Floats) -> Ints:
    """Return the quarter of the centers that newer ones make redundant.

    A center can be evicted if its leaf has a later one. The loss is the squared distance to the nearest later center
    plus the squared difference of labels, both in units of their medians. The order is by rank of loss plus of age.
    """
    able, distances, differences = [], [], []
    for leaf in leaves(points[:, :LEADING]):
        for place, center in enumerate(leaf[:-1]):
            later = leaf[place + 1 :]
            squared = squared_distances(points[later], points[center])
            able.append(center)
            distances.append(squared.min())
            differences.append((labels[center] - labels[later[squared.argmin()]]) ** 2)
    by_age = np.argsort(able)
    candidates = np.array(able)[by_age]
    loss = in_medians(np.array(distances)[by_age]) + in_medians(np.array(differences)[by_age])
    rank = np.empty(len(candidates))
    rank[np.argsort(loss, kind="stable")] = np.arange(len(candidates))
    count = math.ceil(EVICTED_PART * len(points))
    return np.asarray(candidates[np.argsort(rank + candidates, kind="stable")[:count]])
