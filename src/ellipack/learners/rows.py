"""A learner one row at a time, where a call must cost little more than its round.

To unpack a learner's arrays for a kernel can take longer than the round does. So they are held, with room to work in,
at desks that stay from call to call, one for each thread that predicts at the same time.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import Struct

import numpy as np
from numpy.typing import ArrayLike

from ellipack.checkpoint import Contents
from ellipack.validation import Floats

Row = Sequence[float]
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
    def widen(self, scales: Floats) -> None:
        """Take more features, as last columns, which were 0 in every row so far, a typical size each."""

    @abstractmethod
    def contents(self) -> Contents:
        """Return what is saved."""

    @abstractmethod
    def take(self, contents: Contents, d: int) -> None:
        """Take for one's own the state for d features that was saved as these contents."""


class Sheet:
    """Rows to write numbers on that kernels read: the first by `write(memory, 0, *row)`, faster than NumPy would be."""

    def __init__(self, d: int, count: int = 1) -> None:
        self.rows = np.zeros((count, d))
        self.x = self.rows[0]
        self.memory = self.rows.data.cast("B")
        self.write = Struct(f"{d}d").pack_into
