"""Calibration that is put off until intervals are asked for, literally: one round at a time."""

from copy import deepcopy
from typing import Any

import numpy as np

from ellipack.validation import Floats

MOST_ERRORS = 2048


class ReferenceDeferral:
    """Calibration of a learner whose scale is the mean error.

    Parameters
    ----------
    intervals : ConformalIntervals
        Initial calibration. It learns by its methods for single labels and errors.
    """

    def __init__(self, intervals: Any) -> None:
        self.calibrated, self.errors = intervals, list[float]()

    def learn(self, prediction: float, label: float) -> None:
        """Run a round whose intervals are not asked for."""
        self.errors = [*self.errors, label - prediction][-MOST_ERRORS:]

    def learn_with_interval(self, prediction: float, label: float) -> Floats:
        """Run a round whose intervals are asked for, and return them."""
        self.calibrated, self.errors = self.intervals(), []
        return _learn(self.calibrated, prediction, label)

    def intervals(self) -> Any:
        """Return the calibration after the deferred rounds."""
        intervals = deepcopy(self.calibrated)
        for error in self.errors:
            _learn(intervals, 0.0, error)
        return intervals


def _learn(intervals: Any, prediction: float, label: float) -> Floats:
    """Run a round of a calibration, and return the intervals before the label."""
    published: Floats = intervals.around(np.array([prediction]))[0]
    intervals.learn_label(label, published)
    intervals.learn_error(label - prediction, 1.0)
    return published
