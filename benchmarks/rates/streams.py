"""Streams on which the regret of Algorithm 1 grows as fast as its theorems allow, and one with ``mu_d > 0``."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import hyp0f1

from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

CHUNK = 1 << 16
"""Rows that a stream draws at a time."""


class Chunk(NamedTuple):
    """Rows of a stream, their labels, and the values of the function that regret is measured against."""

    X: Floats
    y: Floats
    f: Floats


class Stream(Protocol):
    """An endless stream of chunks. The first rows are the same, however many are drawn."""

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over chunks of `CHUNK` rows."""
        ...


def draw_ball(rng: np.random.Generator, n: int, d: int) -> Floats:
    """Return points from the uniform distribution on the unit ball."""
    points = rng.normal(size=(n, d))
    radii = rng.random((n, 1)) ** (1 / d)
    return np.asarray(points * (radii * (1 - 1e-12) / np.linalg.norm(points, axis=1, keepdims=True)))


@dataclass(frozen=True)
class CoinStream:
    """Labels are fair coins, f = 1/2: all regret is estimation, a share for each center.

    The variance of the label is as large as labels in [0, 1] allow.
    """

    d: int
    seed: int

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over chunks of `CHUNK` rows."""
        rng = np.random.default_rng([self.seed, self.d])
        while True:
            X = draw_ball(rng, CHUNK, self.d)
            yield Chunk(X, rng.integers(0, 2, CHUNK).astype(np.float64), np.full(CHUNK, 0.5))


@dataclass(frozen=True)
class ZigzagStream:
    """A 1-Lipschitz function on which the approximation costs as much as Theorem 1 charges, up to a constant.

    With eps the radius of the last round, the function is, near rows, 1/2 plus a zigzag along the first axis, of slope
    1 and period eps / 2. Rows come in pairs at a peak and the next trough of it, half a period apart. Pairs are within
    eps of the points of a lattice of spacing 8 eps, in random order. So nearly all early balls, and all from round T/30
    on, hold whole pairs. Labels are 1 at peaks and 0 at troughs: the mean of a ball is 1/2, and a round costs about
    eps / 8 more than the function.
    """

    d: int
    seed: int
    horizon: int

    @property
    def last_radius(self) -> float:
        """Radius of Algorithm 1 at the horizon, in the Euclidean metric."""
        return float(self.horizon ** (-1 / (1 + self.d)))

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over chunks of `CHUNK` rows."""
        rng = np.random.default_rng([self.seed, self.d])
        pairs = rng.permutation(self._lattice(rng.random(self.d)))
        pairs += self.last_radius * draw_ball(rng, len(pairs), self.d)
        shift = np.zeros(self.d)
        shift[0] = self.last_radius / 8
        done = 0
        while True:
            t = np.arange(done, done + CHUNK)
            side = np.where(t % 2 == 0, 1.0, -1.0)
            X = pairs[t // 2 % len(pairs)] + side[:, None] * shift
            yield Chunk(X, (1 + side) / 2, 0.5 + side * self.last_radius / 8)
            done += CHUNK

    def _lattice(self, offset: Floats) -> Floats:
        """Return the points of a lattice in the ball of radius ``1 - 2 eps``, so that pairs lie in the unit ball.

        At small horizons the lattice is so wide that it may have no point there. Then it is the origin.
        """
        spacing, reach = 8 * self.last_radius, 1 - 2 * self.last_radius
        axis = spacing * np.arange(-np.ceil(1 / spacing) - 1, np.ceil(1 / spacing) + 1)
        grid = np.stack(np.meshgrid(*(axis + spacing * each for each in offset), indexing="ij"), axis=-1)
        points = grid.reshape(-1, self.d)
        inside = points[np.linalg.norm(points, axis=1) < reach]
        return np.asarray(inside) if len(inside) else np.zeros((1, self.d))


@dataclass(frozen=True)
class NoisyStream:
    """`LowRankStream` with the most noise that it takes, a standard deviation of 0.25."""

    d: int
    rank: int
    seed: int

    @property
    def source(self) -> LowRankStream:
        """The stream in the library."""
        return LowRankStream(self.d, self.rank, noise=0.25, random_state=self.seed)

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over chunks of `CHUNK` rows."""
        source = self.source
        for X, y in source.chunks(CHUNK):
            yield Chunk(X * (1 - 1e-12), y, source.function(X))

    def gop(self) -> Floats:
        """Return the expected gradient outer product."""
        return self.source.gop()


@dataclass(frozen=True)
class CosineStream:
    """Sum of a cosine along each axis, of decreasing amplitude, plus uniform noise: every ``mu_j`` is above 0.

    The derivatives are ``-a_j w sin(w x_j)``. By symmetry their products have mean 0, and the mean of their squares
    is ``a_j**2 w**2 (1 - E cos(2 w x_j)) / 2``.
    """

    amplitudes: tuple[float, ...]
    noise: float
    seed: int
    frequency: float = np.pi

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.amplitudes)

    def chunks(self) -> Iterator[Chunk]:
        """Iterate over chunks of `CHUNK` rows."""
        rng = np.random.default_rng([self.seed, self.d])
        while True:
            X = draw_ball(rng, CHUNK, self.d)
            f = self.function(X)
            yield Chunk(X, f + rng.uniform(-self.noise, self.noise, CHUNK), f)

    def function(self, X: Floats) -> Floats:
        """Return the regression function at each row."""
        return np.asarray(0.5 + np.cos(self.frequency * X) @ np.array(self.amplitudes))

    def gradients(self, X: Floats) -> Floats:
        """Return the gradient of the regression function at each row."""
        return np.asarray(-self.frequency * np.sin(self.frequency * X) * np.array(self.amplitudes))

    def gop(self) -> Floats:
        """Return the expected gradient outer product, in closed form."""
        mean_cosine = float(hyp0f1(self.d / 2 + 1, -(self.frequency**2)))
        return np.diag((self.frequency * np.array(self.amplitudes)) ** 2 * (1 - mean_cosine) / 2)
