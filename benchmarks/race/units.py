"""Standard units out of what was seen so far, for peers that need them."""

from typing import Any

import numpy as np

from ellipack.validation import Floats


class Running:
    """The mean and deviation of each column of the rows so far, by Welford's recurrence."""

    def __init__(self) -> None:
        self._count = 0
        self._mean: Any = 0.0
        self._squares: Any = 0.0

    def add(self, row: Floats) -> None:
        """Take a row in."""
        self._count += 1
        before = row - self._mean
        self._mean = self._mean + before / self._count
        self._squares = self._squares + before * (row - self._mean)

    def scaled(self, values: Floats) -> Floats:
        """Return values in standard units; a column that never varied is in units of 1."""
        return np.asarray((values - self._mean) / self._deviation())

    def original(self, values: Floats) -> Floats:
        """Return values in standard units as they were."""
        return np.asarray(values * self._deviation() + self._mean)

    def _deviation(self) -> Any:
        deviation = np.sqrt(self._squares / max(1, self._count))
        return np.where(deviation > 0.0, deviation, 1.0)
