"""What the paper lets depend on time alone: the radius, the phases, the regularization, the estimator's scales."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.theory.spectrum import check_normalized_spectrum, check_rounds, effective_rank, rank_starts
from ellipack.validation import Floats, check_integer, check_nonnegative, check_positive

_LAST_PHASE: Final = 62  # it ends at round 2**63 - 2, the last of a phase that an int64 can count


def radius(eigenvalues: ArrayLike, t: ArrayLike) -> Floats:
    """Return ``eps_t = t**(-1/(1+rho_t))`` for each `t`: how far a centre reaches at round t of Algorithm 1.

    Erratum 7: it does not always shrink. Where the effective rank steps up, so does the radius.

    >>> radius([1.0, 0.25], [1, 3, 4]).round(3).tolist()
    [1.0, 0.577, 0.63]
    """
    return check_rounds(t) ** (-1 / (1 + effective_rank(eigenvalues, t)))


def smallest_radius(eigenvalues: ArrayLike, t: int) -> float:
    """Return the smallest radius of rounds 1 to `t`.

    Erratum 7: the proof of Theorem 1 takes the centres to be farther apart than the *last* radius. A centre
    founded before a step of the effective rank was only farther than the radius *then*, which may be smaller.
    What holds is that all centres are farther apart than the smallest radius so far.

    >>> round(smallest_radius([1.0, 0.25], 4), 3)
    0.577
    """
    last = check_integer(t, "t", 1)
    # Between two steps of the rank the radius shrinks, so the ends of the treads are enough to look at.
    treads = rank_starts(check_normalized_spectrum(eigenvalues)) - 1
    ends = np.append(treads[(treads >= 1) & (treads < last)], last)
    return float(radius(eigenvalues, ends).min())


def phase_length(phase: int) -> int:
    """Return the number of rounds of a phase, ``2**i``.

    >>> [phase_length(i) for i in (1, 2, 3)]
    [2, 4, 8]
    """
    return 1 << _countable(check_integer(phase, "phase", 1))


def phase_end(phase: int) -> int:
    """Return the last round of a phase, ``T(i) = 2**(i+1) - 2`` (0 for phase 0, before the first).

    >>> [phase_end(i) for i in (0, 1, 2, 3)]
    [0, 2, 6, 14]
    """
    return (2 << _countable(check_integer(phase, "phase", 0))) - 2


def _countable(phase: int) -> int:
    if phase > _LAST_PHASE:
        raise DomainError(f"phase must be at most {_LAST_PHASE}, got {phase}")
    return phase


def phase_of(t: int) -> int:
    """Return the phase that round `t` belongs to.

    >>> [phase_of(t) for t in (1, 2, 3, 6, 7)]
    [1, 1, 2, 2, 3]
    """
    return (check_integer(t, "t", 1) + 1).bit_length() - 1


def regularization(t: int, alpha: float) -> float:
    """Return ``gamma-bar_t = t**-alpha``, with ``gamma-bar_0 = 1``.

    >>> [regularization(t, alpha=0.5) for t in (0, 1, 4)]
    [1.0, 1.0, 0.5]
    """
    check_positive(alpha, "alpha")
    # A power that underflows would be 0, and no ridge at all.
    return 1.0 if check_integer(t, "t", 0) == 0 else max(float(t) ** -alpha, float(np.finfo(np.float64).tiny))


def burn_in(smallest_eigenvalue: float, d: int, alpha: float) -> float:
    """Return ``((d+1) / (2 mu_d))**(1/alpha)``, the rounds that Theorem 2 does without (eq. phaseCondition).

    It is infinite where ``mu_d`` is 0: the theorem says nothing of a function that is flat in some direction.

    >>> burn_in(0.5, d=3, alpha=0.5)
    16.0
    """
    mu = np.float64(check_nonnegative(smallest_eigenvalue, "smallest_eigenvalue"))
    with np.errstate(over="ignore", divide="ignore"):
        return float(((check_integer(d, "d", 1) + 1) / (2 * mu)) ** (1 / check_positive(alpha, "alpha")))


def bandwidth(n: int, d: int, scale: float = 1.0) -> float:
    """Return ``eps_n`` of appendix A, `scale` times the largest order the paper allows, ``n**(-1/(2(d+1)))``.

    >>> bandwidth(256, d=1)
    0.25
    """
    return check_positive(scale, "scale") * bandwidth_limits(n, d)[1]


def bandwidth_limits(n: int, d: int) -> tuple[float, float]:
    """Return the smallest and the largest order of ``eps_n`` for which appendix A's estimate converges.

    The paper fixes them up to constants: ``(ln n)**(2/d) n**(-1/d)`` and ``n**(-1/(2(d+1)))``.
    """
    points, dimension = float(check_integer(n, "n", 1)), check_integer(d, "d", 1)
    smallest = np.log(points) ** (2 / dimension) * points ** (-1 / dimension)
    return float(smallest), points ** (-1 / (2 * (dimension + 1)))


def step(bandwidth: float, scale: float = 1.0) -> float:
    """Return ``tau_n`` of appendix A, `scale` times ``eps_n**(1/4)``.

    >>> step(0.0625)
    0.5
    """
    return check_positive(scale, "scale") * float(check_positive(bandwidth, "bandwidth") ** 0.25)


def mass_threshold(n: int, d: int, scale: float = 1.0) -> float:
    """Return how many of n points a ball must hold to have `enough_mass`: `scale` times ``2 d ln(2n)``.

    >>> round(mass_threshold(100, d=2), 2)
    21.19
    """
    return float(
        check_nonnegative(scale, "scale") * 2 * check_integer(d, "d", 1) * np.log(2 * check_integer(n, "n", 1))
    )
