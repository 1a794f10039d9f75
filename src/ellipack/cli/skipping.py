"""Rows that were left out: the first few one by one, and then how many."""

from collections.abc import Sequence

from ellipack.cli.saying import say
from ellipack.tabular import BadRow

_SHOWN = 5


class Skipped:
    """Tells on standard error of rows of a source that are skipped.

    Attributes
    ----------
    count : how many there were.
    """

    def __init__(self, source: str) -> None:
        self._source, self.count = source, 0

    def add(self, bad: Sequence[BadRow]) -> None:
        """Tell of more rows, if not of enough already."""
        for row in bad[: max(0, _SHOWN - self.count)]:
            place = f"{self._source}, row {row.number:,}" + (f", column '{row.column}'" if row.column else "")
            say(f"skipped: {place}: {row.reason}")
        self.count += len(bad)

    def sum_up(self) -> None:
        """Tell of those that were not told of."""
        if self.count > _SHOWN:
            say(f"skipped: {self.count:,} rows in all")
