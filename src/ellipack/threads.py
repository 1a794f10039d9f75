"""Rows shared out among threads, and a gate between those who look at a state and the one who changes it.

Kernels let go of the interpreter's lock, so plain threads use all cores. Each row is worked on by one thread
from beginning to end: how the rows are shared out can't change a bit of what comes out.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from operator import index
from threading import Condition

from ellipack.errors import DomainError

_MOST_THREADS = 256  # more are no faster, and a thread takes megabytes


def for_rows(work: Callable[[slice], object], count: int, n_jobs: int = 1) -> None:
    """Call `work` on slices that together cover rows 0 to `count`, on `n_jobs` threads (-1: one a core).

    >>> for_rows(print, 3)
    slice(0, 3, None)
    """
    threads = min(thread_count(n_jobs), count, _MOST_THREADS)
    if threads <= 1:
        work(slice(0, count))
        return
    edges = [count * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, slice(*edge)) for edge in pairwise(edges)]:
            done.result()


def thread_count(n_jobs: int) -> int:
    """Return how many threads `n_jobs` asks for, -1 being one for each core that this process may use."""
    try:
        number = index(n_jobs)
    except TypeError:
        raise DomainError(f"n_jobs must be a whole number >= 1, or -1 for one a core, got {n_jobs!r}") from None
    if number == -1:
        return _usable_cores()
    if number < 1:
        raise DomainError(f"n_jobs must be >= 1, or -1 for one a core, got {number}")
    return number


def _usable_cores() -> int:
    # A container or taskset may leave a process fewer cores than there are; not every system can tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Gate:
    """Any number of threads may look at a state at once, or one may change it.

    Nobody waits for ever: while somebody waits to change, those who come to look queue up behind; and when a change
    is over, all who queued up by then look before the next.

    >>> gate = Gate()
    >>> with gate.looking(), gate.looking():
    ...     print("two at once")
    two at once
    """

    def __init__(self) -> None:
        self._moved = Condition()
        self._looking = self._queued = self._admitted = self._wanting = self._changes = 0
        self._changing = False

    def __reduce__(self) -> tuple[type["Gate"], tuple[()]]:
        return Gate, ()  # a copy of a state has a gate of its own, at which nobody stands

    @contextmanager
    def looking(self) -> Iterator[None]:
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
    def changing(self) -> Iterator[None]:
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
