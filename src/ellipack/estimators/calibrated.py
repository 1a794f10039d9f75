"""Base class of regressors whose learners have no intervals of their own: the mean error is the scale for all rows."""

from abc import abstractmethod
from typing import Protocol, TypeVar

from numpy.typing import ArrayLike

from ellipack._core import ConformalIntervals
from ellipack.estimators.base import StreamingRegressor
from ellipack.learners.intervals import NO_BOUNDS, Predictions, intervals_from_archive, intervals_to_archive
from ellipack.locks import LearnLock
from ellipack.serialization import Archive
from ellipack.validation import Floats, check_labels

_MAX_ROUNDS = 2**52


class CalibratedState(Protocol):
    """State with intervals.

    Attributes
    ----------
    intervals : ConformalIntervals
        Calibration of the intervals around predictions.
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    intervals: ConformalIntervals
    learn_lock: LearnLock


Calibrated = TypeVar("Calibrated", bound=CalibratedState)


class CalibratedRegressor(StreamingRegressor[Calibrated]):
    """Base class of regressors with intervals of a constant width in each round.

    A subclass defines how its state predicts and learns. The intervals see predictions and labels only. They are
    calibrated by `progressive` with a coverage; `fit` and `partial_fit` do not change them. An interrupt may leave rows
    that were learned and by which the intervals were not calibrated.
    """

    @abstractmethod
    def _learn(self, state: Calibrated, X: ArrayLike, y: ArrayLike) -> Floats:
        """Update the state by one round per row; return the predictions made before each label."""

    def _predict_bounds(self, state: Calibrated, X: ArrayLike) -> Predictions:
        values = self._predict(state, X)
        return Predictions(values, state.intervals.around(values))

    def _run_rounds(self, state: Calibrated, X: ArrayLike, y: ArrayLike, *, with_intervals: bool) -> Predictions:
        values = self._learn(state, X, y)
        if not with_intervals:
            return Predictions(values, NO_BOUNDS)
        with state.learn_lock.turn:
            bounds = state.intervals.learn(values, check_labels(y, len(values)))
        return Predictions(values, bounds)

    def _more_parts(self, state: Calibrated) -> dict[str, Archive]:
        return {"intervals": intervals_to_archive(state.intervals)}

    def _restore_more(self, state: Calibrated, archive: Archive) -> None:
        state.intervals = intervals_from_archive(archive.part("intervals"), _MAX_ROUNDS)
