"""Base class of the regressors of the paper: the mean error is the scale of their intervals, the same for all rows."""

from abc import abstractmethod
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ellipack.estimators.base import StreamingRegressor
from ellipack.learners.intervals import NO_BOUNDS, Bounds, Predictions, empty_predictions
from ellipack.validation import Floats

State = TypeVar("State")


class CalibratedRegressor(StreamingRegressor[State]):
    """Base class of regressors whose cores calibrate intervals around their predictions in each round.

    A subclass defines how its state predicts and learns. Both fill an array with intervals if it has rows.
    """

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike, bounds: Bounds = NO_BOUNDS) -> Floats:
        """Return predictions without a change of the state."""

    @abstractmethod
    def _learn(self, state: State, X: ArrayLike, y: ArrayLike, bounds: Bounds = NO_BOUNDS) -> Floats:
        """Update the state by one round per row; return the predictions made before each label."""

    def _predict_bounds(self, state: State, X: ArrayLike) -> Predictions:
        bounds = empty_predictions(len(np.asarray(X)), with_intervals=True).bounds
        return Predictions(self._predict(state, X, bounds), bounds)

    def _run_rounds(self, state: State, X: ArrayLike, y: ArrayLike, *, with_intervals: bool) -> Predictions:
        bounds = empty_predictions(len(np.asarray(X)), with_intervals).bounds
        return Predictions(self._learn(state, X, y, bounds), bounds)
