"""Desks for the practical learner's rounds: all that a kernel needs, unpacked once for many calls.

To unpack a learner's arrays for a kernel takes longer than the round of a single row does. And what was worked out
to predict a row is still on the desk when its label comes, if nothing was learned in between.
"""

import numpy as np

from ellipack.held._kernels import Held, entry
from ellipack.learners.metric._kernels import run_rounds
from ellipack.learners.metric.machine import Desk
from ellipack.learners.metric.state import MetricState, working_room
from ellipack.learners.rows import Sheet
from ellipack.validation import Floats

AT_ONCE = 64
"""Rows on a desk."""


class MetricDesk(Sheet):
    """Rows to write on, and all that their rounds take; `write` writes the first."""

    def __init__(self, state: MetricState) -> None:
        self.machine = state.machine
        super().__init__(self.machine.memory.rows.shape[1], AT_ONCE)
        self.labels, self.predictions = np.zeros((2, AT_ONCE))
        asked, before, made = np.full(2, -1), np.zeros(self.rows.shape[1]), np.zeros(2)
        self.room = working_room(state)
        desk = Desk(self.machine, self.room, self.rows, self.labels, self.predictions, asked, before, made)
        self.held = Held(desk)
        self.play = entry(run_rounds, self.held, 1, False)

    def predict(self, rows: Floats, out: Floats) -> None:
        """Fill in predictions for so many rows as fit on the desk."""
        self.rows[: len(rows)] = rows
        self.play(self.held, len(rows), False)
        out[:] = self.predictions[: len(rows)]

    def learn(self, rows: Floats, labels: Floats, out: Floats) -> int:
        """Play a round a row and fill in the predictions; return how many were played before room ran out."""
        self.rows[: len(rows)], self.labels[: len(rows)] = rows, labels
        done = self.play(self.held, len(rows), True)
        out[:done] = self.predictions[:done]
        return done


def take(state: MetricState) -> MetricDesk:
    """Return the desk last put back, if it is of this machine, or else a new one."""
    free = state.desks.free
    try:
        desk: MetricDesk = free.pop()
    except IndexError:
        return MetricDesk(state)
    if desk.machine is state.machine:
        return desk
    free.clear()  # the others are of no use either, and hold on to what the machine was
    return MetricDesk(state)


def put_back(state: MetricState, desk: MetricDesk) -> None:
    """Let a desk be taken again."""
    state.desks.free.append(desk)
