"""Estimators of the gradients of a regression function: the kernel differences of appendix A."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import DifferenceEstimator
from ellipack.errors import DomainError
from ellipack.parallel import for_row_slices, rows_per_call, thread_count
from ellipack.theory.schedules import bandwidth, mass_threshold, step
from ellipack.validation import Floats, check_in_range, check_labels, check_rows

KERNELS: Final = {
    "triangular": (1, 1),
    "epanechnikov": (2, 1),
    "biweight": (2, 2),
    "triweight": (2, 3),
    "tricube": (3, 3),
}
"""Exponents (a, b) of the kernels ``K(u) = (1 - u**a)**b``.

Each is nonincreasing, positive on [0, 1) and 0 at 1, as appendix A requires.
"""

_SAMPLED_ANCHORS, _INDEX_FRACTION = 16, 0.2
"""An index is built if sampled anchors have less than this fraction of the rows in reach."""

_DIFFERENCE_WORK = 8.0  # multiplications for each row and feature at an anchor

_SCALES: Final = (1e-100, 1e100)  # no square, quotient or sum of squares over- or underflows in this range


class GradientEstimator(Protocol):
    """Protocol of estimators of gradients."""

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Return the estimated gradient at each anchor, one per row; anchors default to the rows of `X`."""
        ...


@dataclass(frozen=True)
class KernelDifferences:
    """Central differences of a kernel regression (appendix A of the paper).

    With n rows of d features, the bandwidth is ``bandwidth_scale * n**(-1/(2(d+1)))`` and the step is ``step_scale *
    bandwidth**(1/4)``. The estimate is 0 unless both shifted balls of half a bandwidth have enough mass: at least
    ``mass_scale * 2 d ln(2n)`` rows. Scales of 1 follow the paper. From about d = 3 on, no ball has enough mass at any
    practical number of rows, and every gradient is 0.

    A ball without rows predicts the mean label (weights 1/n). So does a ball with rows only on its boundary, where the
    kernel is 0 and the paper's ratio would be 0/0.

    Parameters
    ----------
    kernel : {"triangular", "epanechnikov", "biweight", "triweight", "tricube"}, default "epanechnikov"
        Kernel of the regression.
    bandwidth_scale : float, default 1.0
        Factor of the bandwidth.
    step_scale : float, default 1.0
        Factor of the step.
    mass_scale : float, default 1.0
        Factor of the mass threshold; 0 turns the condition off.
    n_jobs : int, default 1
        Number of threads; -1 is one for each core.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       appendix A.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 200)[:, None]
    >>> KernelDifferences(step_scale=0.2).gradients(X, 3 * X[:, 0], anchors=[[0.0]]).round(1).tolist()
    [[3.0]]
    """

    kernel: str = "epanechnikov"
    bandwidth_scale: float = 1.0
    step_scale: float = 1.0
    mass_scale: float = 1.0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        # Checked here, so that a learner does not fail in the middle of a batch.
        if self.kernel not in KERNELS:
            raise DomainError(f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        for name in ("bandwidth_scale", "step_scale"):
            check_in_range(getattr(self, name), name, *_SCALES)
        check_in_range(self.mass_scale, "mass_scale", 0.0, _SCALES[1])
        thread_count(self.n_jobs)

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
        return self._estimate(table, check_labels(y, len(table)), anchors)[0]

    def enough_mass(self, X: ArrayLike, anchors: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return ``A_i(x)`` of appendix A: whether both shifted balls hold enough rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        anchors : array-like of shape (n_anchors, n_features), optional
            Points x. The default is the rows of `X`.

        Returns
        -------
        enough : array of bool, shape (n_anchors, n_features)
        """
        table = check_rows(X)
        return self._estimate(table, np.zeros(len(table)), anchors)[1]

    def _estimate(self, X: Floats, y: Floats, anchors: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
        n, d = X.shape
        at = X if anchors is None else check_rows(anchors, d, "anchors")
        reach = bandwidth(n, d, self.bandwidth_scale)
        shift = step(reach, self.step_scale)
        threshold = mass_threshold(n, d, self.mass_scale)
        estimator = DifferenceEstimator(X, y, (reach, shift), threshold, KERNELS[self.kernel])
        if _few_in_reach(at[:: -(-len(at) // _SAMPLED_ANCHORS)], X, reach + shift):
            estimator.build_index()
        out, enough = np.empty_like(at), np.empty(at.shape, dtype=np.bool_)

        def work(part: slice) -> None:
            out[part], enough[part] = estimator.gradients(at[part])

        for_row_slices(work, len(at), self.n_jobs, rows_per_call(_DIFFERENCE_WORK * n * d))
        return out, enough


def _few_in_reach(anchors: Floats, X: Floats, farthest: float) -> bool:
    """Return whether so few rows are in reach of anchors that an index is faster."""
    squared = ((anchors[:, None, :] - X[None]) ** 2).sum(axis=2)
    return bool(np.mean(squared <= farthest**2) < _INDEX_FRACTION)
