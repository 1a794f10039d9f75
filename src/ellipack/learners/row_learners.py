"""Learners with a fast path for single rows, for users who call them row by row."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration, RescaledPacking, UnitBox
from ellipack.learners import packing, phased, rescaled
from ellipack.learners.intervals import ALL_POSITIONS, Bounds, WantedIntervals, with_widths
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.feature_growth import with_added_features
from ellipack.learners.metric.state import MetricState
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import LearnFunction, PredictFunction, RescaledState
from ellipack.metric import GopEstimator
from ellipack.serialization import Archive
from ellipack.validation import Floats, Row, check_rows


class RowLearner(ABC):
    """Learner of single rows and of batches, with the same results bit for bit.

    `predict` and `learn` do not check their row: it must have one finite number for each feature. `predict_rows` and
    `learn_rows` check their arguments. Predictions do not change what was learned, and several threads may predict at
    the same time.
    """

    @property
    @abstractmethod
    def clock(self) -> int:
        """Number of rounds."""

    @abstractmethod
    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""

    @abstractmethod
    def learn(self, row: Row, label: float) -> None:
        """Learn a row and its label."""

    @abstractmethod
    def learn_late(self, round_: learner.Round) -> None:
        """Learn a row with its key, and with the past and the intervals that were known when it was predicted."""

    def learn_with_interval(self, round_: learner.Round) -> None:
        """Learn a row whose intervals were asked for in this round."""
        self.learn_late(round_)

    @abstractmethod
    def predict_interval(self, row: Row) -> Bounds:
        """Return the intervals of all coverages for a row, in an array of one row."""

    @abstractmethod
    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""

    @abstractmethod
    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn rows and labels in order."""

    @abstractmethod
    def with_added_features(self, scales: Floats) -> "RowLearner":
        """Return a copy with more features as last columns. They were 0 in all earlier rows.

        Parameters
        ----------
        scales : array of shape (n_new_features,)
            Typical absolute value of each new feature.

        Returns
        -------
        learner : RowLearner
        """

    @abstractmethod
    def to_archive(self) -> Archive:
        """Return an archive of the state."""

    @abstractmethod
    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state for d features from an archive."""


class MetricRowLearner(RowLearner):
    """`MetricRegressor` for single rows. Predictions are those of the next row.

    The core reuses intermediate results if a row is learned right after its prediction.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    """

    def __init__(self, state: MetricState) -> None:
        self.state = state

    @property
    def clock(self) -> int:
        """Number of rounds."""
        return self.state.clock

    def predict(self, row: Row) -> float:
        """Return the prediction for a row, 0 before the first round."""
        return self.predict_next(row)[0]

    def predict_next(self, row: Row, key: int = 0) -> tuple[float, list[float]]:
        """Return the prediction for a row, and the features of the past that it used."""
        return self.state.core.predict_next_one(row, key)

    def learn(self, row: Row, label: float) -> None:
        """Learn a row and its label."""
        learner.learn_one(self.state, learner.Round(row, label))

    def learn_late(self, round_: learner.Round) -> None:
        """Learn a row with its key, and with the past and the intervals that were known when it was predicted."""
        learner.learn_one(self.state, round_)

    def predict_interval(self, row: Row) -> Bounds:
        """Return the intervals of all coverages for a row."""
        return np.array([self.state.core.predict_next_interval_one(row)[2]])

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row, as if it were the next one."""
        return np.array([self.predict(row) for row in check_rows(X).tolist()])

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn rows and labels in order."""
        learner.learn(self.state, X, y)

    def with_added_features(self, scales: Floats) -> "MetricRowLearner":
        """Return a copy with more features as last columns."""
        return MetricRowLearner(with_added_features(self.state, scales))

    def to_archive(self) -> Archive:
        """Return an archive of the state."""
        return serialization.to_archive(self.state)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = serialization.from_archive(archive, d)


class CalibratedRowLearner(RowLearner):
    """Base class of learners of the paper for single rows, which calibrate intervals when they are asked for.

    Attributes
    ----------
    state : RescaledState
        The state, which is updated.
    """

    state: RescaledState[Any]

    @property
    def clock(self) -> int:
        """Number of rounds."""
        return self.state.clock

    def learn_late(self, round_: learner.Round) -> None:
        """Learn a row, and compare its label with the intervals that were published for it, if there are any.

        The round predicts the row again; only the widths of intervals are moved by those that were published.
        """
        if not round_.bounds:
            self.learn(round_.row, round_.label)
            return
        moved = self.state.calibration.intervals
        moved.learn_label(round_.label, np.array(round_.bounds))
        self._learn_and_calibrate(round_, lambda calibration: with_widths(calibration, moved))

    def learn_with_interval(self, round_: learner.Round) -> None:
        """Learn a row, and calibrate by its label at once."""
        self._learn_and_calibrate(round_, lambda calibration: DeferredCalibration(calibration.intervals))

    def _learn_and_calibrate(
        self, round_: learner.Round, complete: Callable[[DeferredCalibration], DeferredCalibration]
    ) -> None:
        """Run the deferred rounds, learn a row, and complete the calibration after it.

        If an error or an interrupt comes in between, the clock tells whether the row was learned: then the calibration
        is completed, otherwise restored. Completing it twice is the same as once.
        """
        before, clock = self.state.calibration, self.clock
        try:
            self.state.calibration = DeferredCalibration(before.intervals)
            self.learn(round_.row, round_.label)
            self.state.calibration = complete(self.state.calibration)
        except BaseException:
            self.state.calibration = complete(self.state.calibration) if self.clock > clock else before
            raise


class PackingRowLearner(CalibratedRowLearner):
    """Algorithm 1 on features and labels of any scale, for single rows.

    Parameters
    ----------
    state : RescaledState
        The state, which is updated.
    keep_founding_label : bool
        Whether a new center counts the label of its own instance.
    """

    def __init__(self, state: RescaledState[PackingState], keep_founding_label: bool) -> None:
        self.state = state
        self.keep_founding_label = keep_founding_label
        self._compiled = state.parts, _compile(*state.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state, self.keep_founding_label)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        return self._packing().predict(row)

    def learn(self, row: Row, label: float) -> None:
        """Learn a row and its label. After `predict` of the same row, its nearest center is not searched again."""
        if not self._packing().learn(row, label, self.keep_founding_label):
            self.learn_rows([row], [label])  # outside of the ranges, which grow

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return rescaled.predict(self.state, X, packing.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn rows and labels in order."""

        def learn_inner(inner: PackingState, table: Floats, targets: Floats, intervals: WantedIntervals) -> Floats:
            return packing.learn(inner, table, targets, intervals, keep_founding_label=self.keep_founding_label)

        rescaled.learn(self.state, X, y, learn_inner, packing.predict)

    def predict_interval(self, row: Row) -> Bounds:
        """Return the intervals of all coverages for a row."""
        return _interval(self.state, row, packing.predict)

    def with_added_features(self, scales: Floats) -> "PackingRowLearner":
        """Return a copy with more features as last columns."""
        return PackingRowLearner(rescaled.with_added_features(self.state, len(scales)), self.keep_founding_label)

    def to_archive(self) -> Archive:
        """Return an archive of the state."""
        return rescaled.to_archive(self.state, packing.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = rescaled.from_archive(archive, d, packing.from_archive)

    def _packing(self) -> RescaledPacking:
        """Return the compiled learner for the current state."""
        compiled_parts, compiled = self._compiled
        parts = self.state.parts
        if compiled_parts is not parts:
            compiled = _compile(*parts)
            self._compiled = parts, compiled
        return compiled


def _interval(state: RescaledState[Any], row: Row, predict_inner: PredictFunction) -> Bounds:
    """Return the intervals of all coverages for a row."""
    intervals = WantedIntervals.empty(1, ALL_POSITIONS)
    rescaled.predict(state, [row], predict_inner, intervals)
    return intervals.bounds


def _compile(inner: PackingState, box: UnitBox) -> RescaledPacking:
    """Return the compiled learner of single rows, which shares its arrays with the state."""
    metric, core = inner.parts
    return RescaledPacking(core, box, metric.directions)


class PhasedRowLearner(CalibratedRowLearner):
    """The phased algorithm on features and labels of any scale, for single rows.

    A row is a batch of one: estimates of the gradient outer product dominate the cost.

    Parameters
    ----------
    state : RescaledState
        The state, which is updated.
    alpha : float
        Exponent of the regularization.
    estimator : GopEstimator
        Estimator of the gradient outer product.
    keep_founding_label : bool
        Whether a new center counts the label of its own instance.
    """

    def __init__(
        self, state: RescaledState[PhasedState], alpha: float, estimator: GopEstimator, keep_founding_label: bool
    ) -> None:
        self.state = state
        self.alpha, self.estimator, self.keep_founding_label = alpha, estimator, keep_founding_label

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state, self.alpha, self.estimator, self.keep_founding_label)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        return float(self.predict_rows([row])[0])

    def learn(self, row: Row, label: float) -> None:
        """Learn a row and its label."""
        self.learn_rows([row], [label])

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return rescaled.predict(self.state, X, phased.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn rows and labels in order."""

        def learn_inner(inner: PhasedState, table: Floats, targets: Floats, intervals: WantedIntervals) -> Floats:
            return phased.learn(
                inner,
                table,
                targets,
                intervals,
                alpha=self.alpha,
                estimator=self.estimator,
                keep_founding_label=self.keep_founding_label,
            )

        rescaled.learn(self.state, X, y, learn_inner, phased.predict)

    def predict_interval(self, row: Row) -> Bounds:
        """Return the intervals of all coverages for a row."""
        return _interval(self.state, row, phased.predict)

    def with_added_features(self, scales: Floats) -> "PhasedRowLearner":
        """Return a copy with more features as last columns."""
        wider = rescaled.with_added_features(self.state, len(scales))
        return PhasedRowLearner(wider, self.alpha, self.estimator, self.keep_founding_label)

    def to_archive(self) -> Archive:
        """Return an archive of the state."""
        return rescaled.to_archive(self.state, phased.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = rescaled.from_archive(archive, d, phased.from_archive)


class LearnerFunctions(NamedTuple):
    """Functions of a learner of the paper that has no parameters apart from its state.

    They are functions of modules, so that they can be pickled.
    """

    predict: PredictFunction
    learn: LearnFunction
    to_archive: Callable[[Any], Archive]
    from_archive: Callable[[Archive, int], Any]


class RescaledRowLearner(CalibratedRowLearner):
    """A learner of the paper on features and labels of any scale.

    Parameters
    ----------
    state : RescaledState
        The state, which is updated.
    functions : LearnerFunctions
        Functions of the learner on scaled rows and labels.
    """

    def __init__(self, state: RescaledState[Any], functions: LearnerFunctions) -> None:
        self.state, self.functions = state, functions

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        return float(self.predict_rows([row])[0])

    def learn(self, row: Row, label: float) -> None:
        """Learn a row and its label."""
        self.learn_rows([row], [label])

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return rescaled.predict(self.state, X, self.functions.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Learn rows and labels in order."""
        rescaled.learn(self.state, X, y, self.functions.learn, self.functions.predict)

    def predict_interval(self, row: Row) -> Bounds:
        """Return the intervals of all coverages for a row."""
        return _interval(self.state, row, self.functions.predict)

    def with_added_features(self, scales: Floats) -> "RescaledRowLearner":
        """Return a copy with more features as last columns."""
        return RescaledRowLearner(rescaled.with_added_features(self.state, len(scales)), self.functions)

    def to_archive(self) -> Archive:
        """Return an archive of the state."""
        return rescaled.to_archive(self.state, self.functions.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = rescaled.from_archive(archive, d, self.functions.from_archive)
