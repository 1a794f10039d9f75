"""Literal version of the measurement of importance, for a learner that does not use the past."""

from dataclasses import dataclass, field

import numpy as np

from ellipack import MetricRegressor
from ellipack.learners.metric.config import MetricConfig

MASK = 2**64 - 1
FIRST_ROUND, FIRST_MEASUREMENTS, MAX_ROWS, EQUAL_FRACTION = 16, 8, 256, 0.25


def random_bits(seed: int, round_: int, stream: int) -> int:
    """Return 64 bits of SplitMix64."""
    z = (seed * 0xD1342543DE82EF95 + stream) & MASK
    for step in (0, round_):
        z = (z + (step + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
    return z


@dataclass
class Group:
    """A group of features, and all its measurements: weights, rises and controls."""

    features: list[int]
    priority: float
    measured: list[tuple[float, float, float]] = field(default_factory=list)
    controls: list[float] = field(default_factory=list)
    credit: float = 0.0

    def uncertainty(self) -> float:
        """Return the standard deviation that a weighted regression of the rises on the controls leaves."""
        if not self.measured:
            return 0.0
        weight, rise, control = np.array(self.measured).T
        rise, control = rise - np.average(rise, weights=weight), control - np.average(control, weights=weight)
        square = (weight * control**2).sum()
        slope = (weight * rise * control).sum() / square if square > 0 else 0.0
        return float(self.priority * np.sqrt(np.average((rise - slope * control) ** 2, weights=weight)))


class LiteralImportance:
    """Runs rounds of a regressor and measures as the compiled core does, with public predictions only."""

    def __init__(self, groups: list[Group], seed: int = 0) -> None:
        self.groups, self.seed = groups, seed
        self.learner = MetricRegressor(past=False, random_state=seed, config=MetricConfig(importance=False))
        self.rows: list[np.ndarray] = []
        self.clock = 0

    def learn(self, row: np.ndarray, label: float) -> None:
        """Run one round."""
        if self.clock > 0:
            self._measure(row, label)
            if len(self.rows) < MAX_ROWS:
                self.rows.append(row)
            elif (place := random_bits(self.seed, self.clock, 1) % self.clock) < MAX_ROWS:
                self.rows[place] = row
        self.learner.partial_fit(row[None], [label])
        self.clock += 1

    def _measure(self, row: np.ndarray, label: float) -> None:
        if not self.rows:
            return
        source = self.rows[random_bits(self.seed, self.clock, 0) % len(self.rows)]
        parts = self.learner.state_.core.parts().plain
        slopes = parts.regressions.ridge.coefficients[:-1] / parts.views[0].scale
        chosen = self._choose()
        for group in self.groups:
            control = float(sum(slopes[k] * (source[k] - row[k]) for k in group.features) ** 2)
            if group is chosen:
                replaced = row.copy()
                replaced[group.features] = source[group.features]
                usual, other = self.learner.predict([row, replaced]).tolist()
                weight = self._weight(group)
                group.measured.append((weight, (other - label) ** 2 - (usual - label) ** 2, control))
            group.controls.append(control)

    def _choose(self) -> Group | None:
        stride = 5 if self.clock < 500 else 10 if self.clock < 1500 else 20
        if self.clock < FIRST_ROUND or self.clock % stride:
            return None
        rarest = min(self.groups, key=lambda group: len(group.measured))
        if len(rarest.measured) < FIRST_MEASUREMENTS:
            return rarest
        return max(self.groups, key=lambda group: group.credit)

    def _weight(self, chosen: Group) -> float:
        """Return the weight of a measurement, and update what each group is due."""
        if min(len(group.measured) for group in self.groups) < FIRST_MEASUREMENTS:
            return float(len(self.groups))
        total, equal = sum(group.uncertainty() for group in self.groups), 1 / len(self.groups)
        fractions = [
            EQUAL_FRACTION * equal + (1 - EQUAL_FRACTION) * (group.uncertainty() / total if total > 0 else equal)
            for group in self.groups
        ]
        for group, fraction in zip(self.groups, fractions, strict=True):
            group.credit += fraction
        chosen.credit -= 1
        return 1 / fractions[self.groups.index(chosen)]
