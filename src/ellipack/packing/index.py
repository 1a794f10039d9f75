"""Exact nearest neighbours among points that keep being inserted.

A bucket kd-tree over coordinates that are whitened already, so that plain Euclidean distance is meant and the first
coordinates tell the most. It answers what a scan of all points answers, bit for bit, at a cost that hardly grows
with their number as long as their effective dimension is low. Where it is so high that many leaves have to be visited,
a query notices by itself and sweeps over all of them in the order of memory, passing by those that are far.

**What is promised.** The squared distance of two points is the sum, from the first coordinate to the last, of the
squared differences, each operation rounded to float64 once: no fused multiply-add, no other order of summation.
Every answer goes by that number, not by the real one that it stands for: two points whose distances differ by less
than the rounding may be tied, and then the one inserted earlier comes first. Squared distances beyond the range of
float64 are infinite, and tied with one another; those below it are 0. "Within a radius" means that the squared
distance is at most the radius times itself. No answer depends on how the points were inserted (one by one, in bulk,
in which batches), on the number of threads, or on whether a query walked or swept.

Points have positions 0, 1, 2 and so on, in the order of their insertion. Queries change nothing: any number of them
may run at the same time, but not while points are being inserted.
"""

from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import InputError, ShapeError
from ellipack.packing._kernels import LANES, Within
from ellipack.packing.batches import k_nearest_of, nearest_of, within_of
from ellipack.packing.tree import _kernels, state
from ellipack.packing.tree.growth import _kernels as growth
from ellipack.packing.tree.state import LEAVES, POINTS, POURED, SIZE, Tree
from ellipack.validation import Floats, Ints, rows, whole

FILL = 60
"""Points a leaf, when built in bulk: nearly full, with room for the first that come after."""


class Index:
    """An index over points of `d` coordinates; all that it holds are the flat arrays of `tree`.

    >>> index = Index.build([[0.0, 0.0], [3.0, 4.0]])
    >>> index.insert([[3.0, 3.5]])
    >>> index.nearest([[3.0, 3.0]])
    (array([2]), array([0.25]))
    >>> index.k_nearest([[3.0, 3.0]], k=2)
    (array([[2, 1]]), array([[0.25, 1.  ]]))
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @classmethod
    def empty(cls, d: int) -> Self:
        """Return an index without points."""
        return cls(state.empty(whole(d, "d", 1)))

    @classmethod
    def build(cls, points: ArrayLike) -> Self:
        """Return an index over `points`, one a row, built in bulk.

        To re-embed points in another metric is to build an index over their new coordinates.
        """
        array = rows(points, name="points")
        count, d = array.shape
        leaves = -(-count // FILL)
        tree = state.empty(d, leaves)
        state.pour(tree, array, FILL)
        tree.counters[:] = count, leaves, POURED
        growth.insert_rows(tree, array[count:], 0, 0)
        return cls(tree)

    def copy(self) -> Self:
        """Return an index of its own over the same points."""
        return type(self)(state.copy(self.tree))

    def __len__(self) -> int:
        return int(self.tree.counters[POINTS])

    @property
    def d(self) -> int:
        """The number of coordinates."""
        return int(self.tree.points.shape[2])

    @property
    def nbytes(self) -> int:
        """The memory that the index takes, room for points to come included."""
        return sum(array.nbytes for array in self.tree)

    def points(self) -> Floats:
        """Return the coordinates of all points, one a row, in order of position."""
        leaves = np.arange(self.tree.counters[LEAVES])
        held = np.arange(LANES) < self.tree.links[2 * leaves, SIZE][:, None]
        points = np.empty((len(self), self.d))
        points[self.tree.positions[leaves][held]] = self.tree.points[leaves][held]
        return points

    def insert(self, points: ArrayLike) -> None:
        """Insert points, one a row, at the next positions."""
        array = rows(points, self.d, "points")
        done = 0
        while (done := growth.insert_rows(self.tree, array, done, 0)) < len(array):
            self.tree = state.grow(self.tree)

    def keep(self, mask: ArrayLike) -> Self:
        """Return an index over the points where `mask` is true, numbered anew in the same order."""
        kept = np.asarray(mask)
        if kept.dtype != np.bool_:
            raise InputError(f"mask must hold booleans, got {kept.dtype}")
        if kept.shape != (len(self),):
            raise ShapeError(f"mask must have shape {(len(self),)}, one entry a point, got {kept.shape}")
        return type(self).build(self.points()[kept]) if kept.any() else type(self).empty(self.d)

    def nearest(self, queries: ArrayLike, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Return, for each row of `queries`, the position and the squared distance of the nearest point.

        Parameters
        ----------
        queries
            Finite coordinates, one query a row.
        n_jobs
            The number of threads; -1 is one for each core.

        Returns
        -------
        positions, distances
            Both of shape (queries,). If the index is empty, -1 and infinity.
        """
        return nearest_of(_kernels.nearest_rows, self.tree, rows(queries, self.d, "queries"), n_jobs)

    def k_nearest(self, queries: ArrayLike, k: int, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Return, for each row of `queries`, the `k` nearest points, sorted by (squared distance, position).

        Both answers have shape (queries, k). If there are fewer points, the rest is -1 and infinity.
        """
        array = rows(queries, self.d, "queries")
        return k_nearest_of(_kernels.search_rows, self.tree, array, k, n_jobs)

    def within(self, queries: ArrayLike, radius: float, n_jobs: int = 1) -> Within:
        """Return, for each row of `queries`, all points within `radius`, sorted by (squared distance, position)."""
        array = rows(queries, self.d, "queries")
        return within_of(_kernels.search_rows, self.tree, array, radius, n_jobs)
