"""Synthetic streams with known regression function, gradients and relevant directions."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import hyp0f1

from ellipack.errors import DomainError
from ellipack.metric import project
from ellipack.validation import Floats, check_in_range, check_integer, check_rows

_PHASES = (0.4, 1.1)  # no multiples of pi / 2, where a sine would be even or odd
_AMPLITUDE_DECAY = 0.85  # ratio of amplitudes of consecutive directions
_RADIANS_PER_STD = 1.28  # of a coordinate: clearly nonlinear, but smooth at the scale of the data
_MAX_DEVIATION = 0.49  # of labels from 1/2, with a margin for rounding
_MAX_NOISE = 0.25


@dataclass(frozen=True)
class LowRankStream:
    """Stream whose labels depend on a few directions only.

    Instances are uniform in the unit ball. A label is 1/2, plus a sine of the projection onto each relevant direction,
    plus uniform noise. Amplitudes decrease from direction to direction and leave room for the noise, so that labels
    are in [0, 1] without clipping.

    Parameters
    ----------
    d : int, default 20
        Number of features.
    rank : int, default 2
        Number of relevant directions.
    noise : float, default 0.02
        Standard deviation of the noise, at most 0.25.
    random_state : int, default 0
        Random seed, also of the directions.

    Attributes
    ----------
    subspace : ndarray of float, shape (d, rank)
        Orthonormal basis of the relevant directions.

    Examples
    --------
    >>> stream = LowRankStream(d=3, rank=1)
    >>> X, y = stream.draw(100)
    >>> X.shape, y.shape, stream.subspace.shape
    ((100, 3), (100,), (3, 1))
    """

    d: int = 20
    rank: int = 2
    noise: float = 0.02
    random_state: int = 0
    subspace: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_integer(self.d, "d", 1)
        check_integer(self.random_state, "random_state", 0)
        check_in_range(self.noise, "noise", 0.0, _MAX_NOISE)
        if check_integer(self.rank, "rank", 1) > self.d:
            raise DomainError(f"rank must be at most d, {self.d}, got {self.rank}")
        basis, _, _, _ = self._generators()
        subspace = np.linalg.qr(basis.normal(size=(self.d, self.rank)))[0]
        object.__setattr__(self, "subspace", np.ascontiguousarray(subspace))

    def draw(self, n: int) -> tuple[Floats, Floats]:
        """Return the first `n` instances and their labels. A shorter draw is a prefix of a longer one.

        Parameters
        ----------
        n : int
            Number of instances.

        Returns
        -------
        X : ndarray of float, shape (n, d)
            Instances.
        y : ndarray of float, shape (n,)
            Labels.
        """
        return next(self._chunks(check_integer(n, "n", 1)))

    def chunks(self, size: int) -> Iterator[tuple[Floats, Floats]]:
        """Iterate over the rows of `draw` without end, `size` rows at a time, in bounded memory.

        Examples
        --------
        >>> chunks = LowRankStream(d=3, rank=1).chunks(50)
        >>> bool((next(chunks)[0] == LowRankStream(d=3, rank=1).draw(50)[0]).all())
        True
        """
        return self._chunks(check_integer(size, "size", 1))

    def function(self, X: ArrayLike) -> Floats:
        """Return the regression function, the expected label of each row of `X`."""
        return np.asarray(0.5 + project(np.sin(self._angles(X)), self._amplitudes[:, None])[:, 0])

    def gradients(self, X: ArrayLike) -> Floats:
        """Return the gradient of the regression function at each row of `X`."""
        slopes = self._frequency * self._amplitudes * np.cos(self._angles(X))
        return project(slopes, np.ascontiguousarray(self.subspace.T))

    def gop(self) -> Floats:
        """Return the expected gradient outer product, in closed form.

        A product of two cosines is half a sum of two cosines, and the mean of ``cos(w . x)`` over the unit ball is
        `_mean_cosine` of the norm of w.
        """
        phases = self._phases
        norm_of_difference = np.where(np.eye(self.rank) == 1, 0.0, np.sqrt(2.0)) * self._frequency
        norm_of_sum = np.where(np.eye(self.rank) == 1, 2.0, np.sqrt(2.0)) * self._frequency
        means = (
            np.cos(phases[:, None] - phases) * self._mean_cosine(norm_of_difference)
            + np.cos(phases[:, None] + phases) * self._mean_cosine(norm_of_sum)
        ) / 2
        slopes = self.subspace * self._frequency * self._amplitudes
        product = slopes @ means @ slopes.T
        return np.asarray((product + product.T) / 2)

    def _chunks(self, size: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield chunks without end."""
        _, directions, radii, noise = self._generators()
        while True:
            points = directions.normal(size=(size, self.d))
            points *= radii.random((size, 1)) ** (1 / self.d) / np.linalg.norm(points, axis=1, keepdims=True)
            yield points, self.function(points) + noise.uniform(-self._noise_half_width, self._noise_half_width, size)

    def _generators(self) -> list[np.random.Generator]:
        """Return independent generators for the basis, the instances and the noise, so that draws do not interfere."""
        return np.random.default_rng(self.random_state).spawn(4)

    def _angles(self, X: ArrayLike) -> Floats:
        """Return the argument of each sine."""
        # Projected row by row, so that the label of a row does not depend on the other rows.
        return np.asarray(project(check_rows(X, self.d), self.subspace) * self._frequency + self._phases)

    def _mean_cosine(self, length: Floats) -> Floats:
        """Return the characteristic function of a coordinate of a uniform point in the unit ball."""
        return np.asarray(hyp0f1(self.d / 2 + 1, -(length**2) / 4))

    @property
    def _noise_half_width(self) -> float:
        """Maximum absolute noise."""
        return float(np.sqrt(3) * self.noise)

    @property
    def _frequency(self) -> float:
        """Angular frequency. The standard deviation of a coordinate is 1 / sqrt(d + 2)."""
        return float(_RADIANS_PER_STD * np.sqrt(self.d + 2))

    @property
    def _phases(self) -> Floats:
        """Phase of each sine."""
        return np.resize(_PHASES, self.rank)

    @property
    def _amplitudes(self) -> Floats:
        """Amplitude of each sine."""
        decay = _AMPLITUDE_DECAY ** np.arange(self.rank)
        return np.asarray((_MAX_DEVIATION - self._noise_half_width) * decay / decay.sum())
