"""Prediction intervals, literally: one side, one coverage at a time."""

import math
from statistics import NormalDist

COVERAGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
MEMORY = 200  # rounds of the mean error
LEAST = 0.001  # width
MAX_RELATIVE_ERROR = 10.0
EXCESS_MEMORY = 400  # rounds of the excess of misses
MAX_EXCESS = 32.0


def last_step(coverage: float) -> float:
    """Return the limit of the steps."""
    return round(0.04 * math.sqrt(0.2 / (1 - coverage)), 4)


def initial_width(coverage: float) -> float:
    """Return the quantile of a normal distribution, in units of its mean absolute error."""
    return round(NormalDist().inv_cdf((1 + coverage) / 2) / math.sqrt(2 / math.pi), 3)


def is_counted(label: float, bounds: list[float]) -> bool:
    """Return whether a label counts: not if its intervals were infinite, or the label itself."""
    return not math.isinf(bounds[0]) and set(bounds) != {label}


class ReferenceIntervals:
    """Calibrated intervals around given predictions."""

    def __init__(self) -> None:
        self.labels = self.rounds = 0
        self.mean_error = 0.0
        self.scale_losses = dict.fromkeys((0.0, 0.5, 1.0), 0.0)
        self.excess_misses = 0.0
        self.widths = {(side, c): initial_width(c) for side in ("lower", "upper") for c in COVERAGES}

    def around(self, prediction: float, relative_scale: float = 1.0) -> list[float]:
        """Return the lower ends of all coverages, then the upper ends."""
        if self.labels < 2:
            return [-math.inf] * len(COVERAGES) + [math.inf] * len(COVERAGES)
        ends, unit = [], self.mean_error * self.weighted_scale(relative_scale) * self.scale_factor()
        for side, sign in (("lower", -1), ("upper", 1)):
            for coverage in COVERAGES:
                widths = [self.widths[side, c] for c in COVERAGES if c <= coverage]
                ends.append(prediction + sign * max(widths) * unit)
        return ends

    def weighted_scale(self, relative_scale: float) -> float:
        """Return the mean of powers of the relative scale, weighted by their losses."""
        least = min(self.scale_losses.values())
        weights = {power: math.exp(least - loss) for power, loss in self.scale_losses.items()}
        total: float = sum(weights[power] * relative_scale**power for power in weights)
        return total / sum(weights.values())

    def scale_factor(self) -> float:
        """Return what the scale is multiplied by because of the misses of the last rounds."""
        return math.exp((self.excess_misses / MAX_EXCESS) ** 3)

    def learn(self, prediction: float, label: float, bounds: list[float]) -> float:
        """Learn a label by the intervals that were published for it; return the relative error."""
        self.learn_label(label, bounds)
        return self.learn_error(label - prediction, 1.0)

    def learn_label(self, label: float, bounds: list[float]) -> None:
        """Move each side of each interval."""
        if not is_counted(label, bounds):
            return
        count = len(COVERAGES)
        for k, coverage in enumerate(COVERAGES):
            tail = (1 - coverage) / 2
            step = max(1.25 / (self.rounds + 4), last_step(coverage))
            below, above = label < bounds[k], label > bounds[count + k]
            for side, own, other in (("lower", below, above), ("upper", above, below)):
                move = step * ((own - tail) + (other - tail) / 2)
                self.widths[side, coverage] = max(LEAST, self.widths[side, coverage] * math.exp(move))
        self.rounds += 1

    def learn_misses(self, label: float, bounds: list[float]) -> None:
        """Compare the number of intervals that a label has missed with the expected number."""
        if is_counted(label, bounds):
            lower, upper = bounds[: len(COVERAGES)], bounds[len(COVERAGES) :]
            misses = sum(not low <= label <= high for low, high in zip(lower, upper, strict=True))
            excess = misses - sum(1 - coverage for coverage in COVERAGES)
            kept = (1 - 1 / EXCESS_MEMORY) * self.excess_misses
            self.excess_misses = min(max(kept + excess, -MAX_EXCESS), MAX_EXCESS)

    def learn_error(self, error: float, relative_scale: float) -> float:
        """Update the mean error and the losses of scales, and return the error in units of the mean error before."""
        relative = min(abs(error) / self.mean_error, MAX_RELATIVE_ERROR) if self.mean_error > 0 else 1.0
        if relative_scale != 1.0:
            for power, loss in self.scale_losses.items():
                scale = relative_scale**power
                self.scale_losses[power] = (1 - 1 / MEMORY) * loss + math.log(scale) + relative / scale
        if self.labels > 0:
            self.mean_error += (abs(error) - self.mean_error) / min(self.labels, MEMORY)
        self.labels += 1
        return relative
