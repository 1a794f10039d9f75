"""A fair reader-writer lock."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition


class ReaderWriterLock:
    """Lock that any number of readers share, or one writer holds alone.

    The lock is fair. While a writer waits, new readers wait too. When a writer releases the lock, the readers that
    waited by then go before the next writer.

    A copy of a lock, also by pickle, is a new and free lock.

    Examples
    --------
    >>> lock = ReaderWriterLock()
    >>> with lock.read(), lock.read():
    ...     print("two readers")
    two readers
    >>> with lock.write():
    ...     print("one writer")
    one writer
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._readers = self._waiting_readers = self._admitted_readers = self._waiting_writers = 0
        self._finished_writes = 0
        self._writing = False

    def __reduce__(self) -> tuple[type["ReaderWriterLock"], tuple[()]]:
        return ReaderWriterLock, ()

    @contextmanager
    def read(self) -> Iterator[None]:
        """Hold the lock as a reader."""
        with self._changed:
            if self._writing or self._waiting_writers:
                self._wait_for_turn()
            self._readers += 1
        try:
            yield
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Hold the lock as the only writer, without readers."""
        with self._changed:
            self._waiting_writers += 1
            try:
                self._changed.wait_for(lambda: not (self._writing or self._readers or self._admitted_readers))
                self._writing = True
            finally:  # also if an interrupt ends the wait
                self._waiting_writers -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._writing = False
                self._finished_writes += 1
                self._admitted_readers, self._waiting_readers = self._waiting_readers, 0
                self._changed.notify_all()

    def _wait_for_turn(self) -> None:
        """Wait as a reader until the next write ends, or until no writer holds or wants the lock."""
        before = self._finished_writes
        self._waiting_readers += 1
        try:
            self._changed.wait_for(
                lambda: self._finished_writes > before or not (self._writing or self._waiting_writers)
            )
        finally:
            if self._finished_writes > before:
                self._admitted_readers -= 1
                self._changed.notify_all()
            else:
                self._waiting_readers -= 1
