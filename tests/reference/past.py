"""`MetricRegressor` with the past: labels kept in lists, two learners, and their combination."""

from dataclasses import replace
from typing import Any

import numpy as np

from ellipack import MetricConfig
from tests.reference.aggregation import BernsteinAggregation, LeastSquares
from tests.reference.feature_views import Floats
from tests.reference.metric_learner import MAX_VARIANCE_GROWTH, Published, ReferenceMetricLearner

MEAN_RATE = 2 / 11
MIN_GAIN, FIRST_ROUNDS, TRIAL_DIVISOR, COST_DIVISOR = 0.02, 256, 8, 16
MANY_FEATURES = 40


class ReferencePast:
    """All labels of a stream with their predictions and keys; features are computed from the whole list each time."""

    def __init__(self, labels: int, max_keys: int = 0) -> None:
        self.labels, self.max_keys = labels, max_keys
        self.rounds: list[tuple[int, float, float]] = []  # key, label, prediction

    def remembered_keys(self) -> list[int]:
        """Return the keys that were learned last, as many as are remembered, in the order of their last rounds."""
        order = list(dict.fromkeys(key for key, _, _ in reversed(self.rounds)))
        return order[: self.max_keys][::-1]

    def features(self, key: int, prediction: float) -> list[float]:
        """Return the features of a row."""
        out = [prediction, *self._summary(self.rounds, self.labels, prediction)]
        if self.max_keys:
            own = self._rounds_since_remembered(key)
            out += self._summary(own, max(1, self.labels - 1), prediction)
            mean = own[0][1] if own else prediction
            for count, (_, label, _) in enumerate(own, start=1):
                mean += max(1 / count, MEAN_RATE) * (label - mean)
            out.append(mean)
        return out

    def _rounds_since_remembered(self, key: int) -> list[tuple[int, float, float]]:
        """Return the rounds of a key since it was last forgotten, found by going through all rounds."""
        known: dict[int, list[tuple[int, float, float]]] = {}
        for each in self.rounds:
            history = known.pop(each[0], [])
            known[each[0]] = [*history, each]
            if len(known) > self.max_keys:
                del known[next(iter(known))]
        return known.get(key, [])

    @staticmethod
    def _summary(rounds: list[tuple[int, float, float]], count: int, prediction: float) -> list[float]:
        """Return the last error and the last labels. The oldest known label, or the prediction, fills the gaps."""
        if not rounds:
            return [0.0, *[prediction] * count]
        latest = [label for _, label, _ in reversed(rounds)][: min(count, 8)]
        return [rounds[-1][1] - rounds[-1][2], *latest, *[latest[-1]] * (count - len(latest))]


class ReferencePastLearner:
    """A learner that sees the features alone, one that sees the past, too, and the combination of both.

    Parameters
    ----------
    d : int
        Number of features.
    labels, max_keys : int
        Numbers of last labels and of remembered keys.
    choices : sequence of two sequences of tuples of str
        Names of the candidates that both learners selected, for ties.
    parameters
        Parameters of both learners.
    """

    def __init__(self, d: int, labels: int, max_keys: int, choices: Any, **parameters: Any) -> None:
        self.config: MetricConfig = parameters.get("config") or MetricConfig()
        self.past, self.sees_features = ReferencePast(labels, max_keys), d <= MANY_FEATURES
        self.plain = ReferenceMetricLearner(d, choices=choices[0], **parameters)
        seen = len(self.past.features(0, 0.0)) + (d if self.sees_features else 0)
        earlier = parameters | {"max_centers": parameters.get("max_centers", 100_000) - 2}  # evicts a little earlier
        self.with_past = ReferenceMetricLearner(seen, choices=choices[1], seeds=(1,), **earlier)
        self.weights, self.top = BernsteinAggregation(np.array([0.8, 0.2])), BernsteinAggregation(np.full(2, 0.5))
        self.stack: LeastSquares | None = None
        self.active_from = 0
        self.active_errors, self.total_errors = np.zeros(2), np.zeros(2)

    def predict(self, row: Floats, past: list[float]) -> float:
        """Return the prediction for a row with these features of the past."""
        alone = self.plain.predict(row)
        if self.plain.clock < self.active_from or not self.plain.labels.count:
            return alone
        seen = np.append(past, row) if self.sees_features else np.array(past)
        experts = np.array([self.plain.within_labels(p) for p in (alone, self.with_past.predict(seen))])
        mixture = float(self.weights.weights() @ experts)
        correction = float(self.stack.coefficients @ (experts - mixture)) if self.stack else 0.0
        pair = np.array([mixture, self.plain.within_labels(mixture + correction)])
        return float(self.top.weights() @ pair)

    def learn(self, row: Floats, label: float, key: int = 0, past: list[float] | None = None) -> Published:
        """Run a round and return its prediction and intervals, which do not use the label."""
        labels, active = self.plain.labels, self.plain.clock >= self.active_from
        alone = self.plain.predict(row)
        features = self.past.features(key, alone) if past is None else past
        seen = np.append(features, row) if self.sees_features else np.array(features)
        prediction, counts = alone, not labels.is_outlier(label)
        if active and labels.count:
            experts = np.array([self.plain.within_labels(p) for p in (alone, self.with_past.predict(seen))])
            mixture = float(self.weights.weights() @ experts)
            correction = float(self.stack.coefficients @ (experts - mixture)) if self.stack else 0.0
            pair = np.array([mixture, self.plain.within_labels(mixture + correction)])
            prediction = float(self.top.weights() @ pair)
        relative_scale = self.with_past.relative_scale(seen) if active else self.plain.relative_scale(row)
        published = prediction, self.with_past.intervals.around(prediction, relative_scale), relative_scale
        errors = (np.array([alone, prediction]) - label) ** 2
        if counts:
            self.total_errors += errors
        if counts and active and labels.count:
            self.active_errors += errors
            self.top.learn(pair, prediction, label)
            self.weights.learn(experts, mixture, label)
            if self.stack:
                self.stack.learn(experts - mixture, label - mixture)
        without, with_past = self.active_errors
        worthwhile = self.plain.clock + 1 < FIRST_ROUNDS or bool(with_past < (1 - MIN_GAIN) * without)
        self._learn_both(row, (seen, label, published), active, worthwhile)
        if counts:
            self.past.rounds.append((key, label, features[0]))
        return published

    def _learn_both(
        self, row: Floats, next_round: tuple[Floats, float, Published], active: bool, worthwhile: bool
    ) -> None:
        points = max(8, self.config.validation_points // COST_DIVISOR)
        cheaper = replace(self.config, validation_points=points, pool=max(points, self.config.pool // COST_DIVISOR))
        self.with_past.selection_config = self.config if worthwhile else cheaper
        (self.with_past.learn if active else self.with_past.store)(*next_round)
        phases = len(self.plain.phases)
        self.plain.learn(row, next_round[1])
        if len(self.plain.phases) > phases:
            start, end = self.plain.clock, self.plain.phase_end
            self.active_from = start if worthwhile else end - max(1, (end - start) // TRIAL_DIVISOR)
            self.active_errors = np.zeros(2)
            self.weights, self.top = self.weights.restarted(), self.top.restarted()
            self._start_stack()

    def _start_stack(self) -> None:
        variance = self.plain.labels.variance
        prior = max(self.config.stack_prior * variance, 1e-150)
        if variance > 0 and (self.stack is None or self.stack.variances.max() * prior >= MAX_VARIANCE_GROWTH):
            self.stack = LeastSquares(prior * np.eye(2), np.zeros(2))
