"""The interface of a learner that takes one row at a time, where a call must cost little more than its round."""

from abc import ABC, abstractmethod

from numpy.typing import ArrayLike

from ellipack.serialization import Archive
from ellipack.validation import Floats

Row = list[float] | tuple[float, ...]
"""Finite numbers, as many as there are features."""


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
