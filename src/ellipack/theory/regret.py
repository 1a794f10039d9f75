"""Regret (eq. 1), its share in each ball of Algorithm 1, and the exponents of its growth."""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, ShapeError
from ellipack.validation import Floats, as_floats, check_finite, check_integer, check_labels


def regret(predictions: ArrayLike, competitor: ArrayLike, labels: ArrayLike) -> Floats:
    """Return the regret ``R_t(f)`` after each round t (eq. 1): the excess of the square loss over that of a function.

    Parameters
    ----------
    predictions : array-like of shape (T,)
        Predictions of the learner, each made before its label was seen.
    competitor : array-like of shape (T,)
        Values ``f(x_t)`` of the function.
    labels : array-like of shape (T,)
        Labels.

    Returns
    -------
    regret : array of shape (T,)
        The last entry is ``R_T(f)``. An entry is negative if the learner was better.

    Examples
    --------
    >>> regret([0.5, 0.0, 1.0], competitor=[0.5, 0.5, 0.5], labels=[1.0, 1.0, 1.0]).tolist()
    [0.0, 0.75, 0.5]
    """
    y = _check_vector(labels, "labels")
    made, best = check_labels(predictions, len(y), "predictions"), check_labels(competitor, len(y), "competitor")
    return np.cumsum((made - y) ** 2 - (best - y) ** 2)


def ball_excess(predictions: ArrayLike, labels: ArrayLike) -> float:
    """Return the loss in a ball less that of the best constant, by the identity ``sum_k (y_k - yhat_k)**2 / k``.

    From the second label on, a ball predicts the mean of its labels so far. The sum of squared deviations from the mean
    grows by ``(1 - 1/k) (y_k - yhat_k)**2`` with the k-th label, the loss by ``(y_k - yhat_k)**2``. So the excess is
    the sum of the differences. It is at most ``1 + 1/2 + ... + 1/n <= ln(e n)`` if labels and predictions are in
    [0, 1]. The paper has ``8 ln(e n)``.

    Parameters
    ----------
    predictions : array-like of shape (n,)
        Predictions in the rounds whose labels the ball has, in order. The first is arbitrary.
    labels : array-like of shape (n,)
        Labels of the ball, in order.

    Returns
    -------
    excess : float

    Examples
    --------
    >>> ball_excess([0.5, 1.0, 0.5], labels=[1.0, 0.0, 0.5])
    0.75
    """
    y = _check_vector(labels, "labels")
    made = check_labels(predictions, len(y), "predictions")
    return float(np.sum((y - made) ** 2 / np.arange(1, len(y) + 1)))


def estimation_bound(label_counts: ArrayLike) -> float:
    """Return ``sum_s ln(e n_s)``, a bound on the excess of all balls, from their numbers of labels ``n_s``.

    Balls without labels do not count. With N balls and T labels, it is at most ``N ln(e T / N)``, since the logarithm
    is concave.

    Examples
    --------
    >>> round(estimation_bound([1, 1, 2]), 3)
    3.693
    """
    counts = _check_vector(label_counts, "label_counts")
    if np.any(counts < 0):
        raise DomainError(f"label_counts must be >= 0, got {counts.min():.6g}")
    return float(np.sum(np.log(np.e * counts[counts > 0])))


def regret_exponent(rank: int) -> float:
    """Return ``rho / (1 + rho)``, the exponent of T in Theorems 1 and 2.

    Examples
    --------
    >>> regret_exponent(3)
    0.75
    """
    return check_integer(rank, "rank", 1) / (1 + rank)


def minimax_exponent(rank: int) -> float:
    """Return the exponent of T in the minimax regret against Lipschitz functions of `rank` variables.

    It is ``rho / (2 + rho)`` for ``rho <= 2`` and ``1 - 1/rho`` beyond, up to logarithms [1]_. No algorithm does better
    on all sequences. An explicit algorithm attains these rates [2]_. On rows drawn independently from a distribution,
    with noise of mean 0, ``rho / (2 + rho)`` can be attained for every rank.

    References
    ----------
    .. [1] A. Rakhlin and K. Sridharan. Online Nonparametric Regression. COLT 2014.
    .. [2] P. Gaillard and S. Gerchinovitz. A Chaining Algorithm for Online Nonparametric Regression. COLT 2015.

    Examples
    --------
    >>> [round(minimax_exponent(rank), 3) for rank in (1, 2, 3, 5)]
    [0.333, 0.5, 0.667, 0.8]
    """
    return rank / (2 + check_integer(rank, "rank", 1)) if rank <= 2 else 1 - 1 / rank


def _check_vector(values: ArrayLike, name: str) -> Floats:
    """Return a one-dimensional array of finite numbers that is not empty."""
    array = as_floats(values, name)
    if array.ndim != 1 or len(array) == 0:
        raise ShapeError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    return check_finite(array, name)
