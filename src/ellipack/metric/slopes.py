"""Estimates of gradients from local linear fits, which need fewer rows than appendix A."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import KdTree, local_slopes, project
from ellipack.errors import InputError
from ellipack.linear_algebra import single_threaded_blas
from ellipack.metric.mahalanobis import Metric
from ellipack.parallel import for_row_slices, rows_per_call, thread_count
from ellipack.validation import Floats, check_in_range, check_integer, check_labels, check_rows

_SMALLEST_RIDGE = 1e-8  # a smaller one could be lost to rounding in the factorization


@dataclass(frozen=True)
class LocalSlopes:
    """Slopes of local ridge regressions on the nearest neighbors.

    The weights of the neighbors decrease to 0 at the farthest one.

    Parameters
    ----------
    neighbors : int, optional
        Number of neighbors, at most the number of rows. The default is ``3 * n_features + 20``.
    ridge : float, default 0.01
        Ridge, relative to the mean variance of the neighbors along a coordinate.
    metric : Metric, optional
        Metric of the search. The default is Euclidean. Slopes are with respect to the features in any case.
    n_jobs : int, default 1
        Number of threads; -1 is one for each core.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> LocalSlopes().gradients(X, 2 * X[:, 0] - X[:, 1], anchors=[[0.0, 0.0]]).round(1).tolist()
    [[2.0, -1.0]]
    """

    neighbors: int | None = None
    ridge: float = 0.01
    metric: Metric | None = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        # Checked here, so that a learner does not fail in the middle of a batch.
        if self.neighbors is not None:
            check_integer(self.neighbors, "neighbors", 2)
        check_in_range(self.ridge, "ridge", _SMALLEST_RIDGE, math.inf)
        thread_count(self.n_jobs)
        if self.metric is not None and not isinstance(self.metric, Metric):
            raise InputError(f"metric must be a Metric, got {self.metric!r}")

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Estimate the gradient at each anchor.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        anchors : array-like of shape (n_anchors, n_features), optional
            Points at which to estimate. The default is the rows of `X`.

        Returns
        -------
        gradients : array of shape (n_anchors, n_features)
        """
        table = check_rows(X)
        targets = check_labels(y, len(table))
        at = table if anchors is None else check_rows(anchors, table.shape[1], "anchors")
        neighbors = 3 * table.shape[1] + 20 if self.neighbors is None else self.neighbors
        metric = Metric.identity(table.shape[1]) if self.metric is None else self.metric
        points, queries, k = metric.whiten(table), metric.whiten(at), min(neighbors, len(table))
        if len(points) >= metric.rank:
            return metric.pull_back(self._slopes(points, targets, queries, k, self.ridge))
        origin, basis = _row_space(points)
        inside = _coordinates(points, origin, basis), _coordinates(queries, origin, basis)
        # The ridge is relative to the variance along a coordinate, of which there are fewer now.
        slopes = self._slopes(inside[0], targets, inside[1], k, self.ridge * inside[0].shape[1] / metric.rank)
        return metric.pull_back(project(slopes[:, :-1].copy(), basis.T.copy()))

    def _slopes(self, points: Floats, targets: Floats, queries: Floats, neighbors: int, ridge: float) -> Floats:
        """Return the slope at each query. The work for one is cubic in the number of coordinates."""
        tree, slopes, (n, d) = KdTree.build(points), np.empty_like(queries), points.shape

        def work(part: slice) -> None:
            slopes[part] = local_slopes(tree, targets, queries[part], neighbors, ridge)

        for_row_slices(work, len(queries), self.n_jobs, rows_per_call(float(n * d + neighbors * d**2 + d**3)))
        return slopes


def _row_space(points: Floats) -> tuple[Floats, Floats]:
    """Return one of a few points, and an orthonormal basis in columns that spans the differences; slopes lie in it.

    Both do not depend on the order of the points, to the last bit.
    """
    distinct = np.unique(points, axis=0)
    with single_threaded_blas():
        return distinct[0], np.ascontiguousarray(np.linalg.qr((distinct - distinct[0]).T)[0])


def _coordinates(rows: Floats, origin: Floats, basis: Floats) -> Floats:
    """Return the coordinates of rows in a basis, and as the last one their distance from its span.

    The last one is the same in all differences to a query, so that it is part of the distances, but not of the slope.
    """
    offsets = rows - origin
    inside = project(offsets, basis)
    outside = offsets - project(inside, basis.T.copy())
    return np.column_stack([inside, np.sqrt((outside**2).sum(axis=1))])
