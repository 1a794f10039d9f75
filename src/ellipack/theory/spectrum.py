"""What the paper reads off the spectrum of a metric: kappa, the effective rank, truncated determinants, gaps."""

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, MetricError, ShapeError
from ellipack.validation import Floats, Ints, as_floats, check_finite, check_integer, check_nonnegative, check_positive

NEVER: Final = np.iinfo(np.int64).max
"""The round at which something happens that does not happen in any number of rounds a float can count."""

_COUNTABLE: Final = 2.0**53
_UNIT: Final = 1e-12  # how far lambda_1 may be from 1 by the rounding of a division


def check_spectrum(eigenvalues: ArrayLike, name: str = "eigenvalues") -> Floats:
    """Return `eigenvalues` if they can be a metric's: at least one, finite, above 0, in falling order."""
    array = _line(eigenvalues, name)
    if array[-1] <= 0 or np.any(np.diff(array) > 0):
        raise MetricError(f"{name} must be > 0 and in falling order, got {array}")
    return array


def check_semidefinite_spectrum(eigenvalues: ArrayLike, name: str = "eigenvalues") -> Floats:
    """Return `eigenvalues` if they can be a gradient outer product's: a `spectrum`, but all save the first may be 0.

    >>> check_semidefinite_spectrum([0.5, 0.0])
    array([0.5, 0. ])
    """
    array = _line(eigenvalues, name)
    if array[0] <= 0 or array[-1] < 0 or np.any(np.diff(array) > 0):
        raise MetricError(f"{name} must be >= 0, the first > 0, and in falling order, got {array}")
    return array


def _line(eigenvalues: ArrayLike, name: str) -> Floats:
    array = as_floats(eigenvalues, name)
    if array.ndim != 1 or array.shape[0] == 0:
        raise ShapeError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    return check_finite(array, name)


def check_normalized_spectrum(eigenvalues: ArrayLike) -> Floats:
    """Return `eigenvalues` if they are a spectrum whose largest is 1, as the paper's analysis takes it.

    Erratum 4: with a smaller largest eigenvalue the set whose maximum is `kappa` can be empty, which the paper
    does not define. Such a spectrum is refused wherever an effective rank is asked for.
    """
    array = check_spectrum(eigenvalues)
    if abs(array[0] - 1) > _UNIT:
        raise MetricError(f"eigenvalues must be normalized (largest 1), got {array[0]:.6g}")
    return array


def check_rounds(t: ArrayLike) -> Floats:
    """Return round numbers, each 1 or more, as floats."""
    array = check_finite(as_floats(t, "t"), "t")
    if np.any(array < 1):
        raise DomainError(f"t must be >= 1, got {array.min():.6g}")
    return array


def kappa(eigenvalues: ArrayLike, r: int, t: ArrayLike) -> Ints:
    """Return the largest m with ``lambda_m >= t**(-2/(1+r))``, 0 if there is none, for each `t`.

    >>> int(kappa([1.0, 0.25, 0.02], r=1, t=4))
    2
    """
    falling = check_spectrum(eigenvalues)
    threshold = check_rounds(t) ** (-2 / (1 + check_integer(r, "r", 1)))
    # Counting is enough because the eigenvalues fall.
    return np.asarray(np.searchsorted(-falling, -threshold, side="right"), dtype=np.int64)


def rank_starts(eigenvalues: ArrayLike) -> Ints:
    """Return, for r = 1 to d - 1, the first round at which the effective rank is above r.

    The effective rank is a staircase with at most d - 1 steps, so this says all there is to know of it:
    ``rho_t > r`` exactly when ``lambda_(j+1) >= t**(-2/(1+j))`` for every j up to r.

    >>> rank_starts([1.0, 0.25, 0.02]).tolist()
    [4, 354]
    """
    falling = check_normalized_spectrum(eigenvalues)
    firsts = [_first_round(float(value), j) for j, value in enumerate(falling[1:], start=1)]
    return np.maximum.accumulate(np.array(firsts, dtype=np.int64))


def _first_round(eigenvalue: float, j: int) -> int:
    """Return the first t with ``eigenvalue >= t**(-2/(1+j))``, that very comparison deciding at the edge."""
    logarithm = -(1 + j) / 2 * math.log(eigenvalue)
    if logarithm >= math.log(_COUNTABLE):
        return NEVER
    exponent = -2 / (1 + j)
    first = max(1, math.ceil(math.exp(logarithm)))
    while first > 1 and eigenvalue >= float(first - 1) ** exponent:
        first -= 1
    while eigenvalue < float(first) ** exponent:
        first += 1
    return first


def effective_rank(eigenvalues: ArrayLike, t: ArrayLike) -> Ints:
    """Return ``rho_t``, the smallest r with ``kappa(r, t) <= r``, for each `t` in one pass (eq. effRank).

    It never falls as t grows, and it is d at once for the identity.

    >>> effective_rank([1.0, 0.25, 0.02], [1, 3, 4, 353, 354]).tolist()
    [1, 1, 2, 2, 3]
    """
    return np.asarray(1 + np.searchsorted(rank_starts(eigenvalues), check_rounds(t), side="right"), dtype=np.int64)


def perturbed_kappa(eigenvalues: ArrayLike, r: int, t: int, regularization: float) -> int:
    """Return kappa-tilde of section 4: the largest m with ``mu_m + 2 gamma_t >= mu_1 t**(-2/(1+r))``."""
    gamma = check_nonnegative(regularization, "regularization")
    return _perturbed_kappa(
        check_semidefinite_spectrum(eigenvalues),
        check_integer(r, "r", 1),
        check_rounds(check_integer(t, "t", 1)),
        gamma,
    )


def _perturbed_kappa(mu: Floats, r: int, t: Floats, gamma: float) -> int:
    return int(np.sum(mu + 2 * gamma >= mu[0] * t ** (-2 / (1 + r))))


def perturbed_effective_rank(eigenvalues: ArrayLike, t: int, regularization: float) -> int:
    """Return rho-tilde of section 4, the effective rank that allows for eigenvalues known to within gamma.

    >>> perturbed_effective_rank([1.0, 0.25, 0.02], t=100, regularization=0.0)
    2
    >>> perturbed_effective_rank([1.0, 0.25, 0.02], t=100, regularization=0.1)
    3
    """
    mu, time = check_semidefinite_spectrum(eigenvalues), check_rounds(check_integer(t, "t", 1))
    gamma = check_nonnegative(regularization, "regularization")
    return next(r for r in range(1, len(mu) + 1) if _perturbed_kappa(mu, r, time, gamma) <= r)


def truncated_determinant(eigenvalues: ArrayLike, k: int) -> float:
    """Return ``det_k(M)``, the product of the k largest eigenvalues (1 for k = 0).

    >>> truncated_determinant([1.0, 0.25, 0.02], 2)
    0.25
    """
    falling = check_spectrum(eigenvalues)
    if check_integer(k, "k", 0) > len(falling):
        raise DomainError(f"k must be at most the number of eigenvalues, {len(falling)}, got {k}")
    return float(np.prod(falling[:k]))


def eigenvalue_gaps(eigenvalues: ArrayLike) -> Floats:
    """Return ``Delta_j``, the distance from each eigenvalue to the nearest other one (infinite if alone).

    >>> eigenvalue_gaps([1.0, 0.25, 0.125]).tolist()
    [0.75, 0.125, 0.125]
    """
    falls = -np.diff(check_semidefinite_spectrum(eigenvalues))
    edge = np.array([np.inf])
    return np.asarray(np.minimum(np.concatenate([edge, falls]), np.concatenate([falls, edge])))


def separated(eigenvalues: ArrayLike, delta: float) -> NDArray[np.bool_]:
    """Return which eigenvectors belong to ``V_Delta``: those whose eigenvalue is `delta` or more from all others.

    >>> separated([1.0, 0.25, 0.125], delta=0.5).tolist()
    [True, False, False]
    """
    return eigenvalue_gaps(eigenvalues) >= check_positive(delta, "delta")
