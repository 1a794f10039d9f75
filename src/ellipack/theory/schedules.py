"""Schedules of the paper: radius, phases, regularization, and the scales of appendix A's estimator."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.theory.spectrum import check_normalized_spectrum, check_rounds, effective_rank, rank_starts
from ellipack.validation import Floats, check_integer, check_nonnegative, check_positive

_LAST_PHASE: Final = 62  # ends at round 2**63 - 2; the end of the next one would overflow int64


def radius(eigenvalues: ArrayLike, t: ArrayLike) -> Floats:
    """Return the radius ``eps_t = t**(-1/(1+rho_t))`` of the packing at rounds of Algorithm 1.

    The radius does not always decrease (erratum 6): it increases where the effective rank does.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    t : array-like of int
        Rounds, at least 1.

    Returns
    -------
    radius : array of float, of the shape of `t`

    Examples
    --------
    >>> radius([1.0, 0.25], [1, 3, 4]).round(3).tolist()
    [1.0, 0.577, 0.63]
    """
    return check_rounds(t) ** (-1 / (1 + effective_rank(eigenvalues, t)))


def smallest_radius(eigenvalues: ArrayLike, t: int) -> float:
    """Return the smallest radius of rounds 1 to `t`.

    All centers are farther apart than this radius. The proof of Theorem 1 uses the *last* radius instead (erratum 6).
    That is wrong for centers inserted before an increase of the effective rank, when the radius may have been smaller.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    t : int
        Last round.

    Returns
    -------
    radius : float

    Examples
    --------
    >>> round(smallest_radius([1.0, 0.25], 4), 3)
    0.577
    """
    last = check_integer(t, "t", 1)
    # Between increases of the rank the radius decreases, so that the minimum is at the round before an increase.
    before = rank_starts(check_normalized_spectrum(eigenvalues)) - 1
    ends = np.append(before[(before >= 1) & (before < last)], last)
    return float(radius(eigenvalues, ends).min())


def phase_length(phase: int) -> int:
    """Return the number of rounds of phase i, ``2**i`` (section 4 of the paper).

    Examples
    --------
    >>> [phase_length(i) for i in (1, 2, 3)]
    [2, 4, 8]
    """
    return 1 << _check_phase(check_integer(phase, "phase", 1))


def phase_end(phase: int) -> int:
    """Return the last round of phase i, ``T(i) = 2**(i+1) - 2`` (section 4 of the paper).

    It is 0 for phase 0, before the first round.

    Examples
    --------
    >>> [phase_end(i) for i in (0, 1, 2, 3)]
    [0, 2, 6, 14]
    """
    return (2 << _check_phase(check_integer(phase, "phase", 0))) - 2


def _check_phase(phase: int) -> int:
    """Return a phase whose rounds fit int64."""
    if phase > _LAST_PHASE:
        raise DomainError(f"phase must be at most {_LAST_PHASE}, got {phase}")
    return phase


def phase_of(t: int) -> int:
    """Return the phase of round `t`.

    Examples
    --------
    >>> [phase_of(t) for t in (1, 2, 3, 6, 7)]
    [1, 1, 2, 2, 3]
    """
    return (check_integer(t, "t", 1) + 1).bit_length() - 1


def regularization(t: int, alpha: float) -> float:
    """Return the regularization ``gamma-bar_t = t**-alpha``, with ``gamma-bar_0 = 1`` (section 4 of the paper).

    Parameters
    ----------
    t : int
        Round, at least 0.
    alpha : float
        Exponent, above 0.

    Returns
    -------
    gamma : float
        At least the smallest normal float.

    Examples
    --------
    >>> [regularization(t, alpha=0.5) for t in (0, 1, 4)]
    [1.0, 1.0, 0.5]
    """
    check_positive(alpha, "alpha")
    # An underflow to 0 would turn the regularization off.
    return 1.0 if check_integer(t, "t", 0) == 0 else max(float(t) ** -alpha, float(np.finfo(np.float64).tiny))


def burn_in(smallest_eigenvalue: float, d: int, alpha: float) -> float:
    """Return ``((d+1) / (mu_d ln(3/2)))**(1/alpha)``, the number of rounds before Theorem 2 applies.

    From then on, the effective rank of every phase is at most rho-tilde at every later horizon, if the regularization
    is at least the error of the estimate. The proof is in ``docs/paper.md``.

    Parameters
    ----------
    smallest_eigenvalue : float
        Smallest eigenvalue ``mu_d`` of the expected gradient outer product.
    d : int
        Number of features.
    alpha : float
        Exponent of the regularization.

    Returns
    -------
    rounds : float
        Infinite if ``mu_d`` is 0: the theorem does not cover functions that are constant in some direction.

    Examples
    --------
    >>> round(burn_in(0.5, d=3, alpha=0.5))
    389
    """
    return _burn_in(smallest_eigenvalue, d, alpha, np.log(1.5))


def printed_burn_in(smallest_eigenvalue: float, d: int, alpha: float) -> float:
    """Return ``((d+1) / (2 mu_d))**(1/alpha)``, the number of rounds before Theorem 2 applies (eq. phaseCondition).

    It is too small for what the proof uses it for (erratum 9), and `burn_in` is not. The lemma on F(t) holds with it;
    see `scaled_eigenvalue_slope`.

    Examples
    --------
    >>> printed_burn_in(0.5, d=3, alpha=0.5)
    16.0
    """
    return _burn_in(smallest_eigenvalue, d, alpha, 2.0)


def _burn_in(smallest_eigenvalue: float, d: int, alpha: float, factor: float) -> float:
    """Return ``((d+1) / (factor mu_d))**(1/alpha)``."""
    mu = np.float64(check_nonnegative(smallest_eigenvalue, "smallest_eigenvalue"))
    with np.errstate(over="ignore", divide="ignore"):
        return float(((check_integer(d, "d", 1) + 1) / (factor * mu)) ** (1 / check_positive(alpha, "alpha")))


def bandwidth(n: int, d: int, scale: float = 1.0) -> float:
    """Return the bandwidth ``eps_n`` of appendix A: `scale` times ``n**(-1/(2(d+1)))``, the largest allowed order.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        Number of features.
    scale : float, default 1.0
        Factor, above 0.

    Returns
    -------
    bandwidth : float

    Examples
    --------
    >>> bandwidth(256, d=1)
    0.25
    """
    return check_positive(scale, "scale") * bandwidth_limits(n, d)[1]


def bandwidth_limits(n: int, d: int) -> tuple[float, float]:
    """Return the smallest and the largest order of ``eps_n`` for which the estimator of appendix A converges.

    The paper gives them up to constants: ``(ln n)**(2/d) n**(-1/d)`` and ``n**(-1/(2(d+1)))``.

    Examples
    --------
    >>> smallest, largest = bandwidth_limits(256, d=1)
    >>> round(smallest, 2), largest
    (0.12, 0.25)
    """
    points, dimension = float(check_integer(n, "n", 1)), check_integer(d, "d", 1)
    smallest = np.log(points) ** (2 / dimension) * points ** (-1 / dimension)
    return float(smallest), points ** (-1 / (2 * (dimension + 1)))


def step(bandwidth: float, scale: float = 1.0) -> float:
    """Return the step ``tau_n`` of appendix A: `scale` times ``eps_n**(1/4)``.

    Examples
    --------
    >>> step(0.0625)
    0.5
    """
    return check_positive(scale, "scale") * float(check_positive(bandwidth, "bandwidth") ** 0.25)


def mass_threshold(n: int, d: int, scale: float = 1.0) -> float:
    """Return the number of rows that a ball of appendix A needs to have enough mass: `scale` times ``2 d ln(2n)``.

    Examples
    --------
    >>> round(mass_threshold(100, d=2), 2)
    21.19
    """
    return float(
        check_nonnegative(scale, "scale") * 2 * check_integer(d, "d", 1) * np.log(2 * check_integer(n, "n", 1))
    )
