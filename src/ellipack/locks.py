"""Locks: one that a thread holds while it changes a learner, and a fair reader-writer lock.

In a forked child only the thread that forked exists. Locks that other threads held would never be released there, so
that the child gets new ones. A fork waits until no thread is in a compiled core (up to 64 rounds of `MetricRegressor`,
4,096 of the paper's learners), so that the child has the state of a completed round.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition, RLock
from typing import Any
from weakref import WeakSet

from ellipack._core import close_fork_gate, open_fork_gate, open_fork_gate_in_child
from ellipack.errors import ReentrantCallError


class LearnLock:
    """Lock that a thread holds while it changes a learner.

    A copy of a lock, also by pickle, is a new and free lock.

    Examples
    --------
    >>> lock = LearnLock()
    >>> with lock.turn:
    ...     print("one thread learns")
    one thread learns
    """

    def __init__(self) -> None:
        self.renew()
        _learn_locks.add(self)

    def __reduce__(self) -> tuple[type["LearnLock"], tuple[()]]:
        return LearnLock, ()

    @property
    def turn(self) -> Any:
        """Context manager that waits for other threads.

        It is a lock of the interpreter itself: no interrupt comes between its acquisition and the `with` block.

        Raises
        ------
        ReentrantCallError
            If this thread already holds the lock, as in a signal handler that runs while the learner learns.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on this method, too
            raise ReentrantCallError("a learner can't be changed by a signal handler or a callback while it learns")
        return self._lock

    def renew(self) -> None:
        """Replace the lock by a free one."""
        self._lock = RLock()


_learn_locks: WeakSet[LearnLock] = WeakSet()


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
        self.renew()
        _reader_writer_locks.add(self)

    def renew(self) -> None:
        """Make the lock free, whoever holds it."""
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


_reader_writer_locks: WeakSet[ReaderWriterLock] = WeakSet()


def _renew_locks() -> None:
    """Free all locks in a forked child."""
    open_fork_gate_in_child()
    for learn_lock in _learn_locks:
        learn_lock.renew()
    for reader_writer_lock in _reader_writer_locks:
        reader_writer_lock.renew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=close_fork_gate, after_in_parent=open_fork_gate, after_in_child=_renew_locks)
