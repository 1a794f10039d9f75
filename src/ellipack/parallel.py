"""Rows split over threads.

Compiled code releases the interpreter's lock, so that threads use all cores. One thread computes a row from beginning
to end, so that results do not depend on the number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from operator import index

from ellipack.errors import DomainError

_MAX_THREADS = 256  # more are not faster, and each thread takes megabytes


def for_row_slices(work: Callable[[slice], object], count: int, n_jobs: int | None = 1) -> None:
    """Call a function on slices of rows in threads.

    Parameters
    ----------
    work : callable
        Function of a slice. The slices cover rows 0 to `count` once. Exceptions are raised again here.
    count : int
        Number of rows.
    n_jobs : int or None, default 1
        Number of threads; -1 is one for each core, None is 1.

    Examples
    --------
    >>> for_row_slices(print, 3)
    slice(0, 3, None)
    """
    threads = min(thread_count(n_jobs), count)
    if threads <= 1:
        work(slice(0, count))
        return
    edges = [count * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, slice(*edge)) for edge in pairwise(edges)]:
            done.result()


def thread_count(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` stands for, at most 256.

    Parameters
    ----------
    n_jobs : int or None
        At least 1, or -1 for one thread for each core that this process may use. None is 1, as in scikit-learn.

    Returns
    -------
    threads : int

    Examples
    --------
    >>> thread_count(3)
    3
    """
    if n_jobs is None:
        return 1
    try:
        number = index(n_jobs)
    except TypeError:
        raise DomainError(f"n_jobs must be an integer >= 1, or -1 for one per core, got {n_jobs!r}") from None
    if number == -1:
        return _usable_cores()
    if number < 1:
        raise DomainError(f"n_jobs must be >= 1, or -1 for one per core, got {number}")
    return min(number, _MAX_THREADS)


def _usable_cores() -> int:
    """Return the number of cores that containers or taskset leave to this process, where the system reports it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
