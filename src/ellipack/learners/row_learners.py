"""Learners of one row at a time, where a call must cost little more than its round."""

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import ArrayLike

from ellipack._core import RescaledPacking, UnitBox
from ellipack.learners import packing, phased, rescaled
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.state import MetricState
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import RescaledState
from ellipack.metric import GopEstimator
from ellipack.serialization import Archive
from ellipack.validation import Floats, Row


class RowLearner(ABC):
    """What `predict` and `learn` of one row are to all learners, and `predict_rows` and `learn_rows` of many.

    A single row must have been checked. Predicting changes nothing that was learned, and threads may predict side by
    side.
    """

    @abstractmethod
    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""

    @abstractmethod
    def learn(self, row: Row, label: float) -> None:
        """Play a round."""

    @abstractmethod
    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""

    @abstractmethod
    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

    @abstractmethod
    def add_features(self, scales: Floats) -> None:
        """Take more features, as last columns, which were 0 in every row so far, a typical size each."""

    @abstractmethod
    def to_archive(self) -> Archive:
        """Return what is saved."""

    @abstractmethod
    def restore_state(self, archive: Archive, d: int) -> None:
        """Take for one's own the state for d features that was saved as this archive."""


class MetricRowLearner(RowLearner):
    """The practical learner, one row at a time.

    Learning a row right after predicting it costs little: the core reuses what it worked out for the prediction.
    """

    def __init__(self, state: MetricState) -> None:
        self.state = state

    def predict(self, row: Row) -> float:
        """Return the prediction for a row, 0 before the first round."""
        return self.state.core.predict_one(row)

    def learn(self, row: Row, label: float) -> None:
        """Play a round."""
        learner.learn_one(self.state, row, label)

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return learner.predict(self.state, X)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""
        learner.learn(self.state, X, y)

    def add_features(self, scales: Floats) -> None:
        """Take more features."""
        add_features(self.state, scales)

    def to_archive(self) -> Archive:
        """Return what is saved."""
        return serialization.to_archive(self.state)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = serialization.from_archive(archive, d)


class PackingRowLearner(RowLearner):
    """A rescaled Algorithm 1, one row at a time."""

    def __init__(self, state: RescaledState[PackingState], keep_founding_label: bool) -> None:
        self.state = state
        self.keep_founding_label = keep_founding_label
        self._compiled = state.parts, _compiled(*state.parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state, self.keep_founding_label)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        return self._packing().predict(row)

    def learn(self, row: Row, label: float) -> None:
        """Play a round. After `predict` of the same row, the center found for it is used."""
        if not self._packing().learn(row, label, self.keep_founding_label):
            self.learn_rows([row], [label])  # which lets the box grow

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return rescaled.predict(self.state, X, packing.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

        def play(inner: PackingState, table: Floats, targets: Floats) -> Floats:
            return packing.learn(inner, table, targets, keep_founding_label=self.keep_founding_label)

        rescaled.learn(self.state, X, y, play, packing.predict)

    def add_features(self, scales: Floats) -> None:
        """Take more features."""
        rescaled.add_features(self.state, len(scales))

    def to_archive(self) -> Archive:
        """Return what is saved."""
        return rescaled.to_archive(self.state, packing.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = rescaled.from_archive(archive, d, packing.from_archive)

    def _packing(self) -> RescaledPacking:
        """Return the compiled learner of single rows, for the state as it is now."""
        made_for, compiled = self._compiled
        parts = self.state.parts
        if made_for is not parts:
            compiled = _compiled(*parts)
            self._compiled = parts, compiled
        return compiled


def _compiled(inner: PackingState, box: UnitBox) -> RescaledPacking:
    metric, core = inner.parts
    return RescaledPacking(core, box, metric.directions)


class PhasedRowLearner(RowLearner):
    """A rescaled phased learner, one row at a time; a batch of one, since estimates outweigh all else."""

    def __init__(self, state: RescaledState[PhasedState], alpha: float, estimator: GopEstimator, keep: bool) -> None:
        self.state = state
        self.alpha, self.estimator, self.keep = alpha, estimator, keep

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state, self.alpha, self.estimator, self.keep)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        return float(self.predict_rows([row])[0])

    def learn(self, row: Row, label: float) -> None:
        """Play a round."""
        self.learn_rows([row], [label])

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return rescaled.predict(self.state, X, phased.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

        def play(inner: PhasedState, table: Floats, targets: Floats) -> Floats:
            return phased.learn(
                inner, table, targets, alpha=self.alpha, estimator=self.estimator, keep_founding_label=self.keep
            )

        rescaled.learn(self.state, X, y, play, phased.predict)

    def add_features(self, scales: Floats) -> None:
        """Take more features."""
        rescaled.add_features(self.state, len(scales))

    def to_archive(self) -> Archive:
        """Return what is saved."""
        return rescaled.to_archive(self.state, phased.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = rescaled.from_archive(archive, d, phased.from_archive)
