"""Gradients from local linear fits: where appendix A's estimator has too few rows in its balls, these have enough."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import KdTree, local_slopes
from ellipack.errors import InputError
from ellipack.metric.mahalanobis import Metric
from ellipack.parallel import for_row_slices, thread_count
from ellipack.validation import Floats, check_in_range, check_integer, check_labels, check_rows

_SMALLEST_RIDGE = 1e-8  # below, a factorization of many features could lose it to rounding


@dataclass(frozen=True)
class LocalSlopes:
    """Slopes of ridge regressions on nearest neighbors, weights falling to 0 at the last of them.

    Attributes
    ----------
    neighbors : how many; ``3 d + 20`` if not given, and never more than there are rows.
    ridge : relative to the neighbors' mean variance along a coordinate.
    metric : in which neighbors are near, Euclidean if not given. Slopes are pulled back to features.
    """

    neighbors: int | None = None
    ridge: float = 0.01
    metric: Metric | None = None
    n_jobs: int = 1

    def __post_init__(self) -> None:
        # Here and not on use: a learner must not find out in the middle of a batch.
        if self.neighbors is not None:
            check_integer(self.neighbors, "neighbors", 2)
        check_in_range(self.ridge, "ridge", _SMALLEST_RIDGE, math.inf)
        thread_count(self.n_jobs)
        if self.metric is not None and not isinstance(self.metric, Metric):
            raise InputError(f"metric must be a Metric, got {self.metric!r}")

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Return the estimated gradient at each anchor, a row each; `anchors` are the rows themselves if not given."""
        table = check_rows(X)
        targets = check_labels(y, len(table))
        at = table if anchors is None else check_rows(anchors, table.shape[1], "anchors")
        wanted = 3 * table.shape[1] + 20 if self.neighbors is None else self.neighbors
        metric = Metric.identity(table.shape[1]) if self.metric is None else self.metric
        known, queries = metric.whiten(table), metric.whiten(at)
        tree, k, slopes = KdTree.build(known), min(wanted, len(table)), np.empty_like(queries)

        def work(part: slice) -> None:
            slopes[part] = local_slopes(tree, targets, queries[part], k, self.ridge)

        for_row_slices(work, len(queries), self.n_jobs)
        return metric.pull_back(slopes)
