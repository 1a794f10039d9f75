"""Mahalanobis metrics, stored as eigenvalues and eigenvectors."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import project
from ellipack.errors import MetricError, ModelFileError, ShapeError
from ellipack.linear_algebra import single_threaded_blas
from ellipack.serialization import Archive
from ellipack.validation import (
    Floats,
    as_floats,
    check_feature_count,
    check_finite,
    check_in_range,
    check_integer,
    check_positive,
    check_rows,
)

_LEARNER = "a learner with a metric"  # for messages
_TOLERANCE = 1e-9  # relative to the largest entry: above the rounding errors of a product of matrices

UNSEEN_EIGENVALUE = float(np.finfo(np.float64).tiny)
"""Eigenvalue of a feature that has been constant so far: the smallest whose square root is a safe divisor."""


@dataclass(frozen=True, eq=False)
class Metric:
    """Mahalanobis metric ``|x - z|_M`` of a positive definite matrix M of spectral norm 1.

    Use `from_matrix`, `from_gop`, `from_diagonal` or `identity` instead of the constructor.

    Parameters
    ----------
    eigenvalues : array of shape (rank,)
        Eigenvalues in descending order; the largest is 1.
    eigenvectors : array of shape (d, rank)
        Eigenvectors, one per column. The rank is d, except for the metrics that `MetricRegressor` learns from many
        features: these measure along their leading directions only, and M is positive semidefinite.
    norm : float
        Spectral norm of the matrix before the division by it.

    Attributes
    ----------
    directions : array of shape (d, rank)
        Columns ``sqrt(lambda_i) u_i``, on which whitening projects.

    Examples
    --------
    >>> metric = Metric.from_matrix([[2.0, 0.0], [0.0, 8.0]])
    >>> metric.matrix.tolist(), metric.norm
    ([[0.25, 0.0], [0.0, 1.0]], 8.0)
    """

    eigenvalues: Floats
    eigenvectors: Floats
    norm: float
    directions: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        directions = np.ascontiguousarray(self.eigenvectors * np.sqrt(self.eigenvalues))
        object.__setattr__(self, "directions", directions)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> "Metric":
        """Return the metric of a positive definite matrix, divided by its spectral norm.

        Parameters
        ----------
        matrix : array-like of shape (d, d)
            Symmetric positive definite matrix.

        Returns
        -------
        metric : Metric

        Raises
        ------
        MetricError
            If the matrix is not symmetric or not positive definite.

        Examples
        --------
        >>> Metric.from_matrix([[2.0, 0.0], [0.0, 8.0]]).eigenvalues.tolist()
        [1.0, 0.25]
        >>> Metric.from_matrix([[1.0, 2.0], [2.0, 1.0]])
        Traceback (most recent call last):
            ...
        ellipack.errors.MetricError: matrix must be positive definite, got the eigenvalue -1 (the largest is 3)
        """
        values, vectors = eigensystem(_check_symmetric(matrix, "matrix"))
        smallest, largest = values[-1], values[0]
        # A smaller eigenvalue could be the rounding error of a 0.
        if smallest <= len(values) * np.finfo(np.float64).eps * abs(largest):
            got = f"the eigenvalue {smallest:.6g} (the largest is {largest:.6g})"
            raise MetricError(f"matrix must be positive definite, got {got}")
        return cls(values / largest, vectors, float(largest))

    @classmethod
    def from_gop(cls, gop: ArrayLike, regularization: float) -> "Metric":
        """Return the metric ``G-hat + gamma I`` divided by its spectral norm (section 4 of the paper).

        The ridge gamma is added to the eigenvalues, where rounding cannot lose it. The metric is therefore positive
        definite for any ridge above 0.

        Parameters
        ----------
        gop : array-like of shape (d, d)
            Gradient outer product, positive semidefinite.
        regularization : float
            Ridge gamma, above 0.

        Returns
        -------
        metric : Metric

        Examples
        --------
        >>> Metric.from_gop([[3.0, 0.0], [0.0, 0.0]], regularization=1.0).eigenvalues.tolist()
        [1.0, 0.25]
        """
        values, vectors = eigensystem(_check_symmetric(gop, "gop"))
        if values[-1] < -_TOLERANCE * abs(values[0]) - UNSEEN_EIGENVALUE:  # tiny numbers are rounding errors
            raise MetricError(f"gop must be positive semidefinite, got the eigenvalue {values[-1]:.6g}")
        regularized = np.maximum(values, 0) + check_positive(regularization, "regularization")
        # Keeps the square roots safe to divide by.
        scaled = np.maximum(regularized / regularized[0], np.finfo(np.float64).tiny)
        return cls(scaled, vectors, float(regularized[0]))

    @classmethod
    def from_diagonal(cls, diagonal: ArrayLike) -> "Metric":
        """Return the metric of a diagonal matrix, divided by its largest entry.

        Parameters
        ----------
        diagonal : array-like of shape (d,)
            Weights of the coordinates, above 0.

        Returns
        -------
        metric : Metric

        Examples
        --------
        >>> Metric.from_diagonal([1.0, 4.0]).eigenvectors.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        weights = as_floats(diagonal, "diagonal")
        if weights.ndim != 1 or len(weights) == 0:
            raise ShapeError(f"diagonal must be one-dimensional and not empty, got shape {weights.shape}")
        check_feature_count(len(weights), _LEARNER)
        check_finite(weights, "diagonal")
        if weights.min() <= 0:
            raise MetricError(f"diagonal must be > 0, got {weights.min():.6g} at {int(weights.argmin())}")
        order = np.argsort(-weights, kind="stable")
        scaled = weights[order] / weights.max()
        if scaled[-1] == 0:
            raise MetricError(f"diagonal must span less than 1e308, got {weights.min():.6g} and {weights.max():.6g}")
        return cls(scaled, np.ascontiguousarray(np.eye(len(weights))[:, order]), float(weights.max()))

    @classmethod
    def identity(cls, d: int) -> "Metric":
        """Return the Euclidean metric in d dimensions.

        Examples
        --------
        >>> Metric.identity(2).matrix.tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        check_feature_count(check_integer(d, "d", 1), _LEARNER)
        return cls.from_diagonal(np.ones(d))

    @classmethod
    def from_archive(cls, archive: Archive, d: int, rank: int | None = None) -> "Metric":
        """Return the metric in d dimensions from its archive.

        Parameters
        ----------
        archive : Archive
            Result of `to_archive`.
        d : int
            Number of dimensions.
        rank : int, optional
            Number of eigenvectors; d by default.

        Returns
        -------
        metric : Metric

        Raises
        ------
        ModelFileError
            If the archive does not hold a metric of this rank in d dimensions.
        """
        rank = d if rank is None else rank
        eigenvalues = archive.floats_above(0.0, "eigenvalues", rank)
        if rank == 0 or eigenvalues[0] != 1 or (eigenvalues[1:] > eigenvalues[:-1]).any():
            raise ModelFileError(f"{archive.prefix}eigenvalues must be in descending order, the first 1")
        eigenvectors = archive.floats_between(-2.0, 2.0, "eigenvectors", d, rank)  # keeps squares finite
        if not np.abs((eigenvectors**2).sum(axis=0) - 1).max() <= _TOLERANCE:
            raise ModelFileError(f"{archive.prefix}eigenvectors must have length 1")
        return cls(eigenvalues, eigenvectors, archive.number("norm"))

    def to_archive(self) -> Archive:
        """Return an archive of the metric."""
        arrays = {"eigenvalues": self.eigenvalues, "eigenvectors": self.eigenvectors}
        return Archive({"norm": self.norm}, arrays)

    @property
    def dimension(self) -> int:
        """Number of features."""
        return len(self.eigenvectors)

    @property
    def rank(self) -> int:
        """Number of directions along which the metric measures."""
        return len(self.eigenvalues)

    @property
    def matrix(self) -> Floats:
        """The matrix M, of spectral norm 1."""
        return np.asarray((self.eigenvectors * self.eigenvalues) @ self.eigenvectors.T)

    @property
    def feature_weights(self) -> Floats:
        """Diagonal of M, one entry per feature."""
        return np.asarray((self.eigenvectors**2) @ self.eigenvalues)

    def with_added_features(self, count: int, weight: float = 1.0) -> "Metric":
        """Return the metric with features added as last ones.

        Each new feature is an eigenvector. Distances between points that are 0 in the new features stay the same.

        Parameters
        ----------
        count : int
            Number of new features.
        weight : float, default 1.0
            Eigenvalue of the new features, at most 1.

        Returns
        -------
        metric : Metric

        Examples
        --------
        >>> Metric.from_diagonal([4.0, 1.0]).with_added_features(1).eigenvalues.tolist()
        [1.0, 1.0, 0.25]
        """
        d, rank, more = self.dimension, self.rank, check_integer(count, "count", 1)
        check_feature_count(d + more, _LEARNER)
        vectors = np.zeros((d + more, rank + more))
        vectors[:d, :rank] = self.eigenvectors
        vectors[d:, rank:] = np.eye(more)
        values = np.append(self.eigenvalues, np.full(more, check_in_range(weight, "weight", UNSEEN_EIGENVALUE, 1.0)))
        order = np.argsort(-values, kind="stable")
        return Metric(values[order], np.ascontiguousarray(vectors[:, order]), self.norm)

    def whiten(self, X: ArrayLike) -> Floats:
        """Return the coordinates ``sqrt(lambda_i) u_i . x``, in which this metric is Euclidean.

        The coordinates of a row do not depend on other rows, to the last bit.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Points.

        Returns
        -------
        coordinates : array of shape (n, d)
            Coordinates in descending order of eigenvalues.

        Examples
        --------
        >>> Metric.from_diagonal([0.25, 1.0]).whiten([[2.0, 3.0]]).tolist()
        [[3.0, 1.0]]
        """
        return project(check_rows(X, self.dimension), self.directions)

    def pull_back(self, slopes: ArrayLike) -> Floats:
        """Convert gradients with respect to whitened coordinates to gradients with respect to features.

        Parameters
        ----------
        slopes : array-like of shape (n, d)
            Gradients with respect to whitened coordinates, one per row.

        Returns
        -------
        gradients : array of shape (n, d)

        Examples
        --------
        >>> Metric.from_diagonal([1.0, 0.25]).pull_back([[1.0, 1.0]]).tolist()
        [[1.0, 0.5]]
        """
        return project(check_rows(slopes, self.rank, "slopes"), np.ascontiguousarray(self.directions.T))

    def distance(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Return the distance ``|x - z|_M`` between each row of `X` and the same row of `Z`.

        Parameters
        ----------
        X, Z : array-like of shape (n, d)
            Points.

        Returns
        -------
        distances : array of shape (n,)

        Examples
        --------
        >>> Metric.from_diagonal([1.0, 0.25]).distance([[0.0, 0.0]], [[3.0, 8.0]]).tolist()
        [5.0]
        """
        left, right = check_rows(X, self.dimension), check_rows(Z, self.dimension, "Z")
        if left.shape != right.shape:
            raise ShapeError(f"X and Z must have the same number of rows, got {len(left)} and {len(right)}")
        return np.asarray(np.sqrt((self.whiten(left - right) ** 2).sum(axis=1)))


def _check_symmetric(matrix: ArrayLike, name: str) -> Floats:
    """Return a finite symmetric matrix; rounding errors are averaged out."""
    array = as_floats(matrix, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise ShapeError(f"{name} must be square and not empty, got shape {array.shape}")
    check_feature_count(len(array), _LEARNER)
    check_finite(array, name)
    asymmetry, size = np.abs(array - array.T), np.abs(array).max()
    if asymmetry.max() > _TOLERANCE * size:
        i, j = np.unravel_index(int(asymmetry.argmax()), array.shape)
        raise MetricError(f"{name} must be symmetric, got {array[i, j]:.6g} at [{i}, {j}], {array[j, i]:.6g} across")
    # Halves first, to keep the sum of two entries near the largest float finite.
    return np.asarray(array / 2 + array.T / 2)


def eigensystem(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues in descending order, and eigenvectors whose largest entry in size is positive.

    Examples
    --------
    >>> eigensystem(np.diag([1.0, 2.0]))[0].tolist()
    [2.0, 1.0]
    """
    with single_threaded_blas():  # the last bits depend on the number of threads
        ascending, columns = np.linalg.eigh(matrix)
    vectors = columns[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(matrix))])
    return ascending[::-1].copy(), np.ascontiguousarray(vectors * signs)
