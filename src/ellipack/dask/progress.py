"""A bar that shows how many rows are learned."""

import sys
import time

_WIDTH = 30


class ProgressBar:
    """A bar on standard error, which is rewritten in place.

    Parameters
    ----------
    rows : int
        Number of rows in total.

    Examples
    --------
    >>> ProgressBar(200).text(50, 2.0)
    '[#######-----------------------] 50 of 200 rows, 25 per second'
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._start = time.monotonic()

    def text(self, done: int, seconds: float) -> str:
        """Return the bar after some rows and seconds."""
        filled = _WIDTH * done // self._rows
        rate = done / max(seconds, 1e-9)
        return f"[{'#' * filled}{'-' * (_WIDTH - filled)}] {done:,} of {self._rows:,} rows, {rate:,.0f} per second"

    def show(self, done: int) -> None:
        """Write the bar; the last one ends the line."""
        end = "\n" if done == self._rows else ""
        sys.stderr.write(f"\r{self.text(done, time.monotonic() - self._start)}{end}")
        sys.stderr.flush()
