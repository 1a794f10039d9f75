"""Base class of the regressors of the paper: the mean error is the scale of their intervals, the same for all rows."""

from abc import abstractmethod
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.input_checks import check_targets
from ellipack.learners.intervals import (
    ALL_POSITIONS,
    NO_INTERVALS,
    NO_POSITIONS,
    Predictions,
    RowPredictions,
    WantedIntervals,
    check_bounds,
    with_widths,
)
from ellipack.validation import Floats, check_labels, check_rows

_ONE_POSITION = ALL_POSITIONS[:1]  # rounds with any interval are calibrated at once


class CalibratedState(Protocol):
    """State with a calibration of intervals, which is read and replaced as a whole."""

    calibration: DeferredCalibration


State = TypeVar("State", bound=CalibratedState)


class CalibratedRegressor(StreamingRegressor[State]):
    """Base class of regressors whose cores calibrate intervals around their predictions.

    A subclass defines how its state predicts and learns. Both fill an array with the wanted intervals. Rounds without
    wanted intervals are not calibrated until intervals are wanted.
    """

    @abstractmethod
    def _predict(self, state: State, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        """Return predictions without a change of the state."""

    @abstractmethod
    def _learn(self, state: State, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
        """Update the state by one round per row; return the predictions made before each label."""

    def _predict_bounds(self, state: State, X: ArrayLike, positions: Floats) -> Predictions:
        intervals = WantedIntervals.empty(len(np.asarray(X)), positions)
        return Predictions(self._predict(state, X, intervals), intervals.bounds)

    def _run_rounds(self, state: State, X: ArrayLike, y: ArrayLike, *, positions: Floats = NO_POSITIONS) -> Predictions:
        intervals = WantedIntervals.empty(len(np.asarray(X)), positions)
        return Predictions(self._learn(state, X, y, intervals), intervals.bounds)

    def predict_each(self, X: Any) -> RowPredictions:
        """Predict each row, also before the first row. See `StreamingRegressor.predict_each`."""
        is_fitted = self.__sklearn_is_fitted__()
        table = check_rows(self._checked_features(X) if is_fitted else X)
        state = self.state_ if is_fitted else self._initial_state(table.shape[1])
        return RowPredictions(*self._predict_bounds(state, table, ALL_POSITIONS), np.zeros((len(table), 0)))

    def learn_late(self, X: Any, y: Any, predictions: RowPredictions) -> Self:
        """Learn rows whose labels come after other rows. See `StreamingRegressor.learn_late`.

        A row is learned by a round of its own, which predicts it again. Only the widths of the intervals are moved by
        those that were returned for the row. All rows are learned or none.
        """
        labels = check_labels(check_targets(y), len(check_rows(X)))
        with self._turn:
            fitted, rows = self._start_copy(X)
            state, _ = fitted
            moved = state.calibration.intervals
            for label, published in zip(labels.tolist(), check_bounds(predictions.bounds, len(labels)), strict=True):
                moved.learn_label(label, published)
            self._run_rounds(state, rows, labels, positions=_ONE_POSITION)
            state.calibration = with_widths(state.calibration, moved)
            self._fitted = fitted
        return self
