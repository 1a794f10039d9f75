"""Many features: the subspace in which a phase measures distances.

Searches, local models and leave-one-out scores cost as much as there are coordinates. With up to `MAX_COORDINATES`
features the subspace is everything. With more it is spanned by

1. the features along which the slopes of the phase were largest on average,
2. the leading eigenvectors of the gradient outer product,
3. the principal directions of what these leave of the rows.

So there is a bound on what is cut off: the mean squared slope along any direction outside the subspace is at most the
first eigenvalue of the gradient outer product whose eigenvector is not in it, and no feature outside has a larger mean
squared slope than one inside. The global regressions see all features.
"""

import numpy as np
from sklearn.utils.extmath import randomized_svd

from ellipack.validation import Floats

MAX_COORDINATES = 40
"""The largest number of coordinates that a phase starts with."""

N_AXES, N_EIGENVECTORS = 20, 10
"""How many features, and how many eigenvectors of the gradient outer product, the subspace contains."""

_SAMPLE = 256  # rows whose principal directions are taken
_POWER_ITERATIONS = 2
_LEAST_PART = 1e-5  # of the largest singular value, or of a column of length 1: less is rounding, or might as well be


def leading_subspace(gop: Floats, standard: Floats) -> Floats:
    """Return an orthonormal basis of the subspace, a column each.

    Parameters
    ----------
    gop : array of shape (n_features, n_features)
        Sum of the outer products of slopes. If it is not finite, or 0, the rows alone decide.
    standard : array of shape (n_rows, n_features)
        Rows in standard units.

    Returns
    -------
    array of shape (n_features, rank)
        The identity for at most `MAX_COORDINATES` features; else `rank` is at most `MAX_COORDINATES`.

    Examples
    --------
    >>> leading_subspace(np.diag([1.0, 2.0]), np.zeros((3, 2))).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> slopes = np.arange(100.0)
    >>> basis = leading_subspace(np.outer(slopes, slopes), np.random.default_rng(0).normal(size=(300, 100)))
    >>> basis.shape
    (100, 40)
    >>> bool(np.allclose(basis @ basis.T @ slopes, slopes))
    True
    """
    d = len(gop)
    if d <= MAX_COORDINATES:
        return np.eye(d)
    basis = np.zeros((d, 0))
    if np.isfinite(gop).all() and gop.any():
        axes = np.argsort(-np.diag(gop), kind="stable")[:N_AXES]
        basis = _orthonormal(np.hstack([np.eye(d)[:, axes], _leading_vectors(gop, N_EIGENVECTORS)]))
    sample = standard[:: -(-len(standard) // _SAMPLE)]
    sample = sample - sample.mean(axis=0)
    sample -= (sample @ basis) @ basis.T
    principal = _leading_vectors(sample, MAX_COORDINATES - basis.shape[1])
    columns = np.hstack([basis, principal])
    return _orthonormal(columns) if columns.shape[1] else initial_subspace(d)


def initial_subspace(d: int) -> Floats:
    """Return an orthonormal basis for the first phase: everything, or a random subspace if there are many features."""
    if d <= MAX_COORDINATES:
        return np.eye(d)
    return np.linalg.qr(np.random.default_rng(0).normal(size=(d, MAX_COORDINATES)))[0]


def _leading_vectors(matrix: Floats, count: int) -> Floats:
    """Return at most so many leading right singular vectors, a column each, without the least ones."""
    count = min(count, *matrix.shape)
    _, values, vectors = randomized_svd(
        matrix, count, n_iter=_POWER_ITERATIONS, power_iteration_normalizer="QR", random_state=0
    )
    return np.asarray(vectors[values > _LEAST_PART * values[0]].T)


def _orthonormal(columns: Floats) -> Floats:
    """Return an orthonormal basis of the span of columns of length 1, without columns that add little."""
    vectors, triangle = np.linalg.qr(columns)
    return np.ascontiguousarray(vectors[:, np.abs(np.diag(triangle)) > _LEAST_PART])
