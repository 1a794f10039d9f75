"""Combination of the predictions of two learners for the rows of a key: that of all keys, and its own.

**Prediction.** A Bernstein aggregation with two experts (`ellipack.learners.aggregation`), which have the same weight
at first. While the learner of the key has more weight than that of all keys, their weighted mean is predicted.
Otherwise the learner of all keys predicts alone: a new key, and a key whose own learner is no better, are predicted as
if the key had no learner. The theorem holds for the weighted mean: its squared errors add up to little more than those
of the better learner, on the rows of each key. It does not cover how often the prediction changes between the weighted
mean and the learner of all keys, for which an adversary could make the weights equal again and again.

**Unit.** Errors are measured in the width of the interval that the learner of all keys gives the row: half of its
interval of coverage 0.8. An error of more than 20 units counts as 20, so that one erroneous label does not spoil the
weights; the theorem holds for labels within 20 units. A round in which the unit is 0 or infinite, because no error is
known, changes nothing.

**Intervals.** The calibration of `ellipack.learners.intervals` runs on errors in units. A new key has intervals about
as wide as those of the learner of all keys. Each key then calibrates its own, so that the theorem on coverage holds for
the rows of each key.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from ellipack._core import BernsteinAggregation, ConformalIntervals
from ellipack.learners.aggregation import uniform_aggregation, weights_from_archive, weights_to_archive
from ellipack.learners.intervals import (
    COVERAGES,
    Bounds,
    Predictions,
    intervals_from_archive,
    intervals_to_archive,
)
from ellipack.serialization import Archive
from ellipack.validation import Floats

_MAX_ERROR = 20.0  # in units; larger errors count as this
_LARGEST = 1e300  # of an error in units
_NORMAL_ROUNDS = 4  # rounds that the initial mean error counts as
_UNIT_COVERAGE = COVERAGES.index(0.8)
_LOWER, _UPPER = _UNIT_COVERAGE, len(COVERAGES) + _UNIT_COVERAGE
_INFINITE: Final[Bounds] = np.repeat([-np.inf, np.inf], len(COVERAGES))
_ZERO: Final = np.zeros(1)


class PredictionPair(NamedTuple):
    """What two learners predict for a row.

    Attributes
    ----------
    pooled : float
        Prediction of the learner of all keys.
    own : float
        Prediction of the learner of the key; the same in the first round of the key.
    unit : float
        Width of the interval around `pooled`, by which errors are measured.
    """

    pooled: float
    own: float
    unit: float


class PublishedPrediction(NamedTuple):
    """Combined prediction for a row.

    Attributes
    ----------
    value : float
        Prediction.
    bounds : array of shape (2 * n_coverages,)
        Its intervals of all coverages.
    """

    value: float
    bounds: Bounds


class Combination:
    """Combined prediction of two learners for the rows of a key.

    Parameters
    ----------
    aggregation : BernsteinAggregation
        Weights of the two learners.
    intervals : ConformalIntervals
        Calibration of the intervals, in units.

    Examples
    --------
    >>> combination = Combination.initial()
    >>> combination.predict(PredictionPair(pooled=1.0, own=2.0, unit=0.5)).value
    1.0
    >>> for _ in range(9):
    ...     published = combination.learn(PredictionPair(pooled=1.0, own=2.0, unit=0.5), label=2.0)
    >>> round(published.value, 1)
    1.9
    """

    def __init__(self, aggregation: BernsteinAggregation, intervals: ConformalIntervals) -> None:
        self.aggregation = aggregation
        self.intervals = intervals

    @classmethod
    def initial(cls) -> "Combination":
        """Return the combination of a new key."""
        widths = ConformalIntervals().widths
        mean_error = 1 / float(widths[_UPPER])  # then the interval of coverage 0.8 is one unit wide
        intervals = ConformalIntervals(mean_error, _NORMAL_ROUNDS, 0, widths, np.zeros(3), 0.0)
        return cls(uniform_aggregation(2), intervals)

    @property
    def own_weight(self) -> float:
        """Weight of the learner of the key in the prediction; 0 unless it is larger than that of all keys."""
        weight = float(self.aggregation.weights()[1])
        return weight if weight > 0.5 else 0.0

    def predict(self, pair: PredictionPair) -> PublishedPrediction:
        """Return the combined prediction and its intervals."""
        value = _mean(pair, self.own_weight)
        return PublishedPrediction(value, _bounds(value, pair.unit, self.intervals.around(_ZERO)[0]))

    def predict_rows(self, pooled: Predictions, own: Floats) -> Predictions:
        """Return the combined predictions of many rows, all from the same state, with their intervals."""
        values = pooled.values + self.own_weight * (own - pooled.values)
        around = self.intervals.around(_ZERO)[0]
        bounds = [
            _bounds(value, unit, around) for value, unit in zip(values.tolist(), units(pooled).tolist(), strict=True)
        ]
        return Predictions(values, np.array(bounds).reshape(len(values), -1))

    def learn(self, pair: PredictionPair, label: float) -> PublishedPrediction:
        """Return the combined prediction and its intervals, and learn the label."""
        published = self.predict(pair)
        self._update(pair, label, published.value, self.intervals.around(_ZERO)[0])
        return published

    def learn_late(self, pair: PredictionPair, label: float, published: PublishedPrediction) -> None:
        """Learn the label of a row for which a prediction and its intervals were published before."""
        if 0 < pair.unit < math.inf:
            self._update(pair, label, published.value, (published.bounds - published.value) / pair.unit)

    def _update(self, pair: PredictionPair, label: float, value: float, around: Bounds) -> None:
        """Update by a label, for which the intervals `around` were published, in units."""
        if not 0 < pair.unit < math.inf:
            return
        error = _clip((label - value) / pair.unit, _LARGEST)
        self.intervals.learn_label(error, around)
        self.intervals.learn_error(_clip(error, _MAX_ERROR), 1.0)
        mean = _mean(pair, float(self.aggregation.weights()[1]))
        near = mean + _clip(label - mean, _MAX_ERROR * pair.unit)
        self.aggregation.update(np.array([pair.pooled, pair.own]), mean, near)

    def to_archive(self) -> Archive:
        """Return an archive of the combination."""
        return Archive().with_parts(
            aggregation=weights_to_archive(self.aggregation), intervals=intervals_to_archive(self.intervals)
        )

    @classmethod
    def from_archive(cls, saved: Archive, rounds: int) -> "Combination":
        """Restore the combination of a key after a number of rounds; raise `ModelFileError` if it is not valid."""
        return cls(
            weights_from_archive(saved.part("aggregation"), 2, rounds),
            intervals_from_archive(saved.part("intervals"), rounds + _NORMAL_ROUNDS),
        )


def units(pooled: Predictions) -> Floats:
    """Return the unit of each row.

    Examples
    --------
    >>> bounds = np.concatenate([-np.arange(1.0, 9.0), np.arange(1.0, 9.0)])[None]
    >>> units(Predictions(np.zeros(1), bounds))
    array([4.])
    """
    return np.asarray((pooled.bounds[:, _UPPER] - pooled.bounds[:, _LOWER]) / 2)


def _mean(pair: PredictionPair, own_weight: float) -> float:
    """Return the weighted mean of both predictions, exactly the same if they are the same."""
    return pair.pooled + own_weight * (pair.own - pair.pooled)


def _clip(value: float, most: float) -> float:
    return min(max(value, -most), most)


def _bounds(value: float, unit: float, around: Bounds) -> Bounds:
    """Return intervals around a value that are given in units."""
    return _INFINITE if unit == math.inf else np.asarray(value + unit * around)
