"""Quantities of a spectrum in the paper: kappa, the effective rank, truncated determinants and eigenvalue gaps."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, MetricError, ShapeError
from ellipack.validation import (
    Floats,
    Ints,
    as_floats,
    check_finite,
    check_integer,
    check_nonnegative,
    check_positive,
    check_rows,
)

NEVER: Final = np.iinfo(np.int64).max
"""Round of an event that does not occur in the first 2**53 rounds."""

_LARGEST_ROUND: Final = 2.0**53
_ASYMMETRY: Final = 1e-8  # relative to the largest entry
_UNIT_TOLERANCE: Final = 1e-12  # for the rounding error of the largest eigenvalue, 1


def check_spectrum(eigenvalues: ArrayLike, name: str = "eigenvalues") -> Floats:
    """Return the eigenvalues of a metric: at least one, finite, above 0 and in descending order."""
    array = _check_one_dimensional(eigenvalues, name)
    if array[-1] <= 0 or np.any(np.diff(array) > 0):
        raise MetricError(f"{name} must be > 0 and in descending order, got {array}")
    return array


def check_semidefinite_spectrum(eigenvalues: ArrayLike, name: str = "eigenvalues") -> Floats:
    """Return the eigenvalues of a gradient outer product: in descending order, the first above 0, the others >= 0.

    Examples
    --------
    >>> check_semidefinite_spectrum([0.5, 0.0])
    array([0.5, 0. ])
    """
    array = _check_one_dimensional(eigenvalues, name)
    if array[0] <= 0 or array[-1] < 0 or np.any(np.diff(array) > 0):
        raise MetricError(f"{name} must be >= 0, the first > 0, and in descending order, got {array}")
    return array


def _check_one_dimensional(eigenvalues: ArrayLike, name: str) -> Floats:
    """Return a one-dimensional, finite array that is not empty."""
    array = as_floats(eigenvalues, name)
    if array.ndim != 1 or array.shape[0] == 0:
        raise ShapeError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    return check_finite(array, name)


def check_symmetric(matrix: ArrayLike, name: str) -> Floats:
    """Return a symmetric matrix; rounding errors are averaged out.

    Examples
    --------
    >>> check_symmetric([[1.0, 0.5], [0.5, 2.0]], "matrix").tolist()
    [[1.0, 0.5], [0.5, 2.0]]
    """
    array = check_rows(matrix, name=name)
    if array.shape[0] != array.shape[1]:
        raise ShapeError(f"{name} must be square, got shape {array.shape}")
    if np.abs(array - array.T).max() > _ASYMMETRY * np.abs(array).max():
        raise MetricError(f"{name} must be symmetric, got {array.tolist()}")
    return np.asarray((array + array.T) / 2)


def check_normalized_spectrum(eigenvalues: ArrayLike) -> Floats:
    """Return the eigenvalues of a metric whose largest eigenvalue is 1, as in the paper's analysis.

    The paper assumes it. If the largest eigenvalue were below 1, the set whose maximum defines `kappa` could be empty.
    """
    array = check_spectrum(eigenvalues)
    if abs(array[0] - 1) > _UNIT_TOLERANCE:
        raise MetricError(f"eigenvalues must be normalized (largest 1), got {array[0]:.6g}")
    return array


def check_rounds(t: ArrayLike) -> Floats:
    """Return round numbers, at least 1, as floats."""
    array = check_finite(as_floats(t, "t"), "t")
    if np.any(array < 1):
        raise DomainError(f"t must be >= 1, got {array.min():.6g}")
    return array


def kappa(eigenvalues: ArrayLike, r: int, t: ArrayLike) -> Ints:
    """Return ``kappa(r, t)``, the largest m with ``lambda_m >= t**(-2/(1+r))``; 0 if there is none.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order.
    r : int
        Rank, at least 1.
    t : array-like of int
        Rounds, at least 1.

    Returns
    -------
    kappa : array of int, of the shape of `t`

    Examples
    --------
    >>> int(kappa([1.0, 0.25, 0.02], r=1, t=4))
    2
    """
    descending = check_spectrum(eigenvalues)
    threshold = check_rounds(t) ** (-2 / (1 + check_integer(r, "r", 1)))
    # The eigenvalues descend, so that m is the number of those above the threshold.
    return np.asarray(np.searchsorted(-descending, -threshold, side="right"), dtype=np.int64)


def rank_starts(eigenvalues: ArrayLike) -> Ints:
    """Return the first round at which the effective rank is above r, for r = 1 to d - 1.

    The effective rank is a step function with at most d - 1 steps, which these rounds determine: ``rho_t > r`` exactly
    when ``lambda_(j+1) >= t**(-2/(1+j))`` for every j up to r.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.

    Returns
    -------
    starts : array of int, shape (d - 1,)
        Rounds in ascending order; `NEVER` for ranks that are not reached.

    Examples
    --------
    >>> rank_starts([1.0, 0.25, 0.02]).tolist()
    [4, 354]
    """
    descending = check_normalized_spectrum(eigenvalues)
    firsts = [_first_round(float(value), j) for j, value in enumerate(descending[1:], start=1)]
    return np.maximum.accumulate(np.array(firsts, dtype=np.int64))


def _first_round(eigenvalue: float, j: int) -> int:
    """Return the first t with ``eigenvalue >= t**(-2/(1+j))`` in floating-point arithmetic."""
    logarithm = -(1 + j) / 2 * math.log(eigenvalue)
    if logarithm >= math.log(_LARGEST_ROUND):
        return NEVER
    exponent = -2 / (1 + j)
    first = max(1, math.ceil(math.exp(logarithm)))
    while first > 1 and eigenvalue >= float(first - 1) ** exponent:
        first -= 1
    while eigenvalue < float(first) ** exponent:
        first += 1
    return first


def effective_rank(eigenvalues: ArrayLike, t: ArrayLike) -> Ints:
    """Return the effective rank ``rho_t``, the smallest r with ``kappa(r, t) <= r`` (eq. effRank).

    It does not decrease as t grows. For the identity it is d at every round.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    t : array-like of int
        Rounds, at least 1.

    Returns
    -------
    rank : array of int, of the shape of `t`

    Examples
    --------
    >>> effective_rank([1.0, 0.25, 0.02], [1, 3, 4, 353, 354]).tolist()
    [1, 1, 2, 2, 3]
    """
    return np.asarray(1 + np.searchsorted(rank_starts(eigenvalues), check_rounds(t), side="right"), dtype=np.int64)


def perturbed_kappa(eigenvalues: ArrayLike, r: int, t: int, regularization: float) -> int:
    """Return kappa-tilde of section 4: the largest m with ``mu_m + 2 gamma_t >= mu_1 t**(-2/(1+r))``.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues ``mu`` of the gradient outer product in descending order.
    r : int
        Rank, at least 1.
    t : int
        Round, at least 1.
    regularization : float
        The regularization ``gamma_t``.

    Returns
    -------
    kappa : int

    Examples
    --------
    >>> perturbed_kappa([1.0, 0.25, 0.02], r=1, t=4, regularization=0.0)
    2
    """
    gamma = check_nonnegative(regularization, "regularization")
    return _perturbed_kappa(
        check_semidefinite_spectrum(eigenvalues),
        check_integer(r, "r", 1),
        check_rounds(check_integer(t, "t", 1)),
        gamma,
    )


def _perturbed_kappa(mu: Floats, r: int, t: Floats, gamma: float) -> int:
    """Return kappa-tilde of checked arguments."""
    return int(np.sum(mu + 2 * gamma >= mu[0] * t ** (-2 / (1 + r))))


def perturbed_effective_rank(eigenvalues: ArrayLike, t: int, regularization: float) -> int:
    """Return rho-tilde of section 4, the effective rank for eigenvalues with an error of at most gamma.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues ``mu`` of the gradient outer product in descending order.
    t : int
        Round, at least 1.
    regularization : float
        The regularization ``gamma_t``.

    Returns
    -------
    rank : int

    Examples
    --------
    >>> perturbed_effective_rank([1.0, 0.25, 0.02], t=100, regularization=0.0)
    2
    >>> perturbed_effective_rank([1.0, 0.25, 0.02], t=100, regularization=0.1)
    3
    """
    mu, time = check_semidefinite_spectrum(eigenvalues), check_rounds(check_integer(t, "t", 1))
    gamma = check_nonnegative(regularization, "regularization")
    return next(r for r in range(1, len(mu) + 1) if _perturbed_kappa(mu, r, time, gamma) <= r)


def truncated_determinant(eigenvalues: ArrayLike, k: int) -> float:
    """Return ``det_k(M)``, the product of the k largest eigenvalues; 1 for k = 0.

    Examples
    --------
    >>> truncated_determinant([1.0, 0.25, 0.02], 2)
    0.25
    """
    descending = check_spectrum(eigenvalues)
    if check_integer(k, "k", 0) > len(descending):
        raise DomainError(f"k must be at most the number of eigenvalues, {len(descending)}, got {k}")
    return float(np.prod(descending[:k]))


def eigenvalue_gaps(eigenvalues: ArrayLike) -> Floats:
    """Return ``Delta_j``, the distance from each eigenvalue to the nearest other one; infinite if there is only one.

    Examples
    --------
    >>> eigenvalue_gaps([1.0, 0.25, 0.125]).tolist()
    [0.75, 0.125, 0.125]
    """
    gaps = np.abs(np.diff(check_semidefinite_spectrum(eigenvalues)))
    edge = np.array([np.inf])
    return np.asarray(np.minimum(np.concatenate([edge, gaps]), np.concatenate([gaps, edge])))


def separated(eigenvalues: ArrayLike, delta: float) -> NDArray[np.bool_]:
    """Return which eigenvectors are in ``V_Delta``: those whose eigenvalue gap is at least `delta`.

    Examples
    --------
    >>> separated([1.0, 0.25, 0.125], delta=0.5).tolist()
    [True, False, False]
    """
    return eigenvalue_gaps(eigenvalues) >= check_positive(delta, "delta")
