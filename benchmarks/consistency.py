"""Whether threads that predict while another learns see only states that existed after some row."""

import numpy as np

from ellipack import MetricRegressor
from ellipack.estimators.loading import learner_from_archive
from ellipack.validation import Floats

PROBES = 8
"""Rows in each call of `predict`."""


class KnownStates:
    """All states of a learner from before the first to after the last of the next rows.

    A copy of the learner learns the rows one by one. A state is identified by its predictions, to the bit, for the
    probes. Probes are some of those rows, so each state predicts something else.

    Parameters
    ----------
    learner : MetricRegressor
        The learner before it learns the rows. It is not changed.
    X, y : ndarray
        The rows that it will learn next, and their labels.

    Attributes
    ----------
    probes : ndarray
        The rows to predict.
    states : set of bytes
        The predictions of each state for the probes.
    """

    def __init__(self, learner: MetricRegressor, X: Floats, y: Floats) -> None:
        self.probes = X[:: len(X) // PROBES][:PROBES].copy()
        copy: MetricRegressor = learner_from_archive(type(learner).__name__, learner.to_archive())
        self.states = {copy.predict(self.probes).tobytes()}
        for row, label in zip(X, y, strict=True):
            copy.partial_fit(row[np.newaxis], [label])
            self.states.add(copy.predict(self.probes).tobytes())

    def contains(self, predictions: Floats) -> bool:
        """Return whether one of the states gives these predictions for the probes."""
        return predictions.tobytes() in self.states
