"""Errors of an estimated gradient outer product, and what they do to its eigenvalues, eigenvectors and ranks.

These are the steps of the proof of Theorem 2. Where the paper drops terms of higher order, the bounds here do not.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, MetricError, ShapeError
from ellipack.theory.lipschitz import directional_lipschitz, subspace_lipschitz
from ellipack.theory.spectrum import (
    check_rounds,
    check_semidefinite_spectrum,
    check_symmetric,
    eigenvalue_gaps,
    separated,
)
from ellipack.validation import Floats, check_integer, check_nonnegative, check_positive, check_rows

_ORTHONORMAL = 1e-8  # tolerance for rounding errors of an eigenbasis


def outer_product_error(estimate: ArrayLike, truth: ArrayLike) -> float:
    """Return ``|G-hat_n - G|`` in spectral norm, the error that the paper bounds by ``gamma_n`` (Lemma 4).

    Theorem 2 assumes that the regularization is at least this error; see `regularization`.

    Parameters
    ----------
    estimate, truth : array-like of shape (d, d)
        Estimated and expected gradient outer product.

    Returns
    -------
    error : float

    Examples
    --------
    >>> outer_product_error([[1.0, 0.0], [0.0, 0.5]], [[1.25, 0.0], [0.0, 0.0]])
    0.5
    """
    made, true = check_symmetric(estimate, "estimate"), check_symmetric(truth, "truth")
    return float(np.abs(np.linalg.eigvalsh(made - _of_shape(true, made.shape))).max())


def eigenvalue_errors(estimate: ArrayLike, truth: ArrayLike) -> Floats:
    """Return ``|mu-hat_j - mu_j|`` for each j; none exceeds `outer_product_error` (eq. eigenvalue_concentration).

    The inequality is Weyl's.

    Examples
    --------
    >>> eigenvalue_errors([[1.0, 0.0], [0.0, 0.5]], [[1.25, 0.0], [0.0, 0.0]]).tolist()
    [0.25, 0.5]
    """
    made, true = check_symmetric(estimate, "estimate"), check_symmetric(truth, "truth")
    return np.abs(np.linalg.eigvalsh(made) - np.linalg.eigvalsh(_of_shape(true, made.shape)))[::-1]


def first_order_rotation(eigenvalues: ArrayLike, directions: ArrayLike, perturbation: ArrayLike, j: int) -> Floats:
    """Return the first-order change of the j-th eigenvector, in the eigenbasis (eq. eigenvector_perturbation).

    Its k-th coordinate is ``u_k' E u_j / (mu_j - mu_k)``. The rest is ``O(|E|**2)``; the paper has o (erratum 16).

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues in descending order. The j-th must be simple.
    directions : array-like of shape (d, d)
        Eigenvectors, one per column.
    perturbation : array-like of shape (d, d)
        Symmetric matrix E that is added.
    j : int
        Position of the eigenvector, from 0.

    Returns
    -------
    coordinates : array of shape (d,)

    Examples
    --------
    >>> first_order_rotation([2.0, 1.0], np.eye(2), [[0.0, 0.1], [0.1, 0.0]], j=0).tolist()
    [0.0, 0.1]
    """
    mu = check_semidefinite_spectrum(eigenvalues)
    basis, change = _check_basis(directions, len(mu)), check_symmetric(perturbation, "perturbation")
    position = check_integer(j, "j", 0, len(mu) - 1)
    others = np.arange(len(mu)) != position
    if np.any(mu[others] == mu[position]):
        raise DomainError(f"eigenvalue {position} must differ from the others, got {mu}")
    along = basis.T @ _of_shape(change, basis.shape) @ basis[:, position]
    coordinates = np.zeros(len(mu))
    coordinates[others] = along[others] / (mu[position] - mu[others])
    return coordinates


def rotation_sines(estimated: ArrayLike, directions: ArrayLike) -> Floats:
    """Return the sine of the angle between each estimated eigenvector and the true one.

    Parameters
    ----------
    estimated, directions : array-like of shape (d, d)
        Estimated and true eigenvectors, one per column.

    Returns
    -------
    sines : array of shape (d,)

    Examples
    --------
    >>> rotation_sines([[0.6, -0.8], [0.8, 0.6]], np.eye(2)).round(6).tolist()
    [0.8, 0.8]
    """
    made = check_rows(estimated, name="estimated")
    coordinates = _check_basis(directions, len(made)).T @ _check_basis(made, len(made), "estimated")
    np.fill_diagonal(coordinates, 0.0)
    return np.asarray(np.minimum(np.sqrt((coordinates**2).sum(axis=0)), 1.0))


def rotation_bound(eigenvalues: ArrayLike, error: float) -> Floats:
    """Return ``min(1, 2 gamma / Delta_j)``, a bound on `rotation_sines` without terms of higher order.

    Let v be the estimated j-th eigenvector. ``(G - mu_j) v = (mu-hat_j - mu_j) v - (G-hat - G) v`` has norm at most
    ``2 gamma``, by Weyl's inequality. Its coordinates are ``(mu_k - mu_j) u_k'v``. So ``2 gamma`` is at least
    ``Delta_j`` times the norm of the coordinates of v other than the j-th.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the expected gradient outer product in descending order.
    error : float
        The error ``gamma``; see `outer_product_error`.

    Returns
    -------
    bound : array of shape (d,)

    Examples
    --------
    >>> rotation_bound([1.0, 0.5, 0.5], error=0.125).tolist()
    [0.5, 1.0, 1.0]
    """
    gaps, gamma = eigenvalue_gaps(eigenvalues), check_nonnegative(error, "error")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gamma == 0, 0.0, np.minimum(1.0, 2 * gamma / gaps))


def rotated_lipschitz(
    eigenvalues: ArrayLike, error: float, *, delta: float, directions: ArrayLike, gradients: ArrayLike
) -> Floats:
    """Return bounds on the derivatives along estimated eigenvectors (eq. convergence_on_directional_lipschitz).

    With ``s = min(1, 2 gamma / Delta)``, an estimated eigenvector has coordinates of norm at most s along the other
    vectors of ``V_Delta``. So the derivative along it is at most ``|grad_(u_j) f| + s (|grad_V f| + |grad_W f|)`` for
    ``u_j`` in ``V = V_Delta``, and ``s |grad_V f| + |grad_W f|`` for ``u_j`` in the rest W. The printed bound,
    ``|grad_(u_j) f| + sqrt(d) (2 gamma / Delta |grad_V f| + 2 |grad_W f|)``, is larger, so that it holds without the
    terms of order ``gamma**2`` that it has.

    Parameters
    ----------
    eigenvalues : array-like of shape (d,)
        Eigenvalues of the expected gradient outer product in descending order.
    error : float
        The error ``gamma`` of the estimate; see `outer_product_error`.
    delta : float
        Eigenvectors whose eigenvalues are closer than this count as not identifiable.
    directions : array-like of shape (d, d)
        Eigenvectors of the expected gradient outer product, one per column.
    gradients : array-like of shape (n, d)
        Sample of true gradients, one per row, for the suprema.

    Returns
    -------
    directional : array of shape (d,)

    Examples
    --------
    >>> gradients = [[1.0, 0.0], [0.5, 0.5]]
    >>> rotated_lipschitz([1.0, 0.5], 0.05, delta=0.5, directions=np.eye(2), gradients=gradients).tolist()
    [1.0, 0.7]
    """
    mu, gamma = check_semidefinite_spectrum(eigenvalues), check_nonnegative(error, "error")
    basis, known = _check_basis(directions, len(mu)), separated(mu, check_positive(delta, "delta"))
    sup_known, sup_unknown = (subspace_lipschitz(gradients, basis[:, each]) for each in (known, ~known))
    sine = min(1.0, 2 * gamma / delta)
    of_known = directional_lipschitz(gradients, basis) + sine * (sup_known + sup_unknown)
    bounds = np.where(known, of_known, sine * sup_known + sup_unknown)
    return np.asarray(np.minimum(bounds, subspace_lipschitz(gradients, basis)))


def scaled_eigenvalue(t: ArrayLike, eigenvalue: float, *, start: int, alpha: float, rank: int) -> Floats:
    """Return ``F(t) = (mu + 2 (T_0 + t)**-alpha) t**(2/(1+r))`` of Lemma l:diff.

    Parameters
    ----------
    t : array-like
        Rounds of a phase, at least 1.
    eigenvalue : float
        Eigenvalue ``mu``.
    start : int
        Round ``T_0`` before the phase.
    alpha : float
        Exponent of the regularization.
    rank : int
        Rank r; the lemma has d.

    Returns
    -------
    values : array of the shape of `t`

    Examples
    --------
    >>> scaled_eigenvalue([1.0, 4.0], 0.5, start=12, alpha=0.5, rank=3).tolist()
    [1.0547001962252291, 2.0]
    """
    times, mu, power = check_rounds(t), check_nonnegative(eigenvalue, "eigenvalue"), _power(rank)
    ridge = (check_integer(start, "start", 0) + times) ** -check_positive(alpha, "alpha")
    return np.asarray((mu + 2 * ridge) * times**power)


def scaled_eigenvalue_slope(t: ArrayLike, eigenvalue: float, *, start: int, alpha: float, rank: int) -> Floats:
    """Return the derivative of `scaled_eigenvalue`.

    Lemma l:diff: it is positive for all ``t >= 1`` if ``T_0 >= ((d+1)/(2 mu))**(1/alpha)``, which is `burn_in`.
    """
    times, mu, power = check_rounds(t), check_nonnegative(eigenvalue, "eigenvalue"), _power(rank)
    since = check_integer(start, "start", 0) + times
    ridge = since ** -check_positive(alpha, "alpha")
    return np.asarray((power * (mu + 2 * ridge) / times - 2 * alpha * ridge / since) * times**power)


def _power(rank: int) -> float:
    """Return ``2 / (1 + r)``."""
    return 2 / (1 + check_integer(rank, "rank", 1))


def _of_shape(matrix: Floats, shape: tuple[int, ...]) -> Floats:
    """Return a matrix of a given shape."""
    if matrix.shape != shape:
        raise ShapeError(f"matrices must have the same shape, got {shape} and {matrix.shape}")
    return matrix


def _check_basis(directions: ArrayLike, d: int, name: str = "directions") -> Floats:
    """Return an orthonormal basis of d columns."""
    basis = check_rows(directions, d, name)
    if len(basis) != d:
        raise ShapeError(f"{name} must have {d} rows, got {len(basis)}")
    if np.abs(basis.T @ basis - np.eye(d)).max() > _ORTHONORMAL:
        raise MetricError(f"{name} must be orthonormal columns")
    return basis
