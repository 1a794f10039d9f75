"""The gradient outer product: gradients in, the matrix whose metric the paper learns out."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, InputError
from ellipack.metric.gradients import GradientEstimator, KernelDifferences
from ellipack.validation import Floats, check_integer, check_rows

_LARGEST = 1e150  # the sum of 10**8 squares of these is finite


@dataclass(frozen=True)
class GopEstimator:
    """How a gradient outer product is estimated from rows: gradients at anchors, and then their average.

    Attributes
    ----------
    gradients : what estimates a gradient; the letter of appendix A if not given.
    diagonal : average to `gradient_weights`, not to the whole matrix.
    anchors : estimate gradients at so many of the rows, drawn at random; at all of them if not given.
    random_state : of that draw.
    """

    gradients: GradientEstimator = field(default_factory=KernelDifferences)
    diagonal: bool = False
    anchors: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        # Here and not on use: a learner must not find out in the middle of a batch.
        if not callable(getattr(self.gradients, "gradients", None)):
            raise InputError(f"gradients must be an estimator such as LocalSlopes(), got {self.gradients!r}")
        if self.anchors is not None:
            check_integer(self.anchors, "anchors", 1)
        check_integer(self.random_state, "random_state", 0)

    def estimate(self, X: ArrayLike, y: ArrayLike) -> Floats:
        """Return the estimate ``G-hat_n`` from n rows and their labels."""
        table = check_rows(X)
        at = table
        if self.anchors is not None and self.anchors < len(table):
            draw = np.random.default_rng(self.random_state).choice(len(table), self.anchors, replace=False)
            at = table[np.sort(draw)]
        slopes = self.gradients.gradients(table, y, at)
        return gradient_weights(slopes) if self.diagonal else mean_outer_product(slopes)


def mean_outer_product(gradients: ArrayLike) -> Floats:
    """Return ``G-hat``, the mean outer product of gradients with themselves, a gradient a row (eq. gradEst).

    >>> mean_outer_product([[1.0, 2.0], [3.0, 0.0]]).tolist()
    [[5.0, 1.0], [1.0, 2.0]]
    """
    table = check_rows(gradients, name="gradients")
    if np.abs(table).max() > _LARGEST:
        raise DomainError(f"gradients must be at most {_LARGEST:g} in size, got {np.abs(table).max():.6g}")
    # In one order, whatever the order of the rows, and not by `table.T @ table`, whose last bits may depend on the
    # number of BLAS threads: directions of eigenvalue 0 go by the last bits.
    entries = np.ascontiguousarray(table).view(np.dtype((np.void, table.itemsize * table.shape[1])))
    ordered = table[np.argsort(entries.ravel(), kind="stable")]
    sums: Floats = np.einsum("ti,tj->ij", ordered, ordered, optimize=False)
    return sums / len(table)


def gradient_weights(gradients: ArrayLike) -> Floats:
    """Return a diagonal stand-in for the gradient outer product, after Kpotufe et al.'s gradient weights.

    A feature counts in proportion to the mean size of the derivative along it: an L1 norm, steadier than the L2
    norm on the diagonal of the gradient outer product. Unlike theirs, the weights are squared, which puts them in
    the units of the gradient outer product, whose place they take.

    >>> gradient_weights([[1.0, 2.0], [3.0, -2.0]]).tolist()
    [[4.0, 0.0], [0.0, 4.0]]
    """
    return np.diag(np.abs(check_rows(gradients, name="gradients")).mean(axis=0) ** 2)
