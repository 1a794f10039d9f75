"""Estimates of gradients from local linear fits, which need fewer rows than appendix A."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import KdTree, local_slopes
from ellipack.errors import InputError
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
        points, queries = metric.whiten(table), metric.whiten(at)
        tree, k, slopes = KdTree.build(points), min(neighbors, len(table)), np.empty_like(queries)

        def work(part: slice) -> None:
            slopes[part] = local_slopes(tree, targets, queries[part], k, self.ridge)

        d = table.shape[1]
        work_per_row = float(len(table) * d + k * d**2 + d**3)
        for_row_slices(work, len(queries), self.n_jobs, rows_per_call(work_per_row))
        return metric.pull_back(slopes)
