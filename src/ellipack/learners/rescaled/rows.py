"""The paper's learners, on any features and labels, as learners of rows."""

from typing import Any

from numpy.typing import ArrayLike

from ellipack._core import RescaledPacking, UnitBox
from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import engine
from ellipack.learners.rescaled.engine import RescaledState
from ellipack.learners.rows import Row, RowLearner
from ellipack.metric import GopEstimator
from ellipack.serialization import Archive
from ellipack.validation import Floats


class PackingRows(RowLearner):
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
        return engine.predict(self.state, X, packing.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

        def play(inner: PackingState, table: Floats, targets: Floats) -> Floats:
            return packing.learn(inner, table, targets, keep_founding_label=self.keep_founding_label)

        engine.learn(self.state, X, y, play, packing.predict)

    def add_features(self, scales: Floats) -> None:
        """Take more features."""
        engine.add_features(self.state, len(scales))

    def to_archive(self) -> Archive:
        """Return what is saved."""
        return engine.to_archive(self.state, packing.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = engine.from_archive(archive, d, packing.from_archive)

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


class PhasedRows(RowLearner):
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
        return engine.predict(self.state, X, phased.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

        def play(inner: PhasedState, table: Floats, targets: Floats) -> Floats:
            return phased.learn(
                inner, table, targets, alpha=self.alpha, estimator=self.estimator, keep_founding_label=self.keep
            )

        engine.learn(self.state, X, y, play, phased.predict)

    def add_features(self, scales: Floats) -> None:
        """Take more features."""
        engine.add_features(self.state, len(scales))

    def to_archive(self) -> Archive:
        """Return what is saved."""
        return engine.to_archive(self.state, phased.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = engine.from_archive(archive, d, phased.from_archive)
