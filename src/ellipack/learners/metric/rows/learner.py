"""The practical learner as a learner of rows."""

from numpy.typing import ArrayLike

from ellipack.checkpoint import Contents
from ellipack.learners.metric import engine, saved
from ellipack.learners.metric.desks import MetricDesk, put_back, take
from ellipack.learners.metric.state import MetricState, make_room
from ellipack.learners.metric.widening import widen
from ellipack.learners.rows import Row, RowLearner
from ellipack.validation import Floats


class MetricRows(RowLearner):
    """The practical learner, one row at a time.

    To learn a row right after it was predicted costs little: what was worked out for the prediction is used.
    """

    def __init__(self, state: MetricState) -> None:
        self.state = state

    def predict(self, row: Row) -> float:
        """Return the prediction for a row, 0 before the first round."""
        desk = take(self.state)
        desk.write(desk.memory, 0, *row)
        desk.play(desk.held, 1, False)
        made: float = desk.predictions.item(0)
        put_back(self.state, desk)
        return made

    def learn(self, row: Row, label: float) -> None:
        """Play a round."""
        desk = take(self.state)
        desk.write(desk.memory, 0, *row)
        desk.labels[0] = label
        while not desk.play(desk.held, 1, True):
            make_room(self.state, desk.room.queries, desk.room.scaled)
            if desk.machine is not self.state.machine:
                desk = MetricDesk(self.state)
                desk.write(desk.memory, 0, *row)
                desk.labels[0] = label
        put_back(self.state, desk)
        engine.settle(self.state)

    def predict_rows(self, X: ArrayLike) -> Floats:
        """Return the prediction for each row."""
        return engine.predict(self.state, X)

    def learn_rows(self, X: ArrayLike, y: ArrayLike) -> None:
        """Play a round a row."""
        engine.learn(self.state, X, y)

    def widen(self, scales: Floats) -> None:
        """Take more features."""
        widen(self.state, scales)

    def contents(self) -> Contents:
        """Return what is saved."""
        return saved.contents(self.state)

    def take(self, contents: Contents, d: int) -> None:
        """Take a saved state for one's own."""
        self.state = saved.restore(contents, d)
