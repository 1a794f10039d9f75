"""Views of the features in `MetricRegressor`: clipping of outliers, ranks, standardization, whitening."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ellipack.learners.metric.subspace import initial_subspace

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FARTHEST = 1e6
"""Standard deviations at which a feature is clipped."""

ROUNDING = 1e-13
"""A feature is constant if its standard deviation relative to its absolute value is smaller."""


@dataclass
class RunningStatistics:
    """Mean, sum of squared deviations, range and number of outliers of a stream of numbers.

    Outliers do not extend the range. `outliers` is their number in this phase plus half of its value at the end of the
    phase before.
    """

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = 0.0
    high: float = 0.0
    outliers: float = 0.0

    @property
    def variance(self) -> float:
        return self.squares / self.count

    def is_outlier(self, value: float) -> bool:
        """Whether a value lies more than ``3 * 10**outliers`` ranges outside the range of at least five others."""
        if self.count < 5 or self.low == self.high:
            return False
        width: float = 3.0 * 10.0**self.outliers * (self.high - self.low)
        return value < self.low - width or value > self.high + width

    def clip_outlier(self, value: float) -> float:
        """Return the value, clipped to one width of the range outside of it if it is an outlier."""
        if not self.is_outlier(value):
            return value
        width = self.high - self.low
        return min(max(value, self.low - width), self.high + width)

    def add(self, value: float, clipped: bool = False) -> None:
        """Add a value by Welford's update. A clipped value counts as an outlier."""
        first = self.count == 0
        self.count += 1
        step = value - self.mean
        self.mean += step / self.count
        self.squares += step * (value - self.mean)
        if clipped:
            self.outliers += 1
        else:
            self.low = value if first else min(self.low, value)
            self.high = value if first else max(self.high, value)


def rank_among(value: float, knots: Floats) -> float:
    """Return the rank of a value among sorted knots, from 0 to 1, interpolated; among equal knots, their middle."""
    last = len(knots) - 1
    if value <= knots[0]:
        return 0.0
    if value >= knots[last]:
        return 1.0
    below, equal = int((knots < value).sum()), int((knots == value).sum())
    if equal > 0:
        return 0.5 * (below + below + equal - 1) / last
    left, right = knots[below - 1], knots[below]
    return float((below - 1 + (value - left) / (right - left)) / last)


def standard_deviations(variances: Floats, sizes: Floats) -> Floats:
    """Return standard deviations, 1 for features that are constant up to rounding errors."""
    return np.sqrt(np.where(variances > (ROUNDING * sizes) ** 2, variances, 1.0))


@dataclass
class FeatureView:
    """Standardized values or ranks of the features, and a metric on them. Ranks need knots, one column per feature.

    The metric is ``directions @ directions.T``. `gradient_sum` is the sum of outer products of gradients since the
    phase began.
    """

    knots: Floats | None
    shift: Floats
    scale: Floats
    directions: Floats
    gradient_sum: Floats

    @classmethod
    def initial(cls, d: int) -> "FeatureView":
        return cls(None, np.zeros(d), np.ones(d), initial_subspace(d), np.zeros((d, d)))

    def values_or_ranks(self, rows: Floats) -> Floats:
        if self.knots is None:
            return rows
        columns = [[rank_among(value, self.knots[:, k]) for value in rows[:, k]] for k in range(rows.shape[1])]
        return np.array(columns).T

    def standardize(self, rows: Floats) -> Floats:
        return np.clip((self.values_or_ranks(rows) - self.shift) / self.scale, -FARTHEST, FARTHEST)

    def whiten(self, rows: Floats) -> Floats:
        """Return whitened coordinates, summed feature by feature, so that equal rows have equal coordinates."""
        standard = self.standardize(rows)
        total = np.zeros((len(standard), self.directions.shape[1]))
        for k in range(rows.shape[1]):
            total = total + standard[:, k : k + 1] * self.directions[k]
        return total

    def gradient(self, slope: Floats, trend: Floats) -> Floats:
        """Return the gradient that has a local fit's slope in the leading whitened coordinates.

        Perpendicular to these the gradient is the global trend's.
        """
        leading = self.directions[:, : len(slope)]
        gradient = leading @ slope
        if len(slope) < len(trend):
            basis = leading / np.linalg.norm(leading, axis=0)
            gradient += trend - basis @ (basis.T @ trend)
        return gradient

    def add_gradient(self, slope: Floats, trend: Floats) -> None:
        """Add the outer product of a gradient."""
        gradient = self.gradient(slope, trend)
        self.gradient_sum += np.outer(gradient, gradient)
