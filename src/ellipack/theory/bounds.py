"""The right-hand sides of the paper's lemmas and theorems, with the constants that its proofs give.

Where a printed statement does not hold as it stands there are two functions: one by the plain name, which is
what the argument proves, and one called ``printed_``, which is what the paper prints.
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
_THEOREM_2 = 12  # what the paper rounds 8 sqrt(2) up to


def volumetric_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return Lemma 1's bound on the points of the unit ball that are pairwise farther than `radius` in a metric.

    Lemma 1 is the ratio of the volumes of ``B + (eps/2) B'`` and ``(eps/2) B'``. The sum of a ball and an
    ellipsoid is no ellipsoid, so the smallest out of a family of ellipsoids around it stands in; for the
    identity that is the sum itself and the bound Lemma 1's own, ``(1 + 2/eps)**d``.

    >>> round(volumetric_packing_bound([1.0, 1.0], 0.5), 6)
    25.0
    """
    falling, half = check_spectrum(eigenvalues), check_positive(radius, "radius") / 2
    # Ellipsoids with squared axes (1 + 1/p) a + (1 + p) b hold the sum of those with a and with b, for any p > 0.
    p = np.append(np.geomspace(1e-3, 1e3, 601), 1 / half)[:, None]
    squared_axes = (1 + 1 / p) * falling + (1 + p) * half**2
    logarithms = 0.5 * np.log(squared_axes).sum(axis=1) - len(falling) * np.log(half)
    return _exp(float(logarithms.min()))


def ellipsoid_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return what the proof of Lemma 2 gives: ``(8 sqrt(2) / eps)**s`` times the product of s ``sqrt(lambda)``.

    Erratum 6: the proof bounds packings of radius ``2 sqrt(2) eps`` and then renames that radius eps, but leaves
    behind the eps in ``s``. So ``s`` must count the ``sqrt(lambda_i) >= eps / (2 sqrt(2))``. As printed, with
    ``sqrt(lambda_i) >= eps``, the lemma is false: with d = 8, ``M = diag(1, 0.79, ..., 0.79)`` and eps = 0.9 the
    16 points +-e_i are a packing, and the printed bound is 12.6.

    >>> round(ellipsoid_packing_bound([1.0, 0.25], 1.0), 6)
    64.0
    """
    reach = check_positive(radius, "radius")
    return _lemma_2(check_spectrum(eigenvalues), reach, smallest_axis=reach / (2 * np.sqrt(2)))


def printed_ellipsoid_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return Lemma 2's bound as printed, which `ellipsoid_packing_bound` corrects (erratum 6).

    >>> round(printed_ellipsoid_packing_bound([1.0] + [0.79] * 7, 0.9), 1)
    12.6
    """
    reach = check_positive(radius, "radius")
    return _lemma_2(check_spectrum(eigenvalues), reach, smallest_axis=reach)


def _lemma_2(falling: Floats, radius: float, smallest_axis: float) -> float:
    axes = np.sqrt(falling)
    long = axes[axes >= smallest_axis]
    return _exp(float(np.log(_LEMMA_2 * long / radius).sum()))


def lipschitz_constant(eigenvalues: ArrayLike, directional: ArrayLike) -> float:
    """Return Lemma 3's Lipschitz constant in a metric, ``sqrt(sum_i |grad_(u_i) f|^2 / lambda_i)``.

    `directional` holds the largest derivative along each eigenvector; see `directional_lipschitz`.

    >>> lipschitz_constant([1.0, 0.25], [3.0, 2.0])
    5.0
    """
    falling = check_spectrum(eigenvalues)
    slopes = _slopes(directional, len(falling), "directional")
    return float(np.sqrt(np.sum(slopes**2 / falling)))


def directional_lipschitz(gradients: ArrayLike, directions: ArrayLike) -> Floats:
    """Return ``|grad_u f|``, the largest of `gradients` (a row each) along each column of `directions`.

    >>> directional_lipschitz([[1.0, -2.0], [0.5, 0.0]], np.eye(2)).tolist()
    [1.0, 2.0]
    """
    slopes, basis = check_rows(gradients, name="gradients"), check_rows(directions, name="directions")
    if len(basis) != slopes.shape[1]:
        raise ShapeError(f"directions must have {slopes.shape[1]} rows, as many as gradients columns, got {len(basis)}")
    return np.asarray(np.abs(slopes @ basis).max(axis=0))


def fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return a bound on the regret of Algorithm 1 with a fixed metric, as the proof of Theorem 1 argues.

    ``8 ln(eT)`` for each centre, of which there are at most `ellipsoid_packing_bound` at the smallest radius so
    far (errata 6 and 7), plus ``4 L T**(rho_T/(1+rho_T))`` for what varies within a centre's reach. It holds
    against functions that map into [0, 1]; L is their `lipschitz_constant`.
    """
    falling, last, constant = (
        check_normalized_spectrum(eigenvalues),
        check_integer(rounds, "rounds", 1),
        check_nonnegative(lipschitz, "lipschitz"),
    )
    centers = ellipsoid_packing_bound(falling, smallest_radius(falling, last))
    return _per_center(last) * centers + 4 * constant * _rate(falling, last)


def printed_fixed_metric_regret_bound(eigenvalues: ArrayLike, rounds: int, lipschitz: float) -> float:
    """Return Theorem 1's bound with the constants printed in its proof (but see errata 6 and 7).

    ``(8 ln(eT) (8 sqrt(2))**rho_T sqrt(det_kappa(M)) + 4 L) T**(rho_T/(1+rho_T))`` against functions that map
    into [0, 1], with L their `lipschitz_constant`.
    """
    falling, last = check_normalized_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    rank = int(effective_rank(falling, last))
    determinant = truncated_determinant(falling, int(kappa(falling, rank, last)))
    return _as_printed(falling, last, np.sqrt(determinant), lipschitz)


def phase_regret_bound(eigenvalues: ArrayLike, phase: int, lipschitz: float) -> float:
    """Return the bound on the regret of one phase: Theorem 1's, over its rounds, in the spectrum that it ran in.

    The spectrum is scaled to 1; `lipschitz` is the `lipschitz_constant` in that metric of a function that maps
    into [0, 1].
    """
    return fixed_metric_regret_bound(eigenvalues, phase_length(phase), lipschitz)


def printed_phase_regret_bound(eigenvalues: ArrayLike, phase: int, lipschitz: float) -> float:
    """Return the bound on the regret of one phase as printed in eq. phaseBound (but see errata 6 and 7).

    It is Theorem 1's with 1 in place of the truncated determinant.
    """
    return _as_printed(check_normalized_spectrum(eigenvalues), phase_length(phase), 1.0, lipschitz)


def _as_printed(falling: Floats, rounds: int, volume: float, lipschitz: float) -> float:
    constant, rank = check_nonnegative(lipschitz, "lipschitz"), int(effective_rank(falling, rounds))
    centers = _power(_LEMMA_2, rank) * volume
    return float((_per_center(rounds) * centers + 4 * constant) * _rate(falling, rounds))


def phased_regret_bound(spectra: ArrayLike, lipschitz: ArrayLike) -> float:
    """Return the sum of `phase_regret_bound` over phases 1, 2, ... that ran in these spectra, a row each.

    Erratum 5: the last display of Theorem 2's proof leaves the index of the phase in after summing over it.
    Adding up the single phases is what is meant.
    """
    table = check_rows(spectra, name="spectra")
    constants = _slopes(lipschitz, len(table), "lipschitz")
    phases = zip(table, constants, strict=True)
    return sum(phase_regret_bound(row, i, float(L)) for i, (row, L) in enumerate(phases, start=1))


def learned_metric_regret_bound(
    eigenvalues: ArrayLike, rounds: int, *, alpha: float, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> float:
    """Return Theorem 2's bound: the last single-phase bound of its proof, summed over the phases.

    It holds with high probability, only if ``gamma-bar_t >= gamma_t``, the error of the estimated outer product,
    and to first order in gamma: terms of the order of ``gamma**2``, which the paper leaves without constants, are
    left out. `eigenvalues` and `directions` (columns) are those of the true expected gradient outer product.
    `gradients` is a sample of true gradients (a row each), over which suprema are taken; over a sample they come
    out too small, and so does the bound. Eigenvectors whose eigenvalues are closer than `delta` count as not
    identifiable: the ``V_Delta`` term.

    The constant is ``12**d``, as in the proof's last display, which errata 6 and 7 need. Each phase has a rank of
    its own (erratum 10). Phases before the theorem's condition holds cost at most 1 a round (erratum 8); where
    ``mu_d`` is 0 it never does, and the bound is `rounds`.
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
        per_rate = _per_center(length) * _power(_THEOREM_2, len(mu)) + 4 * spread
        total += float(per_rate * length ** (rank / (1 + rank)))
    return total


def _first_phase_after(condition: float, last: int) -> int:
    """Return the first phase whose end fulfils Theorem 2's condition, or `last` if none up to it does."""
    return next((i for i in range(1, last) if phase_end(i) >= condition), last)


def _largest_projection(gradients: Floats, directions: Floats) -> float:
    """Return ``|grad_V f|``, the largest norm of a gradient projected on the span of `directions`."""
    return float(np.sqrt(((gradients @ directions) ** 2).sum(axis=1)).max())


def _per_center(rounds: int) -> float:
    return float(8 * np.log(np.e * rounds))


def _rate(eigenvalues: Floats, rounds: int) -> float:
    """Return ``T**(rho_T/(1+rho_T))``, which is T times the last radius."""
    return float(rounds * radius(eigenvalues, rounds))


def _power(base: float, exponent: int) -> float:
    return _exp(exponent * float(np.log(base)))


def _exp(logarithm: float) -> float:
    with np.errstate(over="ignore"):  # a bound past the largest float is infinite, and that is no accident
        return float(np.exp(logarithm))


def _slopes(values: ArrayLike, count: int, name: str) -> Floats:
    array = check_finite(as_floats(values, name), name)
    if array.shape != (count,):
        raise ShapeError(f"{name} must have shape ({count},), got {array.shape}")
    return array
