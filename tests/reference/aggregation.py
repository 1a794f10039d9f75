"""Bernstein aggregation and least squares, by their definitions."""

import math

import numpy as np

from tests.reference.feature_views import Floats

FRESH = 0.02
"""The part of the weight that all experts share when an aggregation restarts."""


class BernsteinAggregation:
    """Experts weighted in proportion to ``prior * rate * exp(rate * gain)``; see `ellipack`'s theorem."""

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
        """Count the linearized regret to each expert, shrunk to the scale that was known before the label."""
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
        """Return an aggregation that starts from the weights reached, of which 2 % are shared out equally."""
        return BernsteinAggregation((1 - FRESH) * self.weights() + FRESH / len(self.priors))


class LeastSquares:
    """Regularized least squares, kept as the Gram matrix (prior included) and the moments of the labels."""

    def __init__(self, gram: Floats, moments: Floats) -> None:
        self.gram = gram
        self.moments = moments

    @property
    def coefficients(self) -> Floats:
        return np.asarray(np.linalg.solve(self.gram, self.moments), dtype=np.float64)

    @property
    def variances(self) -> Floats:
        """The diagonal of the inverse Gram matrix."""
        return np.diag(np.linalg.inv(self.gram))

    def learn(self, features: Floats, label: float) -> None:
        self.gram = self.gram + np.outer(features, features)
        self.moments = self.moments + features * label

    def forget(self, kept: float) -> None:
        """Keep this part of what is known of each coefficient, and all of it where that is less than the prior's.

        The coefficients stay.
        """
        coefficients = self.coefficients
        parts = np.where(self.variances <= kept, math.sqrt(kept), 1.0)
        self.gram = self.gram * np.outer(parts, parts)
        self.moments = self.gram @ coefficients

    def converted(self, old_from_new: Floats) -> "LeastSquares":
        """Return the same regression on other features, the old ones being ``old_from_new @ new``."""
        new_from_old = np.linalg.inv(old_from_new)
        return LeastSquares(new_from_old @ self.gram @ new_from_old.T, new_from_old @ self.moments)
