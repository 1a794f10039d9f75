"""Packing and covering numbers of finite sets (Definition 1), by exhaustive search.

Both problems are NP-hard. The searches prune well up to some 50 points.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, ShapeError
from ellipack.validation import Floats, Ints, as_floats, check_finite, check_positive, check_rows

# Sets of points are bits of an integer.


def pairwise_distances(points: ArrayLike, matrix: ArrayLike | None = None) -> Floats:
    """Return the distances ``|x - z|_M`` between all pairs of points.

    Parameters
    ----------
    points : array-like of shape (n, d)
        Points.
    matrix : array-like of shape (d, d), optional
        Positive definite matrix M. The default is the identity.

    Returns
    -------
    distances : array of shape (n, n)

    Examples
    --------
    >>> pairwise_distances([[0.0, 0.0], [3.0, 2.0]], [[1.0, 0.0], [0.0, 4.0]]).tolist()
    [[0.0, 5.0], [5.0, 0.0]]
    """
    rows = check_rows(points, name="points")
    form = np.eye(rows.shape[1]) if matrix is None else check_rows(matrix, rows.shape[1], "matrix")
    apart = rows[:, None] - rows[None]
    return np.asarray(np.sqrt(np.maximum(np.einsum("ijk,kl,ijl->ij", apart, form, apart), 0.0)))


def largest_packing(distances: ArrayLike, radius: float) -> Ints:
    """Return a largest packing of a finite set: points that are pairwise farther apart than `radius`.

    Parameters
    ----------
    distances : array-like of shape (n, n)
        Distances between all pairs of points.
    radius : float
        Radius eps of the packing.

    Returns
    -------
    packing : array of int
        Positions of the points, in ascending order.

    Examples
    --------
    >>> largest_packing(pairwise_distances([[0.0], [0.4], [0.8], [1.2]]), 0.5).tolist()
    [0, 2]
    """
    near = _near(distances, radius)
    return _positions(_search_packing(near, (1 << len(near)) - 1))


def smallest_cover(distances: ArrayLike, radius: float) -> Ints:
    """Return a smallest cover of a finite set: points of it such that every point is within `radius` of one.

    See `largest_packing` for the parameters.

    Examples
    --------
    >>> smallest_cover(pairwise_distances([[0.0], [0.4], [0.8]]), 0.5).tolist()
    [1]
    """
    near = _near(distances, radius)
    everything = (1 << len(near)) - 1
    return _positions(_search_cover(near, everything, 0, _greedy_cover(near, everything)))


def packing_number(distances: ArrayLike, radius: float) -> int:
    """Return the packing number ``M(S, eps)`` of a finite set (Definition 1): the size of a largest packing.

    Packing and covering numbers satisfy ``M(S, 2 eps) <= N(S, eps) <= M(S, eps)``.

    Examples
    --------
    >>> line = pairwise_distances([[0.0], [0.4], [0.8], [1.2]])
    >>> packing_number(line, 1.0), covering_number(line, 0.5), packing_number(line, 0.5)
    (2, 2, 2)
    """
    return len(largest_packing(distances, radius))


def covering_number(distances: ArrayLike, radius: float) -> int:
    """Return the covering number ``N(S, eps)`` of a finite set (Definition 1): the size of a smallest cover."""
    return len(smallest_cover(distances, radius))


def _near(distances: ArrayLike, radius: float) -> list[int]:
    """Return the set of points within the radius of each point."""
    table = check_finite(as_floats(distances, "distances"), "distances")
    if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) == 0:
        raise ShapeError(f"distances must be square and not empty, got shape {table.shape}")
    if np.any(table < 0) or np.any(np.diagonal(table) != 0) or np.any(table != table.T):
        raise DomainError("distances must be >= 0, symmetric, and 0 on the diagonal")
    close = table <= check_positive(radius, "radius")
    return [sum(1 << int(j) for j in np.flatnonzero(row)) for row in close]


def _search_packing(near: list[int], left: int) -> int:
    """Return a largest packing of the points `left`."""
    best = 0
    stack = [(0, left)]
    while stack:
        taken, free = stack.pop()
        if taken.bit_count() + _clique_cover(near, free) <= best.bit_count():
            continue
        if not free:
            best = taken
            continue
        # Some largest packing holds the point with the fewest neighbors, or one of these neighbors.
        pivot = min(_members(free), key=lambda i: (near[i] & free).bit_count())
        options = list(_members(near[pivot] & free))
        stack += [(taken | 1 << i, free & ~near[i]) for i in reversed(options)]
    return best


def _clique_cover(near: list[int], free: int) -> int:
    """Return a number of groups of pairwise near points that cover `free`: a packing has at most one of each."""
    groups = 0
    while free:
        first = (free & -free).bit_length() - 1
        group, candidates = 1 << first, near[first] & free
        for i in _members(candidates & ~group):
            if group & ~near[i] == 0:
                group |= 1 << i
        free &= ~group
        groups += 1
    return groups


def _greedy_cover(near: list[int], uncovered: int) -> int:
    """Return a cover found by taking the point that covers most, again and again."""
    cover = 0
    while uncovered:
        best = max(range(len(near)), key=lambda i: (near[i] & uncovered).bit_count())
        cover |= 1 << best
        uncovered &= ~near[best]
    return cover


def _search_cover(near: list[int], uncovered: int, taken: int, best: int) -> int:
    """Return a smallest cover that contains `taken`, or `best` if none is smaller."""
    if not uncovered:
        return taken
    if taken.bit_count() + _needed(near, uncovered) >= best.bit_count():
        return best
    # Some point must cover the one with the fewest neighbors.
    pivot = min(_members(uncovered), key=lambda i: near[i].bit_count())
    for i in sorted(_members(near[pivot]), key=lambda i: -(near[i] & uncovered).bit_count()):
        best = _search_cover(near, uncovered & ~near[i], taken | 1 << i, best)
    return best


def _needed(near: list[int], uncovered: int) -> int:
    """Return a lower bound on the points that cover `uncovered`: points no two of which one point covers."""
    count = 0
    while uncovered:
        first = (uncovered & -uncovered).bit_length() - 1
        for i in _members(near[first]):
            uncovered &= ~near[i]
        count += 1
    return count


def _members(points: int) -> Iterator[int]:
    """Iterate over the positions in a set."""
    while points:
        lowest = points & -points
        yield lowest.bit_length() - 1
        points ^= lowest


def _positions(points: int) -> Ints:
    """Return the positions in a set as an array."""
    return np.array(list(_members(points)), dtype=np.int64)
