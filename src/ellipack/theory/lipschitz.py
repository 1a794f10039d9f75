"""Lipschitz constants in a metric, from derivatives along directions (Lemma 3)."""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import ShapeError
from ellipack.theory.spectrum import check_spectrum
from ellipack.validation import Floats, as_floats, check_finite, check_rows


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
    slopes = check_vector(directional, len(descending), "directional")
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


def subspace_lipschitz(gradients: ArrayLike, directions: ArrayLike) -> float:
    """Return ``|grad_V f|``, the largest derivative along a direction in the span of orthonormal `directions`.

    Parameters
    ----------
    gradients : array-like of shape (n, d)
        Gradients, one per row.
    directions : array-like of shape (d, k)
        Orthonormal directions, one per column. Without any, the result is 0.

    Returns
    -------
    largest : float

    Examples
    --------
    >>> subspace_lipschitz([[3.0, 4.0, 12.0]], np.eye(3)[:, :2])
    5.0
    """
    slopes, basis = check_rows(gradients, name="gradients"), as_floats(directions, "directions")
    if basis.ndim != 2 or len(basis) != slopes.shape[1]:
        raise ShapeError(f"directions must have {slopes.shape[1]} rows, one per column of gradients, got {basis.shape}")
    return float(np.sqrt(((slopes @ check_finite(basis, "directions")) ** 2).sum(axis=1)).max())


def check_vector(values: ArrayLike, count: int, name: str) -> Floats:
    """Return `count` finite numbers."""
    array = check_finite(as_floats(values, name), name)
    if array.shape != (count,):
        raise ShapeError(f"{name} must have shape ({count},), got {array.shape}")
    return array
