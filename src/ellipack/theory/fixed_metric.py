"""Theorem 1: the regret of Algorithm 1 with a fixed metric, and its use in a phase.

There are three versions. Functions with the prefix ``printed_`` compute what the paper prints, with the constants of
its proof. Those without a prefix correct errata 5 and 6. The one with the prefix ``sharp_`` has smaller constants.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.theory.lipschitz import check_vector
from ellipack.theory.packing_bounds import LEMMA_2, center_bound, ellipsoid_packing_bound, finite_exp
from ellipack.theory.schedules import phase_length, radius, smallest_radius
from ellipack.theory.spectrum import check_normalized_spectrum, effective_rank, kappa, truncated_determinant
from ellipack.validation import Floats, check_integer, check_nonnegative, check_rows


def fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return the bound on the regret of Algorithm 1 with a fixed metric that the proof of Theorem 1 gives.

    It is ``8 ln(eT)`` for each center, plus ``4 L T**(rho_T/(1+rho_T))`` for the variation within the radius of a
    center. `ellipsoid_packing_bound` at the smallest radius so far bounds the number of centers (errata 5 and 6). The
    bound holds against functions with values in [0, 1].

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    rounds : int
        Number of rounds T.
    lipschitz : float
        Lipschitz constant L of the functions in the metric; see `lipschitz_constant`.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(fixed_metric_regret_bound([1.0, 0.25], rounds=100, lipschitz=1.0))
    61915
    """
    descending, last, constant = _check(eigenvalues, rounds, lipschitz)
    centers = ellipsoid_packing_bound(descending, smallest_radius(descending, last))
    return cost_per_center(last) * centers + 4 * constant * rate(descending, last)


def sharp_fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return a sharper bound than Theorem 1 on the same regret.

    It is ``N ln(e T / N) + 2 L (1 + 1/rho_T) T**(rho_T/(1+rho_T))``, where N is `center_bound`: the smaller of Lemmas 1
    and 2, at most T. The excess of a ball with n labels is at most ``ln(e n)`` (see `ball_excess`), and the logarithm
    is concave. The proof is in ``docs/paper.md``. It needs Algorithm 1 to keep the founding labels, as by default.

    See `fixed_metric_regret_bound` for the parameters.

    Examples
    --------
    >>> round(sharp_fixed_metric_regret_bound([1.0], rounds=256, lipschitz=0.5))
    133
    >>> round(fixed_metric_regret_bound([1.0], rounds=256, lipschitz=0.5))
    9510
    """
    descending, last, constant = _check(eigenvalues, rounds, lipschitz)
    centers = center_bound(descending, last)
    rank = int(effective_rank(descending, last))
    approximation = 2 * constant * (1 + 1 / rank) * rate(descending, last)
    return float(centers * np.log(np.e * last / centers) + approximation)


def printed_fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return the bound of Theorem 1 with the constants printed in its proof, which errata 5 and 6 correct.

    It is ``(8 ln(eT) (8 sqrt(2))**rho_T sqrt(det_kappa(M)) + 4 L) T**(rho_T/(1+rho_T))``. See
    `fixed_metric_regret_bound` for the parameters.
    """
    descending, last, _ = _check(eigenvalues, rounds, lipschitz)
    rank = int(effective_rank(descending, last))
    determinant = truncated_determinant(descending, int(kappa(descending, rank, last)))
    return _as_printed(descending, last, np.sqrt(determinant), lipschitz)


def phase_regret_bound(eigenvalues: ArrayLike, phase: int, lipschitz: float) -> float:
    """Return the bound on the regret of one phase: `fixed_metric_regret_bound` over its rounds.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric of the phase in descending order; the largest is 1.
    phase : int
        Number of the phase, at least 1.
    lipschitz : float
        Lipschitz constant of the functions in this metric.

    Returns
    -------
    bound : float
    """
    return fixed_metric_regret_bound(eigenvalues, phase_length(phase), lipschitz)


def printed_phase_regret_bound(eigenvalues: ArrayLike, phase: int, lipschitz: float) -> float:
    """Return the bound on the regret of one phase as printed in eq. phaseBound, which errata 5 and 6 correct.

    It is the bound of Theorem 1 with 1 in place of the truncated determinant.
    """
    return _as_printed(check_normalized_spectrum(eigenvalues), phase_length(phase), 1.0, lipschitz)


def phased_regret_bound(spectra: ArrayLike, lipschitz: ArrayLike) -> float:
    """Return the sum of `phase_regret_bound` over phases 1, 2, and so on.

    The last display in the proof of Theorem 2 still has the index of the phase after the sum over it (erratum 4). The
    sum over single phases is meant.

    Parameters
    ----------
    spectra : array-like of shape (n_phases, d)
        Eigenvalues of the metric of each phase, one phase per row.
    lipschitz : array-like of shape (n_phases,)
        Lipschitz constant in the metric of each phase.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> spectra, lipschitz = [[1.0, 1.0], [1.0, 0.25]], [1.0, 2.0]
    >>> total = phased_regret_bound(spectra, lipschitz)
    >>> total == phase_regret_bound(spectra[0], 1, 1.0) + phase_regret_bound(spectra[1], 2, 2.0)
    True
    """
    table = check_rows(spectra, name="spectra")
    constants = check_vector(lipschitz, len(table), "lipschitz")
    phases = zip(table, constants, strict=True)
    return sum(phase_regret_bound(row, i, float(L)) for i, (row, L) in enumerate(phases, start=1))


def cost_per_center(rounds: int) -> float:
    """Return ``8 ln(eT)``, the paper's bound on the regret of one center.

    Examples
    --------
    >>> cost_per_center(1)
    8.0
    """
    return float(8 * np.log(np.e * rounds))


def rate(eigenvalues: Floats, rounds: int) -> float:
    """Return ``T**(rho_T/(1+rho_T))``, T times the last radius.

    Examples
    --------
    >>> rate(np.array([1.0]), 100)
    10.0
    """
    return float(rounds * radius(eigenvalues, rounds))


def _as_printed(descending: Floats, rounds: int, volume: float, lipschitz: float) -> float:
    """Return the printed bound of Theorem 1 with `volume` for the root of the truncated determinant."""
    constant, rank = check_nonnegative(lipschitz, "lipschitz"), int(effective_rank(descending, rounds))
    centers = finite_exp(rank * float(np.log(LEMMA_2))) * volume
    return float((cost_per_center(rounds) * centers + 4 * constant) * rate(descending, rounds))


def _check(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> tuple[Floats, int, float]:
    """Return the checked arguments of Theorem 1."""
    return (
        check_normalized_spectrum(eigenvalues),
        check_integer(rounds, "rounds", 1),
        check_nonnegative(lipschitz, "lipschitz"),
    )
