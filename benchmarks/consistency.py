"""Whether what threads see of a learner is a state that there was: a copy that nobody looks at knows them all."""

import numpy as np

from ellipack import MetricRegressor
from ellipack.estimators.loading import learner_from_archive
from ellipack.validation import Floats

PROBES = 8
"""Rows that are predicted in a call."""


class Stretch:
    """Rows that will be learned next, and every state that there will be from before the first to after the last.

    A state is what it predicts, to the bit, for the probes: some of those rows, so that each state has its own.
    """

    def __init__(self, learner: MetricRegressor, X: Floats, y: Floats) -> None:
        self.probes = X[:: len(X) // PROBES][:PROBES].copy()
        copy: MetricRegressor = learner_from_archive(type(learner).__name__, learner.to_archive())
        self.states = {copy.predict(self.probes).tobytes()}
        for row, label in zip(X, y, strict=True):
            copy.partial_fit(row[np.newaxis], [label])
            self.states.add(copy.predict(self.probes).tobytes())

    def has(self, predictions: Floats) -> bool:
        """Return whether this is what one of the states predicts for the probes."""
        return predictions.tobytes() in self.states
