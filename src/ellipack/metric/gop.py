"""Estimates of the expected gradient outer product."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, InputError
from ellipack.metric.gradients import GradientEstimator, KernelDifferences
from ellipack.validation import Floats, check_feature_count, check_integer, check_rows

_LARGEST_GRADIENT = 1e150  # the sum of 10**8 squares of such numbers is finite


@dataclass(frozen=True)
class GopEstimator:
    """Estimator of the gradient outer product: the average over gradients at anchors.

    Parameters
    ----------
    gradients : GradientEstimator, default KernelDifferences()
        Estimator of gradients. The default is appendix A of the paper.
    diagonal : bool, default False
        Return `gradient_weights` instead of the full matrix.
    anchors : int, optional
        Number of rows, drawn at random, at which gradients are estimated. The default is all rows.
    random_state : int, default 0
        Random seed of the draw of anchors.

    References
    ----------
    .. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
       section 4 and appendix A.

    Examples
    --------
    >>> from ellipack.metric import LocalSlopes
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> GopEstimator(LocalSlopes()).estimate(X, 2 * X[:, 0]).round().tolist()
    [[4.0, 0.0], [0.0, 0.0]]
    """

    gradients: GradientEstimator = field(default_factory=KernelDifferences)
    diagonal: bool = False
    anchors: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        # Checked here, so that a learner does not fail in the middle of a batch.
        if not callable(getattr(self.gradients, "gradients", None)):
            raise InputError(f"gradients must be an estimator such as LocalSlopes(), got {self.gradients!r}")
        if self.anchors is not None:
            check_integer(self.anchors, "anchors", 1)
        check_integer(self.random_state, "random_state", 0)

    def estimate(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the estimate ``G-hat_n`` of the paper.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        gop : array of shape (n_features, n_features)
        """
        table = check_rows(X)
        check_feature_count(table.shape[1], "GradientOuterProduct")
        at = table
        if self.anchors is not None and self.anchors < len(table):
            draw = np.random.default_rng(self.random_state).choice(len(table), self.anchors, replace=False)
            at = table[np.sort(draw)]
        slopes = self.gradients.gradients(table, y, at)
        return gradient_weights(slopes) if self.diagonal else mean_outer_product(slopes)


def mean_outer_product(gradients: ArrayLike) -> Floats:
    """Return ``G-hat``, the mean of the outer products of gradients with themselves (section 4 of the paper).

    The result does not depend on the order of the gradients.

    Parameters
    ----------
    gradients : array-like of shape (n_gradients, n_features)
        One gradient per row.

    Returns
    -------
    gop : array of shape (n_features, n_features)

    Examples
    --------
    >>> mean_outer_product([[1.0, 2.0], [3.0, 0.0]]).tolist()
    [[5.0, 1.0], [1.0, 2.0]]
    """
    table = check_rows(gradients, name="gradients")
    if np.abs(table).max() > _LARGEST_GRADIENT:
        raise DomainError(f"gradients must be at most {_LARGEST_GRADIENT:g} in size, got {np.abs(table).max():.6g}")
    # Directions of eigenvalue 0 depend on the last bits. Sorting makes the sum independent of the order of the rows;
    # einsum without optimization avoids BLAS, whose last bits depend on its number of threads.
    entries = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))
    ordered = table[np.argsort(entries.ravel(), kind="stable")]
    sums: Floats = np.einsum("ti,tj->ij", ordered, ordered, optimize=False)
    return sums / len(table)


def gradient_weights(gradients: ArrayLike) -> Floats:
    """Return a diagonal estimate of the gradient outer product from gradient weights.

    The weight of a feature is the mean absolute derivative along it [1]_. This L1 norm varies less than the L2 norm on
    the diagonal of the gradient outer product. Here the weights are squared, to have the units of the gradient outer
    product.

    Parameters
    ----------
    gradients : array-like of shape (n_gradients, n_features)
        One gradient per row.

    Returns
    -------
    gop : array of shape (n_features, n_features)
        Diagonal matrix.

    References
    ----------
    .. [1] S. Kpotufe, A. Boularias, T. Schultz and K. Kim. Gradients Weights Improve Regression and Classification.
       JMLR 17, 2016.

    Examples
    --------
    >>> gradient_weights([[1.0, 2.0], [3.0, -2.0]]).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    return np.diag(np.abs(check_rows(gradients, name="gradients")).mean(axis=0) ** 2)
