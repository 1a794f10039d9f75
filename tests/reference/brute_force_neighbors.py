"""Nearest neighbors by comparison with every point, in NumPy: slow and literal."""

import numpy as np

from ellipack.validation import Floats, Ints


def squared_distances(query: Floats, points: Floats) -> Floats:
    """Sum the squared differences from the first coordinate to the last, each operation rounded once."""
    total = np.zeros(len(points))
    with np.errstate(over="ignore", under="ignore"):
        for k in range(points.shape[1]):
            difference = query[k] - points[:, k]
            total = total + difference * difference
    return total


def sorted_neighbors(query: Floats, points: Floats) -> tuple[Ints, Floats]:
    """Return all positions and squared distances in ascending order of distance, then of position."""
    distances = squared_distances(query, points)
    order = np.argsort(distances, kind="stable")
    return order, distances[order]


def nearest(points: Floats, queries: Floats) -> tuple[Ints, Floats]:
    """Return position and squared distance of the nearest point of each query."""
    positions, distances = k_nearest(points, queries, 1)
    return positions[:, 0], distances[:, 0]


def k_nearest(points: Floats, queries: Floats, k: int) -> tuple[Ints, Floats]:
    """Return positions and squared distances of the k nearest points; -1 and infinity where there are fewer."""
    positions, distances = np.full((len(queries), k), -1), np.full((len(queries), k), np.inf)
    for row, query in enumerate(queries):
        order, sorted_distances = sorted_neighbors(query, points)
        positions[row, : len(points)] = order[:k]
        distances[row, : len(points)] = sorted_distances[:k]
    return positions, distances


def within(points: Floats, queries: Floats, radius: float) -> tuple[Ints, Ints, Floats]:
    """Return offsets, positions and squared distances of all points within a radius."""
    counts, positions, distances = [0], [np.empty(0, dtype=np.int64)], [np.empty(0)]
    for query in queries:
        order, sorted_distances = sorted_neighbors(query, points)
        held = sorted_distances <= radius * radius
        counts.append(int(held.sum()))
        positions.append(order[held])
        distances.append(sorted_distances[held])
    return np.cumsum(counts), np.concatenate(positions), np.concatenate(distances)
