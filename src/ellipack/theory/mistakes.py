"""Bounds on the mistakes of `PackingClassifier`, the variant of Algorithm 1 that the paper's conclusions ask for.

The classifier learns only from rounds with mistakes, in which its prediction is at least 1/2 away from the label 0 or
1. Its loss is at least 1/4 in each of them. The proof of Theorem 1 holds on these rounds alone, because the others
leave no trace. It needs three facts about a ball s with n_s labels:

- Its loss exceeds that of the best constant by ``sum_k (y_k - yhat_k)^2 / k <= ln(e n_s)``.
- The best constant is at least as good as the value of a function f at the center.
- This value costs at most ``2 L_s eps`` more than f itself in a round in which the radius was eps, if f varies on the
  ball at most with the Lipschitz constant L_s.

Radii enter only through the last fact. The sum, `mistake_certificate`, therefore holds for any rule of radii.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.theory.packing_bounds import ellipsoid_packing_bound, volumetric_packing_bound
from ellipack.theory.schedules import smallest_radius
from ellipack.theory.spectrum import check_normalized_spectrum, effective_rank
from ellipack.validation import as_floats, check_finite, check_nonnegative

_MOST_MISTAKES = 2**52


def mistake_certificate(label_counts: ArrayLike, comparator_loss: float, variation: float) -> float:
    """Return a bound on the mistakes of one packing, from what happened in the run.

    It is ``4 (sum (f - y)^2 + sum_s ln(e n_s) + 2 sum_t L_s eps_(s,t))``, where t runs over the mistakes and s is the
    ball that got the label. It holds for any rule of radii and for any function f with values in [0, 1].

    Parameters
    ----------
    label_counts : array-like of int, shape (n_centers,)
        Number of labels ``n_s`` of each center.
    comparator_loss : float
        Loss ``sum (f - y)^2`` of the function on the mistakes.
    variation : float
        Sum of ``L_s eps_(s,t)`` over the mistakes: the radius of the ball times the Lipschitz constant of f on it.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(mistake_certificate([1, 3], comparator_loss=0.5, variation=2.0), 3)
    30.394
    """
    counts = check_finite(as_floats(label_counts, "label_counts"), "label_counts")
    if counts.size and counts.min() < 1:
        raise DomainError(f"label_counts must be >= 1, got {counts.min():g}")
    loss, varied = check_nonnegative(comparator_loss, "comparator_loss"), check_nonnegative(variation, "variation")
    return float(4 * (loss + np.log(np.e * counts).sum() + 2 * varied))


def mistake_bound(eigenvalues: ArrayLike, lipschitz: float, comparator_loss: float = 0.0) -> float:
    """Return a bound on the mistakes of one packing on any stream, however long.

    After M mistakes, ``M/4 <= loss + N ln(e M / N) + 4 L M**(rho_M/(1+rho_M))``. The smallest of M and of the bounds of
    Lemmas 1 and 2 bounds the number N of centers. The right side grows more slowly than the left one. A run passes
    through every number of mistakes, so that a number that violates the inequality is never reached.

    If ``y = f(x)`` for some f, as for classes at a distance of at least ``1 / L`` from each other, the loss is 0.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    lipschitz : float
        Lipschitz constant L of the function in the metric.
    comparator_loss : float, default 0.0
        Loss of the function on the mistakes.

    Returns
    -------
    bound : float
        Number of mistakes; infinite if it exceeds ``2**52``.

    Examples
    --------
    >>> mistake_bound([1.0], lipschitz=2.0)
    4688.0
    """
    descending = check_normalized_spectrum(eigenvalues)
    constant, loss = check_nonnegative(lipschitz, "lipschitz"), check_nonnegative(comparator_loss, "comparator_loss")

    def is_possible(mistakes: int) -> bool:
        radius, rank = smallest_radius(descending, mistakes), int(effective_rank(descending, mistakes))
        packed = min(volumetric_packing_bound(descending, radius), ellipsoid_packing_bound(descending, radius))
        centers = min(packed, mistakes)
        estimation = centers * np.log(np.e * mistakes / centers)
        return bool(mistakes / 4 <= loss + estimation + 4 * constant * mistakes ** (rank / (1 + rank)))

    beyond = 1
    while is_possible(beyond):
        beyond *= 2
        if beyond > _MOST_MISTAKES:
            return np.inf
    possible = beyond // 2
    while beyond - possible > 1:
        middle = (possible + beyond) // 2
        possible, beyond = (middle, beyond) if is_possible(middle) else (possible, middle)
    return float(possible)
