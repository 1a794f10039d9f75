"""The practical learner as a learner of rows."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ellipack._kernels import entry, hold
from ellipack.checkpoint import Contents
from ellipack.learners.metric import engine, saved
from ellipack.learners.metric.rows._kernels import Desk, play_row
from ellipack.learners.metric.state import MetricState, make_room, working_room
from ellipack.learners.metric.widening import widen
from ellipack.learners.rows import Row, RowLearner, Sheet
from ellipack.validation import Floats, labels, rows


class MetricDesk(Sheet):
    """A row to write on, and all that its round takes."""

    def __init__(self, state: MetricState) -> None:
        self.machine = state.machine
        d = self.machine.memory.rows.shape[1]
        super().__init__(d)
        asked, before, made = np.full(2, -1, dtype=np.int64), np.empty(d), np.empty(2)
        self.held = hold(Desk(self.machine, working_room(state), self.x, asked, before, made))
        self.play = entry(play_row, self.held, 0.0, False)


class MetricRows(RowLearner):
    """The practical learner, one row at a time.

    To learn a row right after it was predicted costs little: what was worked out for the prediction is used.
    """

    def __init__(self, state: MetricState) -> None:
        self.state = state
        self._free: list[MetricDesk] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.state,)

    def predict(self, row: Row) -> float:
        """Return the prediction for a row, 0 before the first round."""
        desk = self._desk()
        desk.write(desk.memory, 0, *row)
        made = desk.play(desk.held, 0.0, False)
        self._free.append(desk)
        return made

    def learn(self, row: Row, label: float) -> None:
        """Play a round."""
        desk = self._desk()
        desk.write(desk.memory, 0, *row)
        while math.isnan(desk.play(desk.held, label, True)):
            make_room(self.state)
            desk = MetricDesk(self.state)
            desk.write(desk.memory, 0, *row)
        self._free.append(desk)
        engine.settle(self.state)

    # Many rows go one by one as well: a round takes so long that calls count for little, and compiling one more kernel
    # would take much longer.

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return np.array([self.predict(row) for row in rows(X).tolist()])

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""
        table = rows(X)
        for row, label in zip(table.tolist(), labels(y, len(table)).tolist(), strict=True):
            self.learn(row, label)

    def widen(self, scales: Floats) -> None:
        """Take more features."""
        widen(self.state, scales)

    def contents(self) -> Contents:
        """Return what is saved."""
        return saved.contents(self.state)

    def take(self, contents: Contents, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = saved.restore(contents, d)

    def _desk(self) -> MetricDesk:
        """Return the desk last used, if it is free and of this machine, or a new one."""
        try:
            desk = self._free.pop()
        except IndexError:
            return MetricDesk(self.state)
        return desk if desk.machine is self.state.machine else MetricDesk(self.state)
