"""Literal version of the measurement of importance, for a learner that does not use the past."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ellipack.validation import Floats
from tests.reference.metric_learner import ReferenceMetricLearner

MASK = 2**64 - 1
FIRST_ROUND, EARLY_ROUNDS, EQUAL_ROUNDS, MAX_ROWS = 16, 128, 500, 1024
EQUAL_FRACTION, RELATIVE_FRACTION, RECENT_FRACTION = 0.25, 0.5, 0.25
MAX_PAIRED = 16  # features that are replaced together, beyond which products of two features are left out
EVEN_PART, MEAN_CHANGE_PART, LARGEST_RATIO, SIZE_KEEP = 0.25, 0.5, 20.0, 1 - 1 / 256
MIN_UNEXPLAINED = 1e-3  # of the variance of a control by those before it
MEASUREMENTS_PER_CONTROL, FEW_MEASUREMENTS = 3, 4
FIRST_MEASUREMENTS, LEAST_EFFECTIVE, FRACTION_OF_NEW = 6, 2, 1.5
FRACTION_OF_UNCERTAIN = 0.5
MEASUREMENTS_PER_DIVISION, PRIOR_MEASUREMENTS = 8, 1
MIN_ROWS = 64  # for the model of slopes
SOURCE_PART = 0.25  # of the variance of a rise, that the earlier rows have


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
    """Mean rise, and the variance of this estimate."""

    rise: float
    variance: float


@dataclass
class Sums:
    """All measurements of a group, and its controls at all rounds with different values, with weights."""

    measured: list[Measurement] = field(default_factory=list)
    controls: list[Floats] = field(default_factory=list)
    control_weights: Floats = field(default_factory=lambda: np.zeros(0))
    differs: list[bool] = field(default_factory=list)
    round_weights: Floats = field(default_factory=lambda: np.zeros(0))

    def discount_measured(self, keep: float) -> None:
        """Multiply the weights of the measurements."""
        self.measured = [each._replace(weight=keep * each.weight) for each in self.measured]

    def add_round(self, differs: bool, controls: Floats, weight: float, keep: float) -> None:
        """Add a round, after multiplying the weights of those before; its controls only if values differ."""
        self.round_weights = np.append(keep * self.round_weights, weight)
        self.differs.append(differs)
        self.control_weights = keep * self.control_weights
        if differs:
            self.control_weights = np.append(self.control_weights, weight)
            self.controls.append(controls)

    def fraction(self) -> float:
        """Return the fraction of the rounds with different values."""
        return float(np.average(self.differs, weights=self.round_weights))

    def count(self) -> float:
        """Return the effective number of measurements."""
        return effective_count([each.weight for each in self.measured])

    def variance_of_one(self, every: "Sums") -> float:
        """Return the variance of a single measurement, or that of a control if there are few."""
        if not self.controls:
            return 0.0
        if self.count() >= FEW_MEASUREMENTS:
            kept, coefficients, _ = every.fit()
            left, weight = self._residuals(kept, coefficients), self._arrays()[0]
            variance = float(np.average(left**2, weights=weight)) * self._factor(len(kept))
        else:
            variance = float(self.control_variances().max())
        return self.fraction() ** 2 * variance

    def relative_variance_of_one(self) -> float:
        """Return the same relative to the rise, which counts as at least its standard error."""
        rise, variance = self.estimate(self)
        scale = max(rise, math.sqrt(variance))
        return self.variance_of_one(self) / scale if scale > 0 else 0.0

    def estimate(self, every: "Sums", prior: float = 0.0) -> Estimate:
        """Return the regression estimate of the mean rise, with the coefficients of all rounds.

        It is the regression over all rounds at the mean of these controls, plus the mean of these residuals and of as
        many zeros as `prior` says. The rise is that in rounds with different values, times their fraction.
        """
        if not every.measured or not self.controls:
            return Estimate(0.0, 0.0)
        kept, coefficients, covariance = every.fit()
        all_controls, all_weights = np.array(self.controls)[:, kept], self.control_weights
        mean_rise, mean_controls = every.means(kept)
        part, own_mean, own_controls = 0.0, mean_rise, mean_controls
        if self.measured:
            part = self.count() / (self.count() + prior)
            own_mean, own_controls = self.means(kept)
        residual = own_mean - mean_rise - (own_controls - mean_controls) @ coefficients
        difference = np.average(all_controls, axis=0, weights=all_weights) - mean_controls
        rise = mean_rise + difference @ coefficients + part * residual
        difference -= part * (own_controls - mean_controls)
        leverage = float(difference @ np.linalg.solve(covariance, difference)) if kept else 0.0
        of_all = every.residual_variance(kept, coefficients, len(kept))
        of_these = part * self.residual_variance(kept, coefficients, 0) if self.measured else 0.0
        of_these = max(of_these, of_all * every.count() / (self.count() + prior))
        fraction = self.fraction()
        spread, own_spread = (each.control_variances()[kept] @ coefficients**2 for each in (every, self))
        explained = every.explained_variance(kept, coefficients) * own_spread / spread if spread > 0 else 0.0
        of_rounds = fraction * explained + fraction * (1 - fraction) * rise**2  # some have equal values: no rise
        variance = fraction**2 * (of_these + leverage * of_all) + of_rounds * self._variance_of_means()
        return Estimate(fraction * float(rise), float(variance))

    def means(self, kept: list[int]) -> tuple[float, Floats]:
        """Return the weighted means of the measured rises and of their controls."""
        weight, rise, controls = self._arrays()
        return float(np.average(rise, weights=weight)), np.average(controls[:, kept], axis=0, weights=weight)

    def fit(self) -> tuple[list[int], Floats, Floats]:
        """Return the controls that are used, their coefficients and their covariances."""
        weight, rise, controls = self._arrays()
        centered = controls - np.average(controls, axis=0, weights=weight)
        kept = independent_controls(weight, centered, len(rise))
        coefficients = weighted_fit(weight, centered[:, kept], rise - np.average(rise, weights=weight))
        return kept, coefficients, (centered[:, kept] * weight[:, None]).T @ centered[:, kept] / weight.sum()

    def control_variances(self) -> Floats:
        """Return the variance of each control."""
        controls, weights = np.array(self.controls), self.control_weights
        gaps = controls - np.average(controls, axis=0, weights=weights)
        return np.asarray(np.average(gaps**2, axis=0, weights=weights))

    def explained_variance(self, kept: list[int], coefficients: Floats) -> float:
        """Return the variance of what the controls explain of the measured rises."""
        weight, _, controls = self._arrays()
        explained = controls[:, kept] @ coefficients
        return float(np.average((explained - np.average(explained, weights=weight)) ** 2, weights=weight))

    def residual_variance(self, kept: list[int], coefficients: Floats, rank: int) -> float:
        """Return the variance of the mean residual, by the squares of the weighted residuals."""
        weight, _, _ = self._arrays()
        squares = ((weight * self._residuals(kept, coefficients)) ** 2).sum()
        return float(squares / weight.sum() ** 2) * self._factor(rank)

    def _residuals(self, kept: list[int], coefficients: Floats) -> Floats:
        weight, rise, controls = self._arrays()
        left = rise - controls[:, kept] @ coefficients
        return np.asarray(left - np.average(left, weights=weight))

    def _variance_of_means(self) -> float:
        """Return the variance of the mean of the controls relative to theirs, by rounds and by earlier rows."""
        rounds = sum(self.round_weights)
        sources = rounds / 2
        if rounds > MAX_ROWS:
            same = 2 * MAX_ROWS + MAX_ROWS * math.log(rounds / MAX_ROWS) + (rounds**2 - MAX_ROWS**2) / MAX_ROWS / 2
            sources = rounds**2 / same
        return self.fraction() / effective_count(self.control_weights) + SOURCE_PART / sources

    def _factor(self, rank: int) -> float:
        return self.count() / max(1.0, self.count() - rank - 1)

    def _arrays(self) -> tuple[Floats, Floats, Floats]:
        weight, rise, controls = (np.array(each) for each in zip(*self.measured, strict=True))
        return weight, rise, controls


@dataclass
class Group:
    """A group of features, with what was measured over all rounds and over the recent ones."""

    features: list[int]
    priority: float
    total: Sums = field(default_factory=Sums)
    recent: Sums = field(default_factory=Sums)
    fraction: float = 0.0
    changes: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def has_never_differed(self) -> bool:
        """Return whether the values were the same in all rounds."""
        return bool(self.total.differs) and not any(self.total.differs)


def proportions(values: list[float]) -> list[float]:
    """Return values divided by their sum; equal ones if all are 0."""
    return [value / sum(values) if sum(values) > 0 else 1 / len(values) for value in values]


def effective_count(weights: list[float] | Floats) -> float:
    """Return the number of equal weights that would determine a mean as well."""
    return sum(weights) ** 2 / sum(weight**2 for weight in weights) if len(weights) else 0.0


def discounted_mean(values: list[float]) -> float:
    """Return the mean of values, of which the last ones count most; 0 if there are none."""
    weights = SIZE_KEEP ** np.arange(len(values))[::-1]
    return float(np.average(values, weights=weights)) if values else 0.0


def weighted_fit(weight: Floats, columns: Floats, values: Floats) -> Floats:
    """Return the coefficients of a weighted least squares fit without a constant."""
    root = np.sqrt(weight)
    return np.asarray(np.linalg.lstsq(columns * root[:, None], values * root, rcond=None)[0], dtype=np.float64)


def independent_controls(weight: Floats, centered: Floats, count: int) -> list[int]:
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
        self.slope_model: Callable[[Floats], Floats] | None = None
        self.curvatures = np.zeros((0, 0))

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
        phases = len(self.learner.phases)
        self.learner.learn(row, label)
        if len(self.learner.phases) > phases:
            self._fit_slopes()

    def _fit_slopes(self) -> None:
        """Regress the slopes on the rows, in the units of the first view, with a penalty."""
        view = self.learner.views[0]
        rows, slopes = view.standardize(np.array(self.rows)), np.array(self.gradients) * view.scale
        if len(rows) < MIN_ROWS:
            return
        mean, mean_slope = rows.mean(axis=0), slopes.mean(axis=0)
        d, penalty = rows.shape[1], len(rows) ** 0.25
        table = np.vstack([rows - mean, penalty * np.eye(d)])
        coefficients = np.linalg.lstsq(table, np.vstack([slopes - mean_slope, np.zeros((d, d))]), rcond=None)[0]
        self.curvatures = (coefficients + coefficients.T) / 2
        self.slope_model = lambda row: mean_slope + (row - mean) @ self.curvatures

    def _quadratic_change(self, row: Floats, source: Floats, features: list[int]) -> float:
        """Return the change of a quadratic function with the modeled slopes, by features of another row."""
        if self.slope_model is None:
            return 0.0
        start, other = self.learner.views[0].standardize(np.array([row, source]))
        gap = np.zeros(len(row))
        gap[features] = (other - start)[features]
        curvatures = self.curvatures if len(features) <= MAX_PAIRED else np.diag(np.diag(self.curvatures))
        return float(self.slope_model(start) @ gap + gap @ curvatures @ gap / 2)

    def _measure(self, row: Floats, gradient: Floats, label: float) -> None:
        usual = self.learner.predict(row)
        if self.rows:
            self._replace(row, gradient, label, usual)

    def _replace(self, row: Floats, gradient: Floats, label: float, usual: float) -> None:
        source = self.rows[random_bits(self.seed, self.learner.clock, 0) % len(self.rows)]
        slopes = *self._global_slopes(), gradient
        changes = [self._changes(row, source, slopes, each.features) for each in self.groups]
        moves = np.array([[self.learner.within_labels(usual + c) - usual for c in each] for each in changes])
        controls = moves * (moves + 2 * (usual - label))
        differs = [bool((row != source)[each.features].any()) for each in self.groups]
        mean_moves = np.abs(moves).mean(axis=1)
        sizes = [self._size(*pair, abs(label - usual)) for pair in zip(self.groups, mean_moves, strict=True)]
        chosen, probability = self._choose(differs, sizes)
        weight = min(1.0, (self.learner.clock + 1) / EARLY_ROUNDS)
        for k, group in enumerate(self.groups):
            group.recent.discount_measured(1 - 1 / self._memory())
            if group is chosen:
                replaced = row.copy()
                replaced[group.features] = source[group.features]
                rise = (self.learner.predict(replaced) - label) ** 2 - (usual - label) ** 2
                for sums in (group.total, group.recent):
                    sums.measured.append(Measurement(weight / probability, rise, controls[k]))
            group.total.add_round(differs[k], controls[k], weight, 1.0)
            group.recent.add_round(differs[k], controls[k], weight, 1 - 1 / self._memory())
            if differs[k]:
                group.changes.append(mean_moves[k])
                group.sizes.append(sizes[k])
        count = sum(len(group.total.measured) for group in self.groups)
        if chosen is not None and self.learner.clock >= EQUAL_ROUNDS and count % MEASUREMENTS_PER_DIVISION == 0:
            self._find_fractions()

    def _global_slopes(self) -> tuple[Floats, Floats]:
        """Return the slopes of both ridge regressions."""
        scale = self.learner.views[0].scale
        return self.learner.ridge.coefficients[:-1] / scale, self.learner.forgetting.coefficients[:-1] / scale

    def _changes(self, row: Floats, source: Floats, slopes: tuple[Floats, ...], features: list[int]) -> list[float]:
        """Return by how much each surrogate changes with the features of another row."""
        linear = [float(slope[features] @ (source - row)[features]) for slope in slopes]
        return [*linear, self._quadratic_change(row, source, features)]

    def _size(self, group: Group, change: float, error: float) -> float:
        """Return about how large the rise in squared error is."""
        move = change + MEAN_CHANGE_PART * discounted_mean(group.changes)
        return move * (move + 2 * error)

    def _memory(self) -> float:
        return max(512.0, self.learner.clock / 4)

    def _stride(self) -> int:
        clock = self.learner.clock
        return 2 if clock < 120 else 4 if clock < EQUAL_ROUNDS else 26

    def _choose(self, differs: list[bool], sizes: list[float]) -> tuple[Group | None, float]:
        """Draw the group to measure; return it with its probability."""
        if self.learner.clock < FIRST_ROUND:
            return None, 0.0
        probabilities = np.array([self._probability(*pair) for pair in zip(self.groups, sizes, strict=True)]) * differs
        probabilities /= max(1.0, probabilities.sum())
        drawn = (random_bits(self.seed, self.learner.clock, 2) >> 11) / 2**53
        place = int(np.searchsorted(np.cumsum(probabilities), drawn, side="right"))
        if place == len(self.groups):
            return None, 0.0
        return self.groups[place], float(probabilities[place])

    def _probability(self, group: Group, size: float) -> float:
        fractions = [each.fraction for each in self.groups]
        able = [each for each in self.groups if not each.has_never_differed()]
        needs = [each.priority / (1 + len(each.total.measured)) for each in able]
        need = group.priority / (1 + len(group.total.measured))
        new = [
            each
            for each in able
            if len(each.total.measured) < FIRST_MEASUREMENTS or each.total.count() < LEAST_EFFECTIVE
        ]
        fraction = group.fraction if any(fractions) else need / (sum(needs) or 1.0)
        if any(fractions) and any(group is each for each in new):
            few = len(group.total.measured) < FIRST_MEASUREMENTS
            fraction = max(fraction, (FRACTION_OF_NEW if few else FRACTION_OF_UNCERTAIN) / len(new))
        mean, differing = discounted_mean(group.sizes), group.total.fraction() if group.total.differs else 0.0
        ratio = min(LARGEST_RATIO, size / mean) if mean > 0 else 1.0
        return fraction / (differing or 1.0) * (EVEN_PART + (1 - EVEN_PART) * ratio) / self._stride()

    def _find_fractions(self) -> None:
        """Divide the measurements among the groups."""
        priorities = [0.0 if group.has_never_differed() else group.priority for group in self.groups]
        relative, recent = (
            proportions([need * math.sqrt(variance) for need, variance in zip(priorities, each, strict=True)])
            for each in (
                [group.total.relative_variance_of_one() for group in self.groups],
                [group.recent.variance_of_one(group.total) for group in self.groups],
            )
        )
        equal = proportions(priorities)
        for group, *parts in zip(self.groups, equal, relative, recent, strict=True):
            group.fraction = float(np.dot([EQUAL_FRACTION, RELATIVE_FRACTION, RECENT_FRACTION], parts))
