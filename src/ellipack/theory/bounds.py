"""Bounds of the paper's lemmas and theorems, with the constants of its proofs.

Some printed statements do not hold. For each of these there are two functions: one computes what the proof shows, and
one with the prefix ``printed_`` computes what the paper prints.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import ShapeError
from ellipack.theory.schedules import (
    burn_in,
    phase_end,
    phase_length,
    phase_of,
    radius,
    regularization,
    smallest_radius,
)
from ellipack.theory.spectrum import (
    check_normalized_spectrum,
    check_semidefinite_spectrum,
    check_spectrum,
    effective_rank,
    kappa,
    perturbed_effective_rank,
    separated,
    truncated_determinant,
)
from ellipack.validation import (
    Floats,
    as_floats,
    check_finite,
    check_integer,
    check_nonnegative,
    check_positive,
    check_rows,
)

_LEMMA_2 = 8 * np.sqrt(2)
_THEOREM_2 = 12  # 8 sqrt(2), rounded up in the paper


def volumetric_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the bound of Lemma 1 on the size of a packing of the unit ball.

    Lemma 1 bounds it by the ratio of the volumes of ``B + (eps/2) B'`` and ``(eps/2) B'``. The sum of a ball and an
    ellipsoid is not an ellipsoid. Its volume is bounded here by the smallest of a family of ellipsoids that contain it.
    For the identity, the bound is Lemma 1's own, ``(1 + 2/eps)**d``.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order.
    radius : float
        Distance ``eps`` that all pairs of points exceed in the metric.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(volumetric_packing_bound([1.0, 1.0], 0.5), 6)
    25.0
    """
    descending, half = check_spectrum(eigenvalues), check_positive(radius, "radius") / 2
    # For any p > 0, the ellipsoid of squared axes (1 + 1/p) a + (1 + p) b contains the sum of those of a and of b.
    p = np.append(np.geomspace(1e-3, 1e3, 601), 1 / half)[:, None]
    squared_axes = (1 + 1 / p) * descending + (1 + p) * half**2
    logarithms = 0.5 * np.log(squared_axes).sum(axis=1) - len(descending) * np.log(half)
    return _exp(float(logarithms.min()))


def ellipsoid_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the bound that the proof of Lemma 2 gives on the size of a packing of the unit ball.

    It is ``(8 sqrt(2) / eps)**s`` times the product of the s largest ``sqrt(lambda_i)``, where s counts the
    ``sqrt(lambda_i) >= eps / (2 sqrt(2))``.

    The printed lemma counts ``sqrt(lambda_i) >= eps`` (erratum 6): its proof bounds packings of radius ``2 sqrt(2)
    eps``, renames this radius to eps, but does not rename it in the definition of s. The printed lemma is false. For
    d = 8, ``M = diag(1, 0.79, ..., 0.79)`` and eps = 0.9, the 16 points +-e_i are a packing; the printed bound is 12.6.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order.
    radius : float
        Distance ``eps`` that all pairs of points exceed in the metric.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(ellipsoid_packing_bound([1.0, 0.25], 1.0), 6)
    64.0
    """
    reach = check_positive(radius, "radius")
    return _lemma_2(check_spectrum(eigenvalues), reach, smallest_axis=reach / (2 * np.sqrt(2)))


def printed_ellipsoid_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the bound of Lemma 2 as printed, which `ellipsoid_packing_bound` corrects (erratum 6).

    Examples
    --------
    >>> round(printed_ellipsoid_packing_bound([1.0] + [0.79] * 7, 0.9), 1)
    12.6
    """
    reach = check_positive(radius, "radius")
    return _lemma_2(check_spectrum(eigenvalues), reach, smallest_axis=reach)


def _lemma_2(descending: Floats, radius: float, smallest_axis: float) -> float:
    """Return the product of ``8 sqrt(2) / radius`` times each axis of at least `smallest_axis`."""
    axes = np.sqrt(descending)
    long = axes[axes >= smallest_axis]
    return _exp(float(np.log(_LEMMA_2 * long / radius).sum()))


def lipschitz_constant(eigenvalues: ArrayLike, directional: ArrayLike) -> float:
    """Return the Lipschitz constant of Lemma 3 in a metric, ``sqrt(sum_i |grad_(u_i) f|^2 / lambda_i)``.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order.
    directional : array-like of shape (d,)
        Largest derivative along each eigenvector; see `directional_lipschitz`.

    Returns
    -------
    lipschitz : float

    Examples
    --------
    >>> lipschitz_constant([1.0, 0.25], [3.0, 2.0])
    5.0
    """
    descending = check_spectrum(eigenvalues)
    slopes = _check_vector(directional, len(descending), "directional")
    return float(np.sqrt(np.sum(slopes**2 / descending)))


def directional_lipschitz(gradients: ArrayLike, directions: ArrayLike) -> Floats:
    """Return ``|grad_u f|``, the largest absolute derivative along each direction.

    Parameters
    ----------
    gradients : array-like of shape (n, d)
        Gradients, one per row.
    directions : array-like of shape (d, k)
        Directions u, one per column.

    Returns
    -------
    directional : array of shape (k,)

    Examples
    --------
    >>> directional_lipschitz([[1.0, -2.0], [0.5, 0.0]], np.eye(2)).tolist()
    [1.0, 2.0]
    """
    slopes, basis = check_rows(gradients, name="gradients"), check_rows(directions, name="directions")
    if len(basis) != slopes.shape[1]:
        raise ShapeError(f"directions must have {slopes.shape[1]} rows, one per column of gradients, got {len(basis)}")
    return np.asarray(np.abs(slopes @ basis).max(axis=0))


def fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return the bound on the regret of Algorithm 1 with a fixed metric that the proof of Theorem 1 gives.

    It is ``8 ln(eT)`` for each center, plus ``4 L T**(rho_T/(1+rho_T))`` for the variation within the radius of a
    center. `ellipsoid_packing_bound` at the smallest radius so far bounds the number of centers (errata 6 and 7). The
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
    descending, last, constant = (
        check_normalized_spectrum(eigenvalues),
        check_integer(rounds, "rounds", 1),
        check_nonnegative(lipschitz, "lipschitz"),
    )
    centers = ellipsoid_packing_bound(descending, smallest_radius(descending, last))
    return _cost_per_center(last) * centers + 4 * constant * _rate(descending, last)


def printed_fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return the bound of Theorem 1 with the constants printed in its proof, which errata 6 and 7 correct.

    It is ``(8 ln(eT) (8 sqrt(2))**rho_T sqrt(det_kappa(M)) + 4 L) T**(rho_T/(1+rho_T))``. See
    `fixed_metric_regret_bound` for the parameters.
    """
    descending, last = check_normalized_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
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
    """Return the bound on the regret of one phase as printed in eq. phaseBound, which errata 6 and 7 correct.

    It is the bound of Theorem 1 with 1 in place of the truncated determinant.
    """
    return _as_printed(check_normalized_spectrum(eigenvalues), phase_length(phase), 1.0, lipschitz)


def _as_printed(descending: Floats, rounds: int, volume: float, lipschitz: float) -> float:
    """Return the printed bound of Theorem 1 with `volume` for the root of the truncated determinant."""
    constant, rank = check_nonnegative(lipschitz, "lipschitz"), int(effective_rank(descending, rounds))
    centers = _power(_LEMMA_2, rank) * volume
    return float((_cost_per_center(rounds) * centers + 4 * constant) * _rate(descending, rounds))


def phased_regret_bound(spectra: ArrayLike, lipschitz: ArrayLike) -> float:
    """Return the sum of `phase_regret_bound` over phases 1, 2, and so on.

    The last display in the proof of Theorem 2 still has the index of the phase after the sum over it (erratum 5). The
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
    constants = _check_vector(lipschitz, len(table), "lipschitz")
    phases = zip(table, constants, strict=True)
    return sum(phase_regret_bound(row, i, float(L)) for i, (row, L) in enumerate(phases, start=1))


def learned_metric_regret_bound(
    eigenvalues: ArrayLike, rounds: int, *, alpha: float, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> float:
    """Return the bound of Theorem 2: the last bound on a single phase in its proof, summed over the phases.

    The bound holds with high probability if ``gamma-bar_t >= gamma_t``, the error of the estimated outer product. It is
    of first order in gamma: terms of order ``gamma**2``, for which the paper gives no constants, are left out.

    The constant is ``12**d``, as in the last display of the proof, which errata 6 and 7 require. Each phase has its own
    rank (erratum 10). Rounds before the condition of the theorem holds cost at most 1 each (erratum 8). If ``mu_d`` is
    0, the condition never holds and the bound is `rounds`.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the expected gradient outer product in descending order.
    rounds : int
        Number of rounds.
    alpha : float
        Exponent of the regularization.
    delta : float
        Eigenvectors whose eigenvalues are closer than this count as not identifiable: the ``V_Delta`` term.
    directions : array-like of shape (d, d)
        Eigenvectors of the expected gradient outer product, one per column.
    gradients : array-like of shape (n, d)
        Sample of true gradients, one per row. Suprema are taken over this sample, so that they, and the bound, may come
        out too small.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> gradients = [[1.0, 0.0], [0.0, 0.0]]
    >>> bound = learned_metric_regret_bound
    >>> bound([0.5, 0.0], 100, alpha=0.5, delta=0.1, directions=np.eye(2), gradients=gradients)
    100.0
    """
    mu, rounds = check_semidefinite_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    basis, slopes = check_rows(directions, len(mu), "directions"), check_rows(gradients, len(mu), "gradients")
    along, known = directional_lipschitz(slopes, basis), separated(mu, delta)
    sup_known, sup_unknown = _largest_projection(slopes, basis[:, known]), _largest_projection(slopes, basis[:, ~known])
    last = phase_of(rounds)
    first = _first_phase_after(burn_in(mu[-1], len(mu), alpha), last)
    total = float(min(rounds, phase_end(first)))
    for i, following in pairwise(range(first, last + 1)):
        gamma, length = regularization(phase_end(i), alpha), phase_length(following)
        rank = perturbed_effective_rank(mu, length, gamma)
        rotation = np.sqrt(len(mu)) * (2 * gamma / delta * sup_known + 2 * sup_unknown)
        spread = np.sqrt((mu[0] + 2 * gamma) * np.sum((along + rotation) ** 2 / mu))
        per_rate = _cost_per_center(length) * _power(_THEOREM_2, len(mu)) + 4 * spread
        total += float(per_rate * length ** (rank / (1 + rank)))
    return total


def _first_phase_after(condition: float, last: int) -> int:
    """Return the first phase whose end meets the condition of Theorem 2, or `last` if no phase before it does."""
    return next((i for i in range(1, last) if phase_end(i) >= condition), last)


def _largest_projection(gradients: Floats, directions: Floats) -> float:
    """Return ``|grad_V f|``, the largest norm of gradients projected on the span of `directions`."""
    return float(np.sqrt(((gradients @ directions) ** 2).sum(axis=1)).max())


def _cost_per_center(rounds: int) -> float:
    """Return ``8 ln(eT)``, the bound on the regret of one center."""
    return float(8 * np.log(np.e * rounds))


def _rate(eigenvalues: Floats, rounds: int) -> float:
    """Return ``T**(rho_T/(1+rho_T))``, T times the last radius."""
    return float(rounds * radius(eigenvalues, rounds))


def _power(base: float, exponent: int) -> float:
    """Return a power, infinite beyond the largest float."""
    return _exp(exponent * float(np.log(base)))


def _exp(logarithm: float) -> float:
    """Return an exponential, infinite beyond the largest float."""
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def _check_vector(values: ArrayLike, count: int, name: str) -> Floats:
    """Return `count` finite numbers."""
    array = check_finite(as_floats(values, name), name)
    if array.shape != (count,):
        raise ShapeError(f"{name} must have shape ({count},), got {array.shape}")
    return array
