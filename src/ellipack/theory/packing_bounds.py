"""Bounds on packings of the unit ball: Lemma 1 by volumes, Lemma 2 by the longest axes, and the centers of Algorithm 1.

The printed Lemma 2 does not hold. `ellipsoid_packing_bound` is what its proof shows, `printed_ellipsoid_packing_bound`
what the paper prints.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import MetricError, ShapeError
from ellipack.theory.schedules import smallest_radius
from ellipack.theory.spectrum import (
    check_normalized_spectrum,
    check_spectrum,
    check_symmetric,
    effective_rank,
    kappa,
    truncated_determinant,
)
from ellipack.validation import Floats, check_integer, check_positive

LEMMA_2 = 8 * np.sqrt(2)
"""Factor of Lemma 2 for each long axis."""

_STEP = 0.125  # of the quadrature in ln t; its error is about exp(-pi**2 / step)
_TAIL = 40.0  # beyond the axes, in ln t: the integrands fall at least like exp(-tail)


def relative_spectrum(body: ArrayLike, norm: ArrayLike) -> Floats:
    """Return the eigenvalues of one norm relative to another, in descending order.

    They are the squared semi-axes of the unit ball of the first norm, in coordinates in which the second is Euclidean.

    Parameters
    ----------
    body : array-like of shape (d, d)
        Positive definite matrix A of the norm ``|x| = sqrt(x' A x)``, whose unit ball B is packed.
    norm : array-like of shape (d, d)
        Positive definite matrix A' of the norm ``|x|'`` in which distances are measured.

    Returns
    -------
    eigenvalues : array of shape (d,)
        Eigenvalues of ``A^-1 A'``.

    Examples
    --------
    >>> relative_spectrum([[4.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 9.0]]).tolist()
    [9.0, 0.25]
    """
    matrices = []
    for matrix, name in ((body, "body"), (norm, "norm")):
        matrices.append(check_symmetric(matrix, name))
        smallest = float(np.linalg.eigvalsh(matrices[-1])[0])
        if smallest <= 0:
            raise MetricError(f"{name} must be positive definite, got the eigenvalue {smallest:.6g}")
    if matrices[0].shape != matrices[1].shape:
        raise ShapeError(f"norm must have shape {matrices[0].shape}, got {matrices[1].shape}")
    # With A = L L', the eigenvalues of A^-1 A' are those of the symmetric matrix L^-1 A' L'^-1.
    root = np.linalg.cholesky(matrices[0])
    half = np.linalg.solve(root, matrices[1])
    return np.ascontiguousarray(np.linalg.eigvalsh(np.linalg.solve(root, half.T))[::-1])


def volumetric_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the bound of Lemma 1 on the size of a packing of the unit ball.

    It is the ratio of the volumes of ``B + (eps/2) B'`` and ``(eps/2) B'``. In coordinates in which B' is the Euclidean
    ball, B is an ellipsoid of semi-axes ``a_i = sqrt(lambda_i)``. By Steiner's formula, the volume of its sum with a
    ball of radius h is ``sum_k V_k kappa_(d-k) h**(d-k)``, where ``kappa_j`` is the volume of the unit ball of
    dimension j, and the intrinsic volumes of the ellipsoid [1]_ are, with ``s_k`` the elementary symmetric polynomials,

        ``V_k = kappa_k sum_i a_i**2 s_(k-1)(a_j**2 : j != i) int_0^inf t**(k-1) / (1 + a_i**2 t**2)
        / prod_j sqrt(1 + a_j**2 t**2) dt``.

    The integrals are computed to about 14 digits. For the identity, the bound is ``(1 + 2/eps)**d``.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order. For any pair of norms, see `relative_spectrum`.
    radius : float
        Distance ``eps`` that all pairs of points exceed in the metric.

    Returns
    -------
    bound : float

    References
    ----------
    .. [1] A. Gusakova, E. Spodarev and D. Zaporozhets. Intrinsic volumes of ellipsoids. 2022.

    Examples
    --------
    >>> round(volumetric_packing_bound([1.0, 1.0], 0.5), 6)
    25.0
    >>> round(volumetric_packing_bound(relative_spectrum([[4.0]], [[1.0]]), 0.5), 6)
    3.0
    """
    descending, half = check_spectrum(eigenvalues), check_positive(radius, "radius") / 2
    d = len(descending)
    k = np.arange(d + 1, dtype=np.float64)
    ratios: Floats = _log_ball_volume(k) + _log_ball_volume(k[::-1]) - _log_ball_volume(k)[-1]
    integrals = np.concatenate([[0.0], _log_intrinsic_integrals(np.log(descending))])
    return finite_exp(float(_log_sum(ratios + integrals - k * np.log(half), axis=0)))


def _log_ball_volume(dimension: Floats) -> Floats:
    """Return the logarithm of the volume of the unit ball."""
    factorials = np.array([math.lgamma(each / 2 + 1) for each in dimension])
    return np.asarray(dimension / 2 * np.log(np.pi) - factorials)


def _log_sum(logarithms: Floats, axis: int) -> Floats:
    """Return the logarithm of a sum of exponentials."""
    return np.asarray(np.logaddexp.reduce(logarithms, axis=axis))


def _log_intrinsic_integrals(log_squares: Floats) -> Floats:
    """Return ``ln(V_k / kappa_k)`` for k = 1 to d, from the logarithms of the squared semi-axes."""
    d = len(log_squares)
    log_t = np.arange(-log_squares[0] / 2 - _TAIL, -log_squares[-1] / 2 + _TAIL, _STEP)
    log_factors = np.logaddexp(0.0, log_squares[:, None] + 2 * log_t)  # ln(1 + a_j**2 t**2)
    log_roots = log_factors.sum(axis=0) / 2
    k = np.arange(1, d + 1)
    terms = np.empty((d, d))
    for i in range(d):
        # The integral over t, in ln t, by the trapezoidal rule: the integrand is analytic and falls at both ends.
        integrals = _log_sum(k[:, None] * log_t - log_factors[i] - log_roots, axis=1) + np.log(_STEP)
        terms[i] = log_squares[i] + _log_symmetric_polynomials(np.delete(log_squares, i)) + integrals
    return _log_sum(terms, axis=0)


def _log_symmetric_polynomials(logarithms: Floats) -> Floats:
    """Return the logarithms of the elementary symmetric polynomials of degree 0 to n of n positive numbers."""
    result = np.array([0.0])
    for each in logarithms:
        result = np.logaddexp(np.append(result, -np.inf), np.append(-np.inf, result + each))
    return result


def ellipsoid_packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the bound that the proof of Lemma 2 gives on the size of a packing of the unit ball.

    It is ``(8 sqrt(2) / eps)**s`` times the product of the s largest ``sqrt(lambda_i)``, where s counts the
    ``sqrt(lambda_i) >= eps / (2 sqrt(2))``.

    The printed lemma counts ``sqrt(lambda_i) >= eps`` (erratum 5): its proof bounds packings of radius ``2 sqrt(2)
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
    """Return the bound of Lemma 2 as printed, which `ellipsoid_packing_bound` corrects (erratum 5).

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
    return finite_exp(float(np.log(LEMMA_2 * long / radius).sum()))


def packing_bound(eigenvalues: ArrayLike, radius: float) -> float:
    """Return the smaller of Lemmas 1 and 2, rounded down: packings have whole numbers of points.

    Examples
    --------
    >>> packing_bound([1.0, 0.25], 1.0)
    6.0
    """
    bound = min(volumetric_packing_bound(eigenvalues, radius), ellipsoid_packing_bound(eigenvalues, radius))
    return float(np.floor(bound * (1 + 1e-12)))  # the margin is for rounding errors of the volume


def center_bound(eigenvalues: ArrayLike, rounds: int) -> float:
    """Return a bound on the number of centers of Algorithm 1: `packing_bound` at the smallest radius, or T.

    Examples
    --------
    >>> center_bound([1.0], rounds=100)
    21.0
    """
    last = check_integer(rounds, "rounds", 1)
    return min(packing_bound(eigenvalues, smallest_radius(eigenvalues, last)), float(last))


def determinant_center_bound(eigenvalues: ArrayLike, rounds: int) -> float:
    """Return the bound ``(8 sqrt(2))**d sqrt(det_kappa(M)) T**(rho_T/(1+rho_T))`` on the centers of Algorithm 1.

    It is that in the proof of Theorem 1, with d in place of ``rho_T`` in the exponent of the constant. It holds in
    spite of errata 5 and 6; the proof is in ``docs/paper.md``.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the metric in descending order; the largest is 1.
    rounds : int
        Number of rounds T.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(determinant_center_bound([1.0, 0.25], rounds=8), 6)
    256.0
    """
    descending, last = check_normalized_spectrum(eigenvalues), check_integer(rounds, "rounds", 1)
    rank = int(effective_rank(descending, last))
    determinant = truncated_determinant(descending, int(kappa(descending, rank, last)))
    logarithm = len(descending) * np.log(LEMMA_2) + 0.5 * np.log(determinant) + rank / (1 + rank) * np.log(last)
    return finite_exp(float(logarithm))


def finite_exp(logarithm: float) -> float:
    """Return an exponential, infinite beyond the largest float.

    Examples
    --------
    >>> finite_exp(0.0), finite_exp(1e3)
    (1.0, inf)
    """
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))
