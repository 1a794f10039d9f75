"""Mahalanobis metrics, kept as a spectrum so that whitening is one product."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import project
from ellipack.errors import CheckpointError, MetricError, ShapeError
from ellipack.serialization import Archive
from ellipack.validation import (
    Floats,
    as_floats,
    check_finite,
    check_in_range,
    check_integer,
    check_positive,
    check_rows,
)

_ASYMMETRY = 1e-9  # relative to the largest entry: more than rounding in a product of matrices, less than a mistake

UNSEEN = float(np.finfo(np.float64).tiny)
"""The eigenvalue of a feature that no row has been seen to differ in: the least whose root is good for dividing."""


@dataclass(frozen=True, eq=False)
class Metric:
    """A positive definite matrix M of spectral norm 1, the paper's ``|x - z|_M``.

    Make one by `from_matrix`, `from_gop`, `from_diagonal` or `identity`.

    Attributes
    ----------
    eigenvalues : in falling order, the largest 1.
    eigenvectors : a column each, the entry largest in size positive.
    norm : the spectral norm that the matrix had before it was divided by it.
    """

    eigenvalues: Floats
    eigenvectors: Floats
    norm: float

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> "Metric":
        """Return the metric of a symmetric positive definite matrix, divided by its spectral norm.

        >>> Metric.from_matrix([[2.0, 0.0], [0.0, 8.0]]).eigenvalues.tolist()
        [1.0, 0.25]
        >>> Metric.from_matrix([[1.0, 2.0], [2.0, 1.0]])
        Traceback (most recent call last):
            ...
        ellipack.errors.MetricError: matrix must be positive definite, got the eigenvalue -1 beside the largest, 3
        """
        values, vectors = eigensystem(_symmetric(matrix, "matrix"))
        smallest, largest = values[-1], values[0]
        # Below this an eigenvalue can't be told from 0 in the arithmetic that found it.
        if smallest <= len(values) * np.finfo(np.float64).eps * abs(largest):
            got = f"the eigenvalue {smallest:.6g} beside the largest, {largest:.6g}"
            raise MetricError(f"matrix must be positive definite, got {got}")
        return cls(values / largest, vectors, float(largest))

    @classmethod
    def from_gop(cls, gop: ArrayLike, regularization: float) -> "Metric":
        """Return section 4's metric ``G-hat + gamma I`` over its spectral norm.

        The ridge is added to the spectrum, not to the matrix, so that it is not lost in rounding beside a large
        eigenvalue: the metric is positive definite for any ridge above 0.

        >>> Metric.from_gop([[3.0, 0.0], [0.0, 0.0]], regularization=1.0).eigenvalues.tolist()
        [1.0, 0.25]
        """
        values, vectors = eigensystem(_symmetric(gop, "gop"))
        if values[-1] < -_ASYMMETRY * abs(values[0]) - UNSEEN:  # beside numbers this small, rounding is all there is
            raise MetricError(f"gop must be positive semidefinite, got the eigenvalue {values[-1]:.6g}")
        regularized = np.maximum(values, 0) + check_positive(regularization, "regularization")
        # A ratio below the smallest normal float would be 0 to a square root further on.
        scaled = np.maximum(regularized / regularized[0], np.finfo(np.float64).tiny)
        return cls(scaled, vectors, float(regularized[0]))

    @classmethod
    def from_diagonal(cls, diagonal: ArrayLike) -> "Metric":
        """Return the metric that weighs each coordinate by its entry of `diagonal`, divided by the largest.

        >>> Metric.from_diagonal([1.0, 4.0]).eigenvectors.tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """
        weights = as_floats(diagonal, "diagonal")
        if weights.ndim != 1 or len(weights) == 0:
            raise ShapeError(f"diagonal must be one-dimensional and not empty, got shape {weights.shape}")
        check_finite(weights, "diagonal")
        if weights.min() <= 0:
            raise MetricError(f"diagonal must be > 0, got {weights.min():.6g} at {int(weights.argmin())}")
        falling = np.argsort(-weights, kind="stable")
        scaled = weights[falling] / weights.max()
        if scaled[-1] == 0:
            raise MetricError(f"diagonal must span less than 1e308, got {weights.min():.6g} and {weights.max():.6g}")
        return cls(scaled, np.ascontiguousarray(np.eye(len(weights))[:, falling]), float(weights.max()))

    @classmethod
    def identity(cls, d: int) -> "Metric":
        """Return the Euclidean metric in d dimensions."""
        return cls.from_diagonal(np.ones(check_integer(d, "d", 1)))

    @classmethod
    def from_archive(cls, archive: Archive, d: int) -> "Metric":
        """Return the metric in d dimensions that was saved as this archive."""
        eigenvalues = archive.floats_above(0.0, "eigenvalues", d)
        if d == 0 or eigenvalues[0] != 1 or (np.diff(eigenvalues) > 0).any():
            raise CheckpointError(f"{archive.prefix}eigenvalues must fall, from 1 on")
        eigenvectors = archive.floats_between(-2.0, 2.0, "eigenvectors", d, d)  # so that squares are finite
        if not np.abs((eigenvectors**2).sum(axis=0) - 1).max() <= _ASYMMETRY:
            raise CheckpointError(f"{archive.prefix}eigenvectors must be of length 1")
        return cls(eigenvalues, eigenvectors, archive.number("norm"))

    def to_archive(self) -> Archive:
        """Return what is saved."""
        arrays = {"eigenvalues": self.eigenvalues, "eigenvectors": self.eigenvectors}
        return Archive({"norm": self.norm}, arrays)

    @property
    def dimension(self) -> int:
        """The number of features."""
        return len(self.eigenvalues)

    @property
    def matrix(self) -> Floats:
        """M itself, of spectral norm 1."""
        return np.asarray((self.eigenvectors * self.eigenvalues) @ self.eigenvectors.T)

    @cached_property
    def directions(self) -> Floats:
        """The columns ``sqrt(lambda_i) u_i`` that whitening projects on."""
        return np.ascontiguousarray(self.eigenvectors * np.sqrt(self.eigenvalues))

    def with_added_features(self, count: int, weight: float = 1.0) -> "Metric":
        """Return the metric on so many more features, the last ones, each an axis of its own with this eigenvalue.

        Points that are 0 in the new features are as far apart as before.

        >>> Metric.from_diagonal([4.0, 1.0]).with_added_features(1).eigenvalues.tolist()
        [1.0, 1.0, 0.25]
        """
        d, more = self.dimension, check_integer(count, "count", 1)
        vectors = np.eye(d + more)
        vectors[:d, :d] = self.eigenvectors
        values = np.append(self.eigenvalues, np.full(more, check_in_range(weight, "weight", UNSEEN, 1.0)))
        falling = np.argsort(-values, kind="stable")
        return Metric(values[falling], np.ascontiguousarray(vectors[:, falling]), self.norm)

    def whiten(self, X: ArrayLike) -> Floats:
        """Return coordinates in which this metric is the Euclidean one: ``sqrt(lambda_i) u_i . x``, a row each.

        A row's coordinates do not depend on the rows beside it: same row, same bits.

        >>> Metric.from_diagonal([0.25, 1.0]).whiten([[2.0, 3.0]]).tolist()
        [[3.0, 1.0]]
        """
        return project(check_rows(X, self.dimension), self.directions)

    def pull_back(self, slopes: ArrayLike) -> Floats:
        """Return gradients with respect to features, given gradients with respect to whitened coordinates."""
        return project(check_rows(slopes, self.dimension, "slopes"), np.ascontiguousarray(self.directions.T))

    def distance(self, X: ArrayLike, Z: ArrayLike) -> Floats:
        """Return ``|x - z|_M`` for each row of `X` and the same row of `Z`.

        >>> Metric.from_diagonal([1.0, 0.25]).distance([[0.0, 0.0]], [[3.0, 8.0]]).tolist()
        [5.0]
        """
        left, right = check_rows(X, self.dimension), check_rows(Z, self.dimension, "Z")
        if left.shape != right.shape:
            raise ShapeError(f"X and Z must have as many rows, got {len(left)} and {len(right)}")
        return np.asarray(np.sqrt((self.whiten(left - right) ** 2).sum(axis=1)))


def _symmetric(matrix: ArrayLike, name: str) -> Floats:
    array = as_floats(matrix, name)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] == 0:
        raise ShapeError(f"{name} must be square and not empty, got shape {array.shape}")
    check_finite(array, name)
    asymmetry, size = np.abs(array - array.T), np.abs(array).max()
    if asymmetry.max() > _ASYMMETRY * size:
        i, j = np.unravel_index(int(asymmetry.argmax()), array.shape)
        raise MetricError(f"{name} must be symmetric, got {array[i, j]:.6g} at [{i}, {j}], {array[j, i]:.6g} across")
    # Halves first, so that the sum of two entries near the largest float stays finite.
    return np.asarray(array / 2 + array.T / 2)


def eigensystem(matrix: Floats) -> tuple[Floats, Floats]:
    """Return eigenvalues in falling order and eigenvectors, the sign of each settled by its largest entry."""
    rising, columns = np.linalg.eigh(matrix)
    vectors = columns[:, ::-1]
    signs = np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(matrix))])
    return rising[::-1].copy(), np.ascontiguousarray(vectors * signs)
