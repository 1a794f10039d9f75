"""Bernstein aggregation and least squares, by their definitions."""

import math

import numpy as np

from tests.reference.feature_views import Floats

FRESH = 0.02
"""Part of the prior that is uniform after a restart."""


class BernsteinAggregation:
    """Aggregation with weights proportional to ``prior * rate * exp(rate * gain)``."""

    def __init__(self, priors: Floats) -> None:
        self.priors = priors
        self.gains = np.zeros(len(priors))
        self.squares = np.zeros(len(priors))
        self.scale = 0.0

    def rates(self) -> Floats:
        """Return ``min(1 / (2 scale), sqrt(ln N / squares))`` for each expert."""
        logarithm, largest = math.log(len(self.priors)), 0.5 / self.scale
        return np.array([min(largest, math.sqrt(logarithm / v)) if v > 0 else largest for v in self.squares])

    def weights(self) -> Floats:
        if self.scale == 0:
            return np.asarray(self.priors / self.priors.sum())
        rates = self.rates()
        logarithms = np.log(self.priors) + np.log(rates) + rates * self.gains
        weights = np.exp(logarithms - logarithms.max())
        return np.asarray(weights / weights.sum())

    def learn(self, predictions: Floats, mixture: float, label: float) -> None:
        """Add the linearized regret to each expert, scaled to the range before this round."""
        regrets = 2 * (mixture - label) * (mixture - predictions)
        before, after = self.scale, max(self.scale, float(np.abs(regrets).max()))
        if after < 1e-290:
            return
        if before > 0:
            shrunk, rates = regrets * (before / after), self.rates()
            self.gains = self.gains + shrunk - rates * shrunk**2
            self.squares = self.squares + shrunk**2
        self.scale = after

    def restarted(self) -> "BernsteinAggregation":
        """Return an initial aggregation whose prior is 98 % the current weights and 2 % equal weights."""
        return BernsteinAggregation((1 - FRESH) * self.weights() + FRESH / len(self.priors))


class LeastSquares:
    """Ridge regression by the Gram matrix, which includes the prior, and the moments of the labels."""

    def __init__(self, gram: Floats, moments: Floats) -> None:
        self.gram = gram
        self.moments = moments
        self.coefficients = self._solution()

    def _solution(self) -> Floats:
        return np.asarray(np.linalg.solve(self.gram, self.moments), dtype=np.float64)

    @property
    def variances(self) -> Floats:
        """The diagonal of the inverse Gram matrix."""
        return np.diag(np.linalg.inv(self.gram))

    def learn(self, features: Floats, label: float) -> None:
        self.gram = self.gram + np.outer(features, features)
        self.moments = self.moments + features * label
        self.coefficients = self._solution()

    def forget(self, kept: float) -> None:
        """Discount the Gram matrix without a change of the coefficients.

        A coefficient that would become less certain than its prior is not discounted.
        """
        parts = np.where(self.variances <= kept, math.sqrt(kept), 1.0)
        self.gram = self.gram * np.outer(parts, parts)
        self.moments = self.gram @ self.coefficients

    def converted(self, old_from_new: Floats) -> "LeastSquares":
        """Return the regression on new features, where the old ones are ``old_from_new @ new``."""
        new_from_old = np.linalg.inv(old_from_new)
        return LeastSquares(new_from_old @ self.gram @ new_from_old.T, new_from_old @ self.moments)
