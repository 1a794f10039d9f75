"""Exact nearest neighbors in a growing set of points.

`NeighborIndex` is a kd-tree. It answers every query as a comparison with all points would, to the last bit, at a cost
that hardly grows with the number of points as long as their effective dimension is low.

**Distances.** All distances are squared Euclidean distances: the sum, from the first coordinate to the last, of the
squared differences, each operation rounded to float64 once. There are no fused multiply-adds and no other order of
summation. Squared distances beyond the range of float64 are infinite; those below it are 0.

**Order.** Answers are sorted by this computed number. Of two points at equal distance, the one inserted earlier comes
first. A point is within a radius if its computed squared distance is at most ``radius * radius``.

**Reproducibility.** No answer depends on how the points were inserted (one by one, in bulk, in which batches), on the
number of threads or on the processor.

**Speed.** Searches are fastest if the first coordinates vary most, as they do after whitening with a metric.
"""

from collections.abc import Callable
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import KdTree
from ellipack.errors import InputError, ShapeError
from ellipack.locks import LearnLock
from ellipack.parallel import for_row_slices, rows_per_call
from ellipack.validation import Floats, Ints, check_integer, check_positive, check_rows

Found = TypeVar("Found")

_INSERTED_PER_CALL = 16_384
_MAX_NEIGHBORS = 2**31 - 1
_VISITED = 0.1  # fraction of the points that a search visits, if there are many coordinates


class RadiusNeighbors(NamedTuple):
    """Points within a radius of each query.

    The neighbors of query ``i`` are entries ``offsets[i]`` to ``offsets[i + 1]`` of the other arrays, nearest first.

    Attributes
    ----------
    offsets : array of int64, shape (n_queries + 1,)
        Where the neighbors of each query begin and end.
    positions : array of int64, shape (n_neighbors,)
        Positions of the neighbors.
    distances : array of float64, shape (n_neighbors,)
        Squared distances to the neighbors.
    """

    offsets: Ints
    positions: Ints
    distances: Floats


class NeighborIndex:
    """Exact index of nearest neighbors that grows with its points.

    Points have positions 0, 1, 2 and so on in the order of insertion.

    Threads may share an index. The compiled tree has a lock, which serves threads in the order of their calls: any
    number of searches run at the same time, and an insertion waits for them. A search for many queries, or an insertion
    of many points, consists of several calls, so that signals are handled. Between two calls of a search, another
    thread may insert points, which only the queries that remain can find. The points of an insertion have consecutive
    positions.

    Parameters
    ----------
    tree : KdTree
        The compiled tree. Use `NeighborIndex.empty` or `NeighborIndex.build` instead of the constructor.

    Examples
    --------
    >>> index = NeighborIndex.build([[0.0, 0.0], [3.0, 4.0]])
    >>> index.insert([[3.0, 3.5]])
    >>> index.nearest([[3.0, 3.0]])
    (array([2]), array([0.25]))
    >>> index.k_nearest([[3.0, 3.0]], k=2)
    (array([[2, 1]]), array([[0.25, 1.  ]]))
    """

    def __init__(self, tree: KdTree) -> None:
        self._tree = tree
        self._insert_lock = LearnLock()

    @classmethod
    def empty(cls, d: int) -> Self:
        """Return an index without points.

        Parameters
        ----------
        d : int
            Number of coordinates, at least 1.

        Returns
        -------
        index : NeighborIndex

        Examples
        --------
        >>> len(NeighborIndex.empty(3))
        0
        """
        return cls(KdTree(check_integer(d, "d", 1)))

    @classmethod
    def build(cls, points: ArrayLike) -> Self:
        """Return an index over given points, built in bulk.

        Parameters
        ----------
        points : array-like of shape (n_points, d)
            Finite coordinates, one point per row.

        Returns
        -------
        index : NeighborIndex

        Examples
        --------
        >>> len(NeighborIndex.build([[0.0], [1.0]]))
        2
        """
        return cls(KdTree.build(check_rows(points, name="points")))

    def copy(self) -> Self:
        """Return an independent index over the same points.

        Examples
        --------
        >>> index = NeighborIndex.build([[0.0], [1.0]])
        >>> index.copy().insert([[2.0]])
        >>> len(index)
        2
        """
        return type(self)(self._tree.copy())

    def __len__(self) -> int:
        return len(self._tree)

    @property
    def d(self) -> int:
        """Number of coordinates."""
        return self._tree.dimension

    @property
    def nbytes(self) -> int:
        """Memory of the index in bytes, including room for points to come."""
        return self._tree.memory_bytes

    def points(self) -> Floats:
        """Return the coordinates of all points, one per row, in order of position.

        Examples
        --------
        >>> NeighborIndex.build([[0.0, 1.0]]).points()
        array([[0., 1.]])
        """
        return self._tree.points()

    def insert(self, points: ArrayLike) -> None:
        """Insert points at the next positions. After an interrupt, only the first of them may be inserted.

        Parameters
        ----------
        points : array-like of shape (n_points, d)
            Finite coordinates, one point per row.

        Raises
        ------
        ReentrantCallError
            If a signal handler inserts points while the same thread does.

        Examples
        --------
        >>> index = NeighborIndex.empty(1)
        >>> index.insert([[0.5], [2.5]])
        >>> len(index)
        2
        """
        array = check_rows(points, self.d, "points")
        with self._insert_lock.turn:
            for start in range(0, len(array), _INSERTED_PER_CALL):
                self._tree.insert(array[start : start + _INSERTED_PER_CALL])

    def keep(self, mask: ArrayLike) -> Self:
        """Return an index over some of the points, which get new positions in the same order.

        Parameters
        ----------
        mask : array-like of bool, shape (n_points,)
            Which points to keep.

        Returns
        -------
        index : NeighborIndex

        Examples
        --------
        >>> NeighborIndex.build([[0.0], [1.0], [2.0]]).keep([True, False, True]).points()
        array([[0.],
               [2.]])
        """
        points, kept = self.points(), np.asarray(mask)
        if kept.dtype != np.bool_:
            raise InputError(f"mask must hold booleans, got {kept.dtype}")
        if kept.shape != (len(points),):
            raise ShapeError(f"mask must have shape {(len(points),)}, one entry per point, got {kept.shape}")
        return type(self)(KdTree.build(points[kept]))

    def nearest(self, queries: ArrayLike, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Return the nearest point of each query.

        Parameters
        ----------
        queries : array-like of shape (n_queries, d)
            Finite coordinates, one query per row.
        n_jobs : int, default 1
            Number of threads; -1 is one for each core.

        Returns
        -------
        positions : array of int64, shape (n_queries,)
            Positions of the nearest points; -1 if the index is empty.
        distances : array of float64, shape (n_queries,)
            Squared distances; infinity if the index is empty.

        Examples
        --------
        >>> NeighborIndex.build([[0.0], [1.0]]).nearest([[0.75], [-2.0]])
        (array([1, 0]), array([0.0625, 4.    ]))
        """
        found = self._search(self._tree.nearest, check_rows(queries, self.d, "queries"), n_jobs)
        return _positions([part[0] for part in found]), _distances([part[1] for part in found])

    def k_nearest(self, queries: ArrayLike, k: int, n_jobs: int = 1) -> tuple[Ints, Floats]:
        """Return the k nearest points of each query, sorted by (squared distance, position).

        Parameters
        ----------
        queries : array-like of shape (n_queries, d)
            Finite coordinates, one query per row.
        k : int
            Number of neighbors, from 1 to 2^31 - 1.
        n_jobs : int, default 1
            Number of threads; -1 is one for each core.

        Returns
        -------
        positions : array of int64, shape (n_queries, k)
            Positions of the nearest points; -1 where the index has fewer than k points.
        distances : array of float64, shape (n_queries, k)
            Squared distances; infinity where the index has fewer than k points.

        Examples
        --------
        >>> NeighborIndex.build([[0.0], [1.0]]).k_nearest([[0.75]], k=3)
        (array([[ 1,  0, -1]]), array([[0.0625, 0.5625,    inf]]))
        """
        array, most = check_rows(queries, self.d, "queries"), check_integer(k, "k", 1, _MAX_NEIGHBORS)
        found = self._search(lambda part: self._tree.k_nearest(part, most), array, n_jobs)
        return _positions([part[0] for part in found]), _distances([part[1] for part in found])

    def within(self, queries: ArrayLike, radius: float, n_jobs: int = 1) -> RadiusNeighbors:
        """Return all points within a radius of each query, sorted by (squared distance, position).

        Parameters
        ----------
        queries : array-like of shape (n_queries, d)
            Finite coordinates, one query per row.
        radius : float
            Largest distance (not squared), above 0.
        n_jobs : int, default 1
            Number of threads; -1 is one for each core.

        Returns
        -------
        neighbors : RadiusNeighbors

        Examples
        --------
        >>> index = NeighborIndex.build([[0.0], [1.0], [5.0]])
        >>> neighbors = index.within([[0.75], [9.0]], radius=1.0)
        >>> neighbors.offsets.tolist(), neighbors.positions.tolist()
        ([0, 2, 2], [1, 0])
        """
        array, limit = check_rows(queries, self.d, "queries"), check_positive(radius, "radius")
        limit *= limit  # a power would raise where the product is infinite
        found = self._search(lambda part: self._tree.within(part, limit), array, n_jobs)
        counts = np.concatenate([np.diff(offsets) for offsets, _, _ in found])
        return RadiusNeighbors(
            np.concatenate([[0], np.cumsum(counts)]),
            _positions([positions for _, positions, _ in found]),
            _distances([distances for _, _, distances in found]),
        )

    def _search(self, search: Callable[[Floats], Found], queries: Floats, n_jobs: int) -> list[Found]:
        """Search for slices of the queries in threads and return the answers in order."""
        answers: dict[int, Found] = {}

        def answer(part: slice) -> None:
            answers[part.start] = search(queries[part])

        for_row_slices(answer, len(queries), n_jobs, rows_per_call(_VISITED * queries.shape[1] * len(self)))
        return [answers[start] for start in sorted(answers)]


def _positions(parts: list[Ints]) -> Ints:
    """Concatenate positions; a single array is not copied."""
    # On Linux the core's 64-bit integers are "long long" to NumPy, whose int64 is "long". Both are equal, but arrays of
    # the first print their type. The view has NumPy's own type.
    return (parts[0] if len(parts) == 1 else np.concatenate(parts)).view(np.int64)


def _distances(parts: list[Floats]) -> Floats:
    """Concatenate distances; a single array is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
