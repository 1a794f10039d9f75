"""A stream whose every truth is known: its function, its gradients, and the directions that matter."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import hyp0f1

from ellipack.errors import DomainError
from ellipack.metric import project
from ellipack.validation import Floats, check_in_range, check_integer, check_rows

_PHASES = (0.4, 1.1)  # away from multiples of a quarter turn, where a sine would be even or odd
_AMPLITUDE_DECAY = 0.85  # of the amplitude from one direction to the next
_RADIANS_PER_STD = (
    1.28  # radians for a standard deviation: more than a line can follow, less than would look like noise
)
_MAX_DEVIATION = 0.49  # how far labels may be from 1/2, with a margin for rounding
_MAX_NOISE = 0.25


@dataclass(frozen=True)
class LowRankStream:
    """Instances drawn evenly from the unit ball; labels in [0, 1] that depend on a few directions alone.

    A label is 1/2, plus for each direction a sine that fades a little from one direction to the next, plus noise
    drawn evenly from an interval. Amplitudes leave room for the noise, so labels are never clipped.

    Attributes
    ----------
    d : how many features.
    rank : how many directions matter.
    noise : the standard deviation of the noise.
    random_state : the seed of everything drawn, directions included.

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

    def __post_init__(self) -> None:
        check_integer(self.d, "d", 1)
        check_integer(self.random_state, "random_state", 0)
        check_in_range(self.noise, "noise", 0.0, _MAX_NOISE)
        if check_integer(self.rank, "rank", 1) > self.d:
            raise DomainError(f"rank must be at most d, {self.d}, got {self.rank}")

    def draw(self, n: int) -> tuple[Floats, Floats]:
        """Return the first `n` instances and their labels; those of a shorter draw are the first of a longer one."""
        return next(self._chunks(check_integer(n, "n", 1)))

    def chunks(self, size: int) -> Iterator[tuple[Floats, Floats]]:
        """Return an iterator over the rows that `draw` gives, `size` at a time and without end, in bounded memory.

        >>> chunks = LowRankStream(d=3, rank=1).chunks(50)
        >>> bool((next(chunks)[0] == LowRankStream(d=3, rank=1).draw(50)[0]).all())
        True
        """
        return self._chunks(check_integer(size, "size", 1))

    @cached_property
    def subspace(self) -> Floats:
        """The directions that matter, an orthonormal column each."""
        basis, _, _, _ = self._generators()
        return np.ascontiguousarray(np.linalg.qr(basis.normal(size=(self.d, self.rank)))[0])

    def function(self, X: ArrayLike) -> Floats:
        """Return the expected label at each row."""
        return np.asarray(0.5 + project(np.sin(self._angles(X)), self._amplitudes[:, None])[:, 0])

    def gradients(self, X: ArrayLike) -> Floats:
        """Return the gradient of the expected label at each row."""
        slopes = self._frequency * self._amplitudes * np.cos(self._angles(X))
        return project(slopes, np.ascontiguousarray(self.subspace.T))

    def gop(self) -> Floats:
        """Return the expected gradient outer product, in closed form.

        A product of two cosines is half the sum of two, and the mean of a cosine of ``w . x`` over the unit ball
        is `_mean_cosine` of the length of w.
        """
        phases = self._phases
        apart = np.where(np.eye(self.rank) == 1, 0.0, np.sqrt(2.0)) * self._frequency
        together = np.where(np.eye(self.rank) == 1, 2.0, np.sqrt(2.0)) * self._frequency
        means = (
            np.cos(phases[:, None] - phases) * self._mean_cosine(apart)
            + np.cos(phases[:, None] + phases) * self._mean_cosine(together)
        ) / 2
        slopes = self.subspace * self._frequency * self._amplitudes
        product = slopes @ means @ slopes.T
        return np.asarray((product + product.T) / 2)

    def _chunks(self, size: int) -> Iterator[tuple[Floats, Floats]]:
        _, directions, radii, noise = self._generators()
        while True:
            points = directions.normal(size=(size, self.d))
            points *= radii.random((size, 1)) ** (1 / self.d) / np.linalg.norm(points, axis=1, keepdims=True)
            yield points, self.function(points) + noise.uniform(-self._noise_half_width, self._noise_half_width, size)

    def _generators(self) -> list[np.random.Generator]:
        """Return one generator for each thing drawn, so that how many rows are drawn changes none of them."""
        return np.random.default_rng(self.random_state).spawn(4)

    def _angles(self, X: ArrayLike) -> Floats:
        # Projected row by row, so that a row's label has the same bits whatever rows are beside it.
        return np.asarray(project(check_rows(X, self.d), self.subspace) * self._frequency + self._phases)

    def _mean_cosine(self, length: Floats) -> Floats:
        """Return the characteristic function of a coordinate of a point drawn evenly from the unit ball."""
        return np.asarray(hyp0f1(self.d / 2 + 1, -(length**2) / 4))

    @property
    def _noise_half_width(self) -> float:
        """How far the noise reaches to either side."""
        return float(np.sqrt(3) * self.noise)

    @property
    def _frequency(self) -> float:
        # A coordinate's standard deviation is 1 / sqrt(d + 2), and the function must bend at that scale.
        return float(_RADIANS_PER_STD * np.sqrt(self.d + 2))

    @property
    def _phases(self) -> Floats:
        return np.resize(_PHASES, self.rank)

    @property
    def _amplitudes(self) -> Floats:
        decay = _AMPLITUDE_DECAY ** np.arange(self.rank)
        return np.asarray((_MAX_DEVIATION - self._noise_half_width) * decay / decay.sum())
