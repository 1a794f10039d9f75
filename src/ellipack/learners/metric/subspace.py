"""The subspace in which a phase measures distances, if there are many features.

The costs of searches, local models and leave-one-out scores are proportional to the number of coordinates. With at most
`MANY_FEATURES` features the subspace is the whole space. With more features it is spanned by

1. the features with the largest mean squared slopes in the phase,
2. the leading eigenvectors of the gradient outer product,
3. the principal components of the rows, after projection on the orthogonal complement of 1 and 2.

This bounds the loss. The mean squared slope along a direction orthogonal to the subspace is at most the largest
eigenvalue of the gradient outer product whose eigenvector is not included. The bound holds for exact eigenvectors; the
randomized decomposition used here, of a sample of the slopes if they were kept, comes close. No excluded feature has a
larger mean squared slope than an included one. The global regressions use all features.
"""

import numpy as np
from sklearn.utils.extmath import randomized_svd

from ellipack.linear_algebra import single_threaded_blas
from ellipack.validation import Floats

MANY_FEATURES = 40
"""Up to this number of features, all coordinates are kept."""

MAX_COORDINATES = 28
"""Largest number of coordinates at the start of a phase with more than `MANY_FEATURES` features."""

N_AXES, N_EIGENVECTORS = 14, 7
"""Number of features, and of eigenvectors of the gradient outer product, in the subspace."""

_SAMPLE = 256  # rows for the principal components, and slopes for the eigenvectors
_POWER_ITERATIONS = 1
_OVERSAMPLES = 10  # vectors of the randomized decomposition beyond those that are wanted; the default of scikit-learn
_MIN_SINGULAR_VALUE = 1e-5  # relative to the largest; smaller ones are rounding errors or negligible


def leading_subspace(gop: Floats, standard: Floats) -> Floats:
    """Return an orthonormal basis of the subspace.

    Parameters
    ----------
    gop : array of shape (n_features, n_features) or (n_slopes, n_features)
        Sum of outer products of slopes, or fewer slopes than features, one per row. If there are none, or if they are 0
        or not finite, only the rows are used.
    standard : array of shape (n_rows, n_features)
        Standardized rows.

    Returns
    -------
    basis : array of shape (n_features, rank)
        Basis vectors as columns. The identity for at most `MANY_FEATURES` features; else `rank` is at most
        `MAX_COORDINATES`.

    Examples
    --------
    >>> leading_subspace(np.diag([1.0, 2.0]), np.zeros((3, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> slopes = np.arange(100.0)
    >>> basis = leading_subspace(np.outer(slopes, slopes), np.random.default_rng(0).normal(size=(300, 100)))
    >>> basis.shape
    (100, 28)
    >>> bool(np.allclose(basis @ basis.T @ slopes, slopes))
    True
    """
    d = standard.shape[1]
    if d <= MANY_FEATURES:
        return np.eye(d)
    basis = np.zeros((d, 0))
    squares = squared_slopes(gop)
    # Slopes whose squares have a finite sum are finite.
    if squares.any() and np.isfinite(squares if has_slopes(gop) else gop).all():
        axes = np.argsort(-squares, kind="stable")[:N_AXES]
        units = np.zeros((d, len(axes)))
        units[axes, np.arange(len(axes))] = 1
        basis = _orthonormal(np.hstack([units, _leading_eigenvectors(gop, N_EIGENVECTORS)]))
    sample = standard[sampled_rows(len(standard))]
    sample = sample - sample.mean(axis=0)
    sample -= (sample @ basis) @ basis.T
    principal = _leading_vectors(sample, MAX_COORDINATES - basis.shape[1])
    columns = np.hstack([basis, principal])
    return _orthonormal(columns) if columns.shape[1] else initial_subspace(d)


def has_slopes(gop: Floats) -> bool:
    """Return whether an array has slopes, one per row, and not the sum of their outer products."""
    return bool(len(gop) < gop.shape[1])


def squared_slopes(gop: Floats) -> Floats:
    """Return the sum of the squared slopes along each feature; see `leading_subspace`."""
    with np.errstate(over="ignore"):  # if it is not finite, it is not used
        return np.asarray(np.einsum("ij,ij->j", gop, gop) if has_slopes(gop) else np.diag(gop))


def sampled_rows(count: int) -> slice:
    """Return which of the rows, and of the slopes, `leading_subspace` uses, evenly spaced.

    Others of the rows need not be given.
    """
    return slice(None, None, -(-count // _SAMPLE))


def initial_subspace(d: int) -> Floats:
    """Return an orthonormal basis for the first phase: the identity, or a random one if there are many features.

    It also serves in later phases as long as rows do not vary.
    """
    if d <= MANY_FEATURES:
        return np.eye(d)
    directions = np.random.default_rng(0).normal(size=(d, MAX_COORDINATES))
    with single_threaded_blas():  # threads that wait for each other would take most of the time
        return np.linalg.qr(directions)[0]


def _leading_eigenvectors(gop: Floats, count: int) -> Floats:
    """Return at most `count` leading eigenvectors as columns, without those of tiny eigenvalues.

    This is `randomized_svd` of the sum of outer products. If slopes are given instead, it is not computed: a product
    with it is two products with the slopes, of which a sample is enough.
    """
    if not has_slopes(gop):
        return _leading_vectors(gop, count)
    slopes = gop[sampled_rows(len(gop))]
    vectors = np.random.RandomState(0).normal(size=(gop.shape[1], count + _OVERSAMPLES))
    for _ in range(2 * _POWER_ITERATIONS + 1):
        vectors, _ = np.linalg.qr(slopes.T @ (slopes @ vectors))
    _, values, rotated = np.linalg.svd((vectors.T @ slopes.T) @ slopes, full_matrices=False)
    return np.asarray(rotated[:count][values[:count] > _MIN_SINGULAR_VALUE * values[0]].T)


def _leading_vectors(matrix: Floats, count: int) -> Floats:
    """Return at most `count` leading right singular vectors as columns, without those of tiny singular values."""
    count = min(count, *matrix.shape)
    _, values, vectors = randomized_svd(
        matrix, count, n_iter=_POWER_ITERATIONS, power_iteration_normalizer="QR", random_state=0
    )
    return np.asarray(vectors[values > _MIN_SINGULAR_VALUE * values[0]].T)


def _orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis of the span of unit vectors, without those that are nearly dependent."""
    vectors, triangle = np.linalg.qr(columns)
    return np.ascontiguousarray(vectors[:, np.abs(np.diag(triangle)) > _MIN_SINGULAR_VALUE])
