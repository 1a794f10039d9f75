"""Bernstein aggregation and recursive least squares in plain Python, bit for bit.

The operations of the compiled core are in the same order. `tests.reference.aggregation` has the definitions.
"""

import math
from dataclasses import dataclass

LEAST_SCALE = 1e-290


@dataclass
class ExactAggregation:
    """Experts weighted by ``log_prior + log(rate) + rate * gain``."""

    log_priors: list[float]
    gains: list[float]
    squares: list[float]
    scale: float

    def rate(self, k: int, scale: float) -> float:
        largest = 0.5 / scale
        if self.squares[k] <= 0.0:
            return largest
        return min(largest, math.sqrt(math.log(len(self.gains)) / self.squares[k]))

    def weights(self) -> list[float]:
        logarithms = list(self.log_priors)
        if self.scale > 0.0:
            for k in range(len(logarithms)):
                rate = self.rate(k, self.scale)
                logarithms[k] += math.log(rate) + rate * self.gains[k]
        weights = [math.exp(each - max(logarithms)) for each in logarithms]
        total = 0.0
        for weight in weights:
            total += weight
        return [weight / total for weight in weights]

    def update(self, predictions: list[float], prediction: float, label: float) -> None:
        error = 2.0 * (prediction - label)
        before = self.scale
        after = max(before, *(abs(error * (prediction - expert)) for expert in predictions))
        if after < LEAST_SCALE:
            return
        self.scale = after
        if before <= 0.0:
            return
        for k, expert in enumerate(predictions):
            regret = error * (prediction - expert) * (before / after)
            rate = self.rate(k, before)
            self.gains[k] += regret - rate * regret * regret
            self.squares[k] += regret * regret


def dot(left: list[float], right: list[float]) -> float:
    total = 0.0
    for one, other in zip(left, right, strict=True):
        total += one * other
    return total


@dataclass
class ExactLeastSquares:
    """The inverse of the regularized Gram matrix, and the coefficients."""

    inverse: list[list[float]]
    coefficients: list[float]

    def update(self, features: list[float], target: float) -> None:
        count = len(features)
        gain = [0.0] * count
        for i in range(count):
            for j in range(count):
                gain[j] += features[i] * self.inverse[i][j]
        divisor = 1.0 + dot(features, gain)
        if divisor < 1.0:
            return
        error = (target - dot(self.coefficients, features)) / divisor
        for i in range(count):
            self.coefficients[i] += gain[i] * error
        scaled = [each / math.sqrt(divisor) for each in gain]
        for i in range(count):
            for j in range(count):
                self.inverse[i][j] -= scaled[i] * scaled[j]

    def discount(self, span: float) -> None:
        count, kept = len(self.coefficients), 1.0 - 1.0 / span
        growth = math.sqrt(1.0 / kept)
        factors = [growth if 0.0 < self.inverse[i][i] <= kept else 1.0 for i in range(count)]
        for i in range(count):
            for j in range(count):
                self.inverse[i][j] *= factors[i] * factors[j]
