"""Literal version of the measurement of importance, for a learner that does not use the past."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ellipack.validation import Floats
from tests.reference.metric_learner import ReferenceMetricLearner

MASK = 2**64 - 1
FIRST_ROUND, ROUNDS_IN_TURN, MAX_ROWS = 16, 500, 256
EQUAL_FRACTION, TOTAL_FRACTION, RECENT_FRACTION = 0.25, 0.5, 0.25
MIN_UNEXPLAINED = 1e-3  # of the variance of a control by those before it
MEASUREMENTS_PER_CONTROL, FEW_MEASUREMENTS = 6, 8


def random_bits(seed: int, round_: int, stream: int) -> int:
    """Return 64 bits of SplitMix64."""
    z = (seed * 0xD1342543DE82EF95 + stream) & MASK
    for step in (0, round_):
        z = (z + (step + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return z


class Measurement(NamedTuple):
    """A measured rise, its weight and its controls."""

    weight: float
    rise: float
    controls: Floats


class Estimate(NamedTuple):
    """Mean rise, the variance of this estimate, and the part of it that a single measurement has."""

    rise: float
    variance: float
    variance_of_one: float


@dataclass
class Sums:
    """All measurements of a group, and its controls at all rounds, with weights."""

    measured: list[Measurement] = field(default_factory=list)
    controls: list[Floats] = field(default_factory=list)
    control_weights: list[float] = field(default_factory=list)

    def fade_measured(self, keep: float) -> None:
        """Multiply the weights of the measurements."""
        self.measured = [each._replace(weight=keep * each.weight) for each in self.measured]

    def add_controls(self, controls: Floats, keep: float) -> None:
        """Add the controls of a round, after multiplying the weights of those before."""
        self.control_weights = [*(keep * each for each in self.control_weights), 1.0]
        self.controls.append(controls)

    def count(self) -> float:
        """Return the effective number of measurements."""
        return effective_count([each.weight for each in self.measured])

    def variance_of_one(self) -> float:
        """Return the variance of a single measurement, or that of a control if there are few."""
        if self.count() >= FEW_MEASUREMENTS:
            return self.estimate().variance_of_one
        if not self.controls:
            return 0.0
        every, weights = np.array(self.controls), np.array(self.control_weights)
        return float(
            np.average((every - np.average(every, axis=0, weights=weights)) ** 2, axis=0, weights=weights).max()
        )

    def estimate(self) -> Estimate:
        """Return the regression estimate of the mean rise."""
        weight, rise, controls = (np.array(each) for each in zip(*self.measured, strict=True))
        every, every_weight, count = np.array(self.controls), np.array(self.control_weights), self.count()
        means = np.average(controls, axis=0, weights=weight)
        kept = independent_controls(weight, controls - means, count)
        centered = controls[:, kept] - means[kept]
        coefficients = weighted_fit(weight, centered, rise - np.average(rise, weights=weight))
        left = rise - np.average(rise, weights=weight) - centered @ coefficients
        residual = float(np.average(left**2, weights=weight) * count / max(1, count - len(kept) - 1))
        difference = np.average(every[:, kept], axis=0, weights=every_weight) - means[kept]
        covariance = (centered * weight[:, None]).T @ centered / weight.sum()
        leverage = float(difference @ np.linalg.solve(covariance, difference)) if kept else 0.0
        combined = every[:, kept] @ coefficients
        spread = np.average((combined - np.average(combined, weights=every_weight)) ** 2, weights=every_weight)
        return Estimate(
            float(np.average(rise, weights=weight) + difference @ coefficients),
            residual * (1 + leverage) / count + float(spread) / effective_count(self.control_weights),
            residual * (1 + leverage),
        )


@dataclass
class Group:
    """A group of features, with what was measured over all rounds and over the recent ones."""

    features: list[int]
    priority: float
    total: Sums = field(default_factory=Sums)
    recent: Sums = field(default_factory=Sums)
    credit: float = 0.0


def proportions(values: list[float]) -> list[float]:
    """Return values divided by their sum; equal ones if all are 0."""
    return [value / sum(values) if sum(values) > 0 else 1 / len(values) for value in values]


def effective_count(weights: list[float]) -> float:
    """Return the number of equal weights that would determine a mean as well."""
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if weights else 0.0


def weighted_fit(weight: Floats, columns: Floats, values: Floats) -> Floats:
    """Return the coefficients of a weighted least squares fit without a constant."""
    root = np.sqrt(weight)
    return np.asarray(np.linalg.lstsq(columns * root[:, None], values * root, rcond=None)[0], dtype=np.float64)


def independent_controls(weight: Floats, centered: Floats, count: float) -> list[int]:
    """Return the numbers of the controls that those before them do not explain, no more than measurements allow."""
    kept: list[int] = []
    for k in range(centered.shape[1]):
        own, before = centered[:, k], centered[:, kept]
        left = own - before @ weighted_fit(weight, before, own)
        unexplained = np.average(left**2, weights=weight) > MIN_UNEXPLAINED * np.average(own**2, weights=weight)
        if unexplained and count >= MEASUREMENTS_PER_CONTROL * (len(kept) + 1):
            kept.append(k)
    return kept


class LiteralImportance:
    """Runs rounds of the reference learner and measures as the compiled core does."""

    def __init__(self, groups: list[Group], learner: ReferenceMetricLearner, seed: int) -> None:
        self.groups, self.learner, self.seed = groups, learner, seed
        self.rows: list[Floats] = []
        self.gradients: list[Floats] = []

    def learn(self, row: Floats, label: float) -> None:
        """Run one round."""
        clock = self.learner.clock
        if clock > 0:
            gradient = self.learner.gradient(row)
            self._measure(row, gradient, label)
            if len(self.rows) < MAX_ROWS:
                self.rows.append(row)
                self.gradients.append(gradient)
            elif (place := random_bits(self.seed, clock, 1) % clock) < MAX_ROWS:
                self.rows[place], self.gradients[place] = row, gradient
        self.learner.learn(row, label)

    def _measure(self, row: Floats, gradient: Floats, label: float) -> None:
        if not self.rows:
            return
        place = random_bits(self.seed, self.learner.clock, 0) % len(self.rows)
        source, average = self.rows[place], (gradient + self.gradients[place]) / 2
        ridge = self.learner.ridge.coefficients[:-1] / self.learner.views[0].scale
        usual, chosen = self.learner.predict(row), self._choose()
        for group in self.groups:
            move = (source - row)[group.features]
            changes = [float(slope[group.features] @ move) for slope in (ridge, gradient, average)]
            replacements = [self.learner.within_labels(usual + change) for change in changes]
            controls = np.array([(other - label) ** 2 - (usual - label) ** 2 for other in replacements])
            if group is chosen:
                replaced = row.copy()
                replaced[group.features] = source[group.features]
                rise = (self.learner.predict(replaced) - label) ** 2 - (usual - label) ** 2
                self._add_measurement(group, rise, controls)
            group.total.add_controls(controls, 1.0)
            group.recent.add_controls(controls, 1 - 1 / self._memory())

    def _add_measurement(self, group: Group, rise: float, controls: Floats) -> None:
        weight = self._stride() * self._weight(group)
        for each in self.groups:
            each.recent.fade_measured(1 - self._stride() / self._memory())
        for sums in (group.total, group.recent):
            sums.measured.append(Measurement(weight, rise, controls))

    def _memory(self) -> float:
        return max(512.0, self.learner.clock / 4)

    def _stride(self) -> int:
        clock = self.learner.clock
        return 5 if clock < 500 else 15 if clock < 1500 else 30

    def _choose(self) -> Group | None:
        if self.learner.clock < FIRST_ROUND or self.learner.clock % self._stride():
            return None
        if self.learner.clock < ROUNDS_IN_TURN:
            return min(self.groups, key=lambda group: len(group.total.measured))
        return max(self.groups, key=lambda group: group.credit)

    def _weight(self, chosen: Group) -> float:
        """Return the weight of a measurement relative to others at the time, and update what each group is due."""
        if self.learner.clock < ROUNDS_IN_TURN:
            return float(len(self.groups))
        equal = 1 / len(self.groups)
        fractions = [
            EQUAL_FRACTION * equal + TOTAL_FRACTION * total + RECENT_FRACTION * recent
            for total, recent in zip(
                proportions([group.priority * math.sqrt(group.total.variance_of_one()) for group in self.groups]),
                proportions([group.priority * math.sqrt(group.recent.variance_of_one()) for group in self.groups]),
                strict=True,
            )
        ]
        for group, fraction in zip(self.groups, fractions, strict=True):
            group.credit += fraction
        chosen.credit -= 1
        return 1 / fractions[self.groups.index(chosen)]
