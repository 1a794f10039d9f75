"""Exact nearest neighbors by looking at every point, in plain NumPy: the oracle for `ellipack.packing.index`.

It promises what the index promises: a squared distance is the sum, from the first coordinate to the last, of the
squared differences; points as near as each other come in order of position.
"""

from dataclasses import dataclass

import numpy as np

from ellipack.packing._kernels import Within
from ellipack.validation import Floats, Ints


@dataclass(frozen=True)
class Scan:
    """Points, one a row, all of which are looked at for every query."""

    points: Floats

    def distances(self, queries: Floats) -> Floats:
        """Return the squared distances of all points, a row a query."""
        squared = np.zeros((len(queries), len(self.points)))
        with np.errstate(over="ignore", under="ignore"):
            for j in range(self.points.shape[1]):
                gaps = queries[:, j, None] - self.points[:, j]
                squared += gaps * gaps
        return squared

    def nearest(self, queries: Floats) -> tuple[Ints, Floats]:
        """Answer as `Index.nearest` does."""
        squared = self.distances(queries)
        return squared.argmin(axis=1), squared.min(axis=1)

    def k_nearest(self, queries: Floats, k: int) -> tuple[Ints, Floats]:
        """Answer as `Index.k_nearest` does."""
        squared = self.distances(queries)
        order = np.argsort(squared, axis=1, kind="stable")[:, :k]
        positions, distances = np.full((len(queries), k), -1), np.full((len(queries), k), np.inf)
        positions[:, : order.shape[1]] = order
        distances[:, : order.shape[1]] = np.take_along_axis(squared, order, axis=1)
        return positions, distances

    def within(self, queries: Floats, radius: float) -> Within:
        """Answer as `Index.within` does."""
        squared = self.distances(queries)
        order = np.argsort(squared, axis=1, kind="stable")
        distances = np.take_along_axis(squared, order, axis=1)
        near = distances <= radius * radius
        return Within(np.concatenate([[0], np.cumsum(near.sum(axis=1))]), order[near], distances[near])
