"""`PackingClassifier` on single rows with features of any scale."""

from copy import copy
from typing import Any

import numpy as np

from ellipack.learners import packing_classifier, rescaled
from ellipack.learners.packing_classifier import Classes, PackingClassifierState
from ellipack.learners.rescaled import RescaledState, grow_box, unit_change
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats, Row

_NO_LABEL = np.zeros(1)  # in place of the labels of a regression, whose range the box keeps, too


class ClassifierRowLearner:
    """Mistake-driven classification of single rows, whose features are scaled by ranges that grow.

    Methods do not check their row: it must have one finite number for each feature.

    Parameters
    ----------
    d : int
        Number of features.
    ball_clocks : bool
        Whether the radius of a ball depends on its own mistakes.

    Examples
    --------
    >>> learner = ClassifierRowLearner(1, ball_clocks=False)
    >>> for row, label in [([-900.0], "low"), ([900.0], "high"), ([-800.0], "low"), ([850.0], "high")]:
    ...     learner.learn(row, np.array([label]))
    >>> learner.predict([700.0])
    {'high': 1.0, 'low': 0.0}
    """

    def __init__(self, d: int, ball_clocks: bool) -> None:
        inner = packing_classifier.init(Metric.identity(d), ball_clocks=ball_clocks)
        self.state: RescaledState[PackingClassifierState] = rescaled.init(inner, d)

    def predict(self, row: Row) -> dict[Any, float]:
        """Return the estimated probability of each class."""
        inner, box = self.state.parts
        inner = PackingClassifierState(*inner.parts)  # a snapshot: another thread may add a class
        probabilities = packing_classifier.predict(inner, box.rows_to_units(np.array([row])))[0]
        return dict(zip(inner.classes.tolist(), probabilities.tolist(), strict=True))

    def learn(self, row: Row, label: Classes) -> None:
        """Learn a row and its label, which is the only entry of an array."""
        inner, box = self.state.parts
        table = np.array([row])
        if box.first_outside(table, _NO_LABEL, 0) == len(table):
            packing_classifier.learn(inner, box.rows_to_units(table), label)
            return
        larger = grow_box(box, table[0], float(_NO_LABEL[0]))
        converted = inner.in_units(unit_change(box, larger))
        packing_classifier.learn(converted, larger.rows_to_units(table), label)
        self.state.parts = converted, larger

    def with_added_features(self, scales: Floats) -> "ClassifierRowLearner":
        """Return a copy with more features as last columns. They were 0 in all earlier rows."""
        learner = copy(self)
        learner.state = rescaled.with_added_features(self.state, len(scales))
        return learner

    def to_archive(self) -> Archive:
        """Return an archive of the state."""
        return rescaled.to_archive(self.state, packing_classifier.to_archive)

    def restore_state(self, archive: Archive, d: int) -> None:
        """Restore the state from an archive."""
        self.state = rescaled.from_archive(archive, d, packing_classifier.from_archive)
