"""Signals that ask a run to stop: it finishes the rows in hand, saves, and says how to go on."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Which of SIGINT and SIGTERM has come, 0 if none; a second one ends the process at once.

    Nothing is raised: a signal is taken down, and whoever works or waits looks from time to time.
    """

    def __init__(self) -> None:
        self.number = 0

    @contextmanager
    def installed(self) -> Iterator["StopSignals"]:
        """Take signals down as long as the block runs, but for those that the process was started to ignore."""
        found = {number: signal.getsignal(number) for number in _NUMBERS}
        replaced = {number: handler for number, handler in found.items() if handler is not signal.SIG_IGN}
        for number in replaced:
            signal.signal(number, self._receive)
        try:
            yield self
        finally:
            for number, handler in replaced.items():
                signal.signal(number, handler)

    def received(self) -> bool:
        """Return whether to stop."""
        return self.number != 0

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for each in _NUMBERS:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, signal.SIG_DFL)
