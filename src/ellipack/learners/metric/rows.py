"""The practical learner, one row at a time."""

from numpy.typing import ArrayLike

from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.state import MetricState
from ellipack.learners.rows import Row, RowLearner
from ellipack.serialization import Archive
from ellipack.validation import Floats


class MetricRows(RowLearner):
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
