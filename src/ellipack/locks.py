"""A lock between those who look at a state and the one who changes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class ReaderWriterLock:
    """Any number of threads may look at a state at once, or one may change it.

    Nobody waits for ever: while somebody waits to change, those who come to look queue up behind; and when a change
    is over, all who queued up by then look before the next.

    >>> lock = ReaderWriterLock()
    >>> with lock.read(), lock.read():
    ...     print("two at once")
    two at once
    """

    def __init__(self) -> None:
        self._moved = Condition()
        self._looking = self._queued = self._admitted = self._wanting = self._changes = 0
        self._changing = False

    def __reduce__(self) -> tuple[type["ReaderWriterLock"], tuple[()]]:
        return ReaderWriterLock, ()  # a copy of a state has a lock of its own, at which nobody stands

    @contextmanager
    def read(self) -> Iterator[None]:
        """Keep the state as it is for as long as the block runs."""
        with self._moved:
            if self._changing or self._wanting:
                self._queue_up()
            self._looking += 1
        try:
            yield
        finally:
            with self._moved:
                self._looking -= 1
                self._moved.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Have the state to oneself for as long as the block runs."""
        with self._moved:
            self._wanting += 1
            try:
                self._moved.wait_for(lambda: not (self._changing or self._looking or self._admitted))
                self._changing = True
            finally:  # an interrupt may end the waiting too
                self._wanting -= 1
                self._moved.notify_all()
        try:
            yield
        finally:
            with self._moved:
                self._changing = False
                self._changes += 1
                self._admitted, self._queued = self._queued, 0
                self._moved.notify_all()

    def _queue_up(self) -> None:
        """Wait for the next change to be over, or for nobody to want one."""
        before = self._changes
        self._queued += 1
        try:
            self._moved.wait_for(lambda: self._changes > before or not (self._changing or self._wanting))
        finally:
            if self._changes > before:
                self._admitted -= 1
                self._moved.notify_all()
            else:
                self._queued -= 1
