"""Signals that stop a run after a row, so that it can be saved and resumed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ellipack.evaluation.run import StopLearning

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Handler of SIGINT and SIGTERM that records the first signal. A second one ends the process at once.

    Inside a ``with`` block of `raising`, the handler raises `StopLearning`. Other code that works or waits calls
    `received` from time to time.

    Attributes
    ----------
    number : int
        Number of the signal received, 0 if none.
    """

    def __init__(self) -> None:
        self.number = 0
        self._raises = False

    @contextmanager
    def installed(self) -> Iterator["StopSignals"]:
        """Handle the signals inside a ``with`` block, except those that the process ignores."""
        handlers = {number: signal.getsignal(number) for number in _STOP_SIGNALS}
        replaced = {number: handler for number, handler in handlers.items() if handler is not signal.SIG_IGN}
        for number in replaced:
            signal.signal(number, self._receive)
        try:
            yield self
        finally:
            for number, handler in replaced.items():
                signal.signal(number, handler)

    def received(self) -> bool:
        """Return whether a signal has been received."""
        return self.number != 0

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Raise `StopLearning` inside a ``with`` block when the first signal is received, or if it was before."""
        self._raises = True
        try:
            if self.received():
                raise StopLearning
            yield
        finally:
            self._raises = False

    def _receive(self, number: int, _: FrameType | None) -> None:
        self.number = number
        for other in _STOP_SIGNALS:
            if signal.getsignal(other) is not signal.SIG_IGN:
                signal.signal(other, signal.SIG_DFL)
        if self._raises:
            raise StopLearning
