"""The paper's learners, on any features and labels, as learners of rows."""

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ellipack.checkpoint import Contents
from ellipack.held._kernels import Held, entry
from ellipack.learners import packing, phased
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import engine
from ellipack.learners.rescaled._kernels import Desk, play_row
from ellipack.learners.rescaled.engine import RescaledState
from ellipack.learners.rows import Row, RowLearner, Sheet
from ellipack.metric import GopEstimator
from ellipack.packing.tree._kernels import TRAIL
from ellipack.validation import Floats


class PackingDesk(Sheet):
    """A row to write on, and all that its round takes."""

    def __init__(self, state: RescaledState[PackingState]) -> None:
        d, inner = state.width, state.inner
        super().__init__(d)
        self.box, self.centers = state.box, inner.centers
        learned = state.box, inner.metric.directions, inner.centers, inner.rank_starts
        room = np.empty(d), np.empty(d), np.empty(TRAIL)
        self.held = Held(Desk(*learned, self.x, *room, np.full(2, -1, dtype=np.int64), np.empty(d), np.empty(1)))
        self.play = entry(play_row, self.held, 1, True, True, 0.0)


class PackingRows(RowLearner):
    """A rescaled Algorithm 1, one row at a time."""

    def __init__(self, state: RescaledState[PackingState], keep_founding_label: bool) -> None:
        self.state = state
        self.keep_founding_label = keep_founding_label
        self._free: list[PackingDesk] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state, self.keep_founding_label)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row."""
        desk = self._desk()
        desk.write(desk.memory, 0, *row)
        made = desk.play(desk.held, self.state.inner.clock + 1, False, False, 0.0)
        self._free.append(desk)
        return made

    def learn(self, row: Row, label: float) -> None:
        """Play a round. After `predict` of the same row, the centre found for it is used."""
        desk, inner = self._desk(), self.state.inner
        desk.write(desk.memory, 0, *row)
        made = desk.play(desk.held, inner.clock + 1, True, self.keep_founding_label, label)
        if isnan(made):  # the box has to grow, or there is no room for a centre where it belongs
            self.learn_rows([row], [label])
        else:
            inner.clock += 1
        self._free.append(desk)

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return engine.predict(self.state, X, packing.predict)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""

        def play(inner: PackingState, table: Floats, targets: Floats) -> Floats:
            return packing.learn(inner, table, targets, keep_founding_label=self.keep_founding_label)

        engine.learn(self.state, X, y, play, packing.predict)

    def widen(self, scales: Floats) -> None:
        """Take more features."""
        engine.widen(self.state, len(scales))

    def contents(self) -> Contents:
        """Return what is saved."""
        return engine.contents(self.state, packing.contents)

    def take(self, contents: Contents, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = engine.restore(contents, d, packing.restore)

    def _desk(self) -> PackingDesk:
        """Return the desk last used, if it is free and of this packing and box, or a new one."""
        state = self.state
        try:
            desk = self._free.pop()
        except IndexError:
            return PackingDesk(state)
        return desk if desk.centers is state.inner.centers and desk.box is state.box else PackingDesk(state)


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

    def widen(self, scales: Floats) -> None:
        """Take more features."""
        engine.widen(self.state, len(scales))

    def contents(self) -> Contents:
        """Return what is saved."""
        return engine.contents(self.state, phased.contents)

    def take(self, contents: Contents, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = engine.restore(contents, d, phased.restore)
