"""Rows shared out among threads.

Kernels let go of the interpreter's lock, so plain threads use all cores. Each row is worked on by one thread
from beginning to end: how the rows are shared out can't change a bit of what comes out.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from operator import index

from ellipack.errors import DomainError

_MOST_THREADS = 256  # more are no faster, and a thread takes megabytes


def for_row_slices(work: Callable[[slice], object], count: int, n_jobs: int = 1) -> None:
    """Call `work` on slices that together cover rows 0 to `count`, on `n_jobs` threads (-1: one a core).

    >>> for_row_slices(print, 3)
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
