"""`KeyedRegressor`, literally: a dictionary of learners, row by row, with the combination by its definition."""

import math
from typing import Any, NamedTuple

import numpy as np

from ellipack import MetricRegressor
from tests.reference.aggregation import BernsteinAggregation
from tests.reference.conformal import COVERAGES, ReferenceIntervals, initial_width
from tests.reference.feature_views import Floats

MAX_ERROR = 20.0  # units


class Expected(NamedTuple):
    """Prediction for a row, with the lower ends of the intervals of all coverages, then the upper ends."""

    value: float
    bounds: list[float]


class Pair:
    """Combination of the learner of all keys with that of one key."""

    def __init__(self) -> None:
        self.weights = BernsteinAggregation(np.array([0.5, 0.5]))
        self.intervals = ReferenceIntervals()
        self.intervals.mean_error = 1 / initial_width(0.8)
        self.intervals.labels = 4

    def predict(self, pooled: float, own: float, unit: float) -> Expected:
        weight = self.weights.weights()[1]
        value = (1 - weight) * pooled + weight * own if weight > 0.5 else pooled
        if math.isinf(unit):
            return Expected(value, [-math.inf] * len(COVERAGES) + [math.inf] * len(COVERAGES))
        return Expected(value, [value + unit * end for end in self.intervals.around(0.0)])

    def learn(self, pooled: float, own: float, unit: float, label: float) -> None:
        if unit == 0 or math.isinf(unit):
            return
        error = (label - self.predict(pooled, own, unit).value) / unit
        self.intervals.learn_label(error, self.intervals.around(0.0))
        self.intervals.learn_error(min(max(error, -MAX_ERROR), MAX_ERROR), 1.0)
        mean = float(self.weights.weights() @ np.array([pooled, own]))
        label = min(max(label, mean - MAX_ERROR * unit), mean + MAX_ERROR * unit)
        self.weights.learn(np.array([pooled, own]), mean, label)


class ReferenceKeyed:
    """One learner of all keys and one for each key.

    Parameters
    ----------
    pooled : MetricRegressor
        Unfitted learner of all keys, with `by`.
    make : callable
        Returns an unfitted learner of a key.
    """

    def __init__(self, pooled: MetricRegressor, make: Any) -> None:
        self.pooled, self.make = pooled, make
        self.own: dict[Any, MetricRegressor] = {}
        self.pairs: dict[Any, tuple[Pair, Pair]] = {}
        self.squared_errors: dict[Any, list[tuple[float, float]]] = {}

    def learn(self, row: Floats, key: Any, label: float) -> Expected:
        """Return the prediction of the next row, and learn it."""
        X, y = row[None], np.array([label])
        plain, plain_unit = self._predict_pooled(X)
        values, (lower, upper) = self.pooled.progressive(X, y, keys=[key], coverage=0.8)
        value, unit = float(values[0]), float(upper[0] - lower[0]) / 2
        own = self.own[key].predict(X)[0] if key in self.own else None
        next_rows, any_rows = self.pairs.setdefault(key, (Pair(), Pair()))
        expected = next_rows.predict(value, value if own is None else own, unit)
        next_rows.learn(value, value if own is None else own, unit, label)
        any_rows.learn(plain, plain if own is None else own, plain_unit, label)
        self.own.setdefault(key, self.make()).partial_fit(X, y)
        self.squared_errors.setdefault(key, []).append(((expected.value - label) ** 2, (value - label) ** 2))
        return expected

    def predict(self, row: Floats, key: Any) -> Expected:
        """Return the prediction from the features alone."""
        plain, unit = self._predict_pooled(row[None])
        own = self.own[key].predict(row[None])[0] if key in self.own else plain
        return self.pairs.get(key, (Pair(), Pair()))[1].predict(plain, own, unit)

    def _predict_pooled(self, X: Floats) -> tuple[float, float]:
        """Return the prediction from the features alone, and the half-width of its interval of coverage 0.8."""
        if not self.pooled.__sklearn_is_fitted__():
            return 0.0, math.inf
        lower, upper = self.pooled.predict_interval(X, 0.8)
        return float(self.pooled.predict(X)[0]), float(upper[0] - lower[0]) / 2
