"""What the learners of the unit ball share: a metric, and a core that runs in whitened coordinates.

In whitened coordinates the metric is Euclidean, so that the compiled cores need not know it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration
from ellipack.errors import MetricError
from ellipack.learners.intervals import NO_INTERVALS, Bounds, WantedIntervals
from ellipack.learners.short_calls import CopyableCore, predict_in_short_calls, row_slices
from ellipack.locks import LearnLock
from ellipack.metric import Metric
from ellipack.parallel import rows_per_call
from ellipack.validation import Floats, check_in_unit_ball, check_in_unit_interval, check_labels, check_rows

_VISITED = 0.1  # fraction of the centers that a search visits, if there are many features


class PredictingCore(CopyableCore, Protocol):
    """Compiled core that predicts rows in whitened coordinates and calibrates intervals."""

    calibration: DeferredCalibration

    @property
    def size(self) -> int:
        """Number of centers."""

    def predict(self, coordinates: Floats, bounds: Bounds | None = None, positions: Floats | None = None) -> Floats:
        """Return the prediction for each row, and fill `bounds` with their intervals at positions."""


Core = TypeVar("Core", bound=PredictingCore)


class WhitenedState(ABC, Generic[Core]):
    """State of a learner: a metric, and a core that runs in whitened coordinates.

    Both are kept in one attribute, which is replaced as a whole. Threads and interrupts always see a matching pair.

    Attributes
    ----------
    parts : tuple of (Metric, core)
        The metric and the core.
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    def __init__(self, metric: Metric, core: Core) -> None:
        self.parts = metric, core
        self.learn_lock = LearnLock()

    @property
    def metric(self) -> Metric:
        """Metric of spectral norm 1."""
        return self.parts[0]

    @property
    def core(self) -> Core:
        """Compiled core."""
        return self.parts[1]

    @property
    def clock(self) -> int:
        """Number of rounds."""
        return self.core.clock

    @property
    def calibration(self) -> DeferredCalibration:
        """Copy of the calibration of prediction intervals."""
        return self.core.calibration

    @calibration.setter
    def calibration(self, calibration: DeferredCalibration) -> None:
        self.core.calibration = calibration

    @abstractmethod
    def with_added_features(self, count: int) -> Self:
        """Return a copy with features added as last columns; see `add_features`."""


def check_positive_definite(metric: Metric) -> Metric:
    """Return a metric, or raise `MetricError` if it is singular."""
    if metric.rank < metric.dimension:
        raise MetricError(f"metric must be positive definite, got rank {metric.rank} of {metric.dimension}")
    return metric


def predict(state: WhitenedState[Any], X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
    """Return predictions without a change of the state.

    Parameters
    ----------
    state : WhitenedState
        The state.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.

    Returns
    -------
    predictions : array of shape (n,)
        1/2 before the first round.
    """
    metric: Metric = state.parts[0]
    core: PredictingCore = state.parts[1]
    table = check_in_unit_ball(check_rows(X, metric.dimension))
    predictions = np.empty(len(table))

    def predict_slice(same: PredictingCore, part: slice) -> None:
        predictions[part] = same.predict(metric.whiten(table[part]), *intervals.part(part))

    predict_in_short_calls(core, predict_slice, len(table), whitened_rows_per_call(metric.dimension, core.size))
    return predictions


def whitened_rows_per_call(d: int, centers: int) -> int:
    """Return the largest number of rows of d features that a call whitens and compares with centers."""
    return rows_per_call(d**2 + _VISITED * d * centers)


def run_rounds(
    state: WhitenedState[Core],
    X: ArrayLike,
    y: ArrayLike,
    learn: Callable[[Core, Floats, Floats, Bounds, Floats], Floats],
    rounds_per_call: int,
    intervals: WantedIntervals,
) -> Floats:
    """Run one round for each row: predict, then learn the label.

    Predictions and state do not depend on how rows are grouped into calls, bit for bit. An interrupt leaves the state
    of a completed round.

    Parameters
    ----------
    state : WhitenedState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    y : array-like of shape (n,)
        Labels in [0, 1].
    learn : callable
        Runs rounds of a core on whitened rows and their labels, returns the predictions and fills in intervals.
    rounds_per_call : int
        Number of rounds between which other threads can predict and interrupts are handled.
    intervals : WantedIntervals
        Array to fill with intervals of the predictions.

    Returns
    -------
    predictions : array of shape (n,)
        Predictions, each made before its label was learned.
    """
    with state.learn_lock.turn:
        metric, core = state.parts
        table = check_in_unit_ball(check_rows(X, metric.dimension))
        targets = check_in_unit_interval(check_labels(y, len(table)))
        most = min(rounds_per_call, whitened_rows_per_call(metric.dimension, core.size))
        batches = row_slices(len(table), most)
        predictions = [
            learn(core, metric.whiten(table[batch]), targets[batch], *intervals.part(batch)) for batch in batches
        ]
    return predictions[0] if len(predictions) == 1 else np.concatenate(predictions)


def add_features(state: WhitenedState[Any], count: int) -> None:
    """Add features as last columns, each with an eigenvalue of 1. They were 0 in all earlier rows.

    Parameters
    ----------
    state : WhitenedState
        The state, which is updated.
    count : int
        Number of new features.
    """
    with state.learn_lock.turn:
        state.parts = state.with_added_features(count).parts
