"""Rows split over threads.

Compiled code releases the interpreter's lock, so that threads use all cores. One thread computes a row from beginning
to end, so that results do not depend on the number of threads.
"""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from operator import index

from ellipack.errors import DomainError

_MAX_THREADS = 256  # more are not faster, and each thread takes megabytes


_MAX_ROWS_PER_CALL = 4096
_MAX_WORK_PER_CALL = 5e7  # about 0.1 s


def rows_per_call(work: float) -> int:
    """Return how many rows a call may have to take about 0.1 s, since signals are handled only between two calls.

    Parameters
    ----------
    work : float
        Number of multiplications for a row.

    Returns
    -------
    rows : int
        At least 1.

    Examples
    --------
    >>> rows_per_call(1e6), rows_per_call(1e9)
    (50, 1)
    """
    return max(1, min(_MAX_ROWS_PER_CALL, int(_MAX_WORK_PER_CALL / max(work, 1.0))))


def for_row_slices(
    work: Callable[[slice], object], count: int, n_jobs: int | None = 1, max_rows: int | None = None
) -> None:
    """Call a function on slices of rows in threads.

    Between two calls, signals are handled. An interrupt or an exception ends the work after the calls that have begun.

    Parameters
    ----------
    work : callable
        Function of a slice. The slices cover rows 0 to `count` once. Exceptions are raised again here.
    count : int
        Number of rows.
    n_jobs : int or None, default 1
        Number of threads; -1 is one for each core, None is 1.
    max_rows : int, optional
        Largest number of rows of a slice. By default, there is one slice for each thread.

    Examples
    --------
    >>> for_row_slices(print, 3)
    slice(0, 3, None)
    >>> for_row_slices(print, 3, max_rows=2)
    slice(0, 1, None)
    slice(1, 3, None)
    """
    threads = thread_count(n_jobs, max(1, count))
    calls = threads if max_rows is None else max(threads, -(-count // max_rows))
    slices = [slice(*edges) for edges in pairwise(count * i // calls for i in range(calls + 1))]
    if threads == 1:
        for part in slices:
            work(part)
        return
    ends = [None] * threads
    remaining = deque([*slices, *ends])

    def work_until_the_end() -> None:
        try:
            for part in iter(remaining.popleft, None):
                work(part)
        finally:
            remaining.extendleft(ends)  # after an exception, other threads begin no further call

    # This thread works, too, so that it handles signals between its own calls, and not within the locks of a pool.
    with ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(work_until_the_end) for _ in range(threads - 1)]
        work_until_the_end()
        for other in others:
            other.result()


def thread_count(n_jobs: int | None, most: int = _MAX_THREADS) -> int:
    """Return the number of threads that `n_jobs` stands for, at most 256.

    Parameters
    ----------
    n_jobs : int or None
        At least 1, or -1 for one thread for each core that this process may use. None is 1, as in scikit-learn.
    most : int, default 256
        Largest number of threads, such as the number of rows. If it is 1, the system is not asked for its cores.

    Returns
    -------
    threads : int

    Examples
    --------
    >>> thread_count(3), thread_count(3, most=2)
    (3, 2)
    """
    number = check_n_jobs(n_jobs)
    if number == -1:
        number = _usable_cores() if most > 1 else 1
    return min(number, most, _MAX_THREADS)


def check_n_jobs(n_jobs: int | None) -> int:
    """Return `n_jobs` as an integer, or raise `DomainError`. None is 1.

    Examples
    --------
    >>> check_n_jobs(-1)
    -1
    >>> check_n_jobs(0)
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: n_jobs must be >= 1, or -1 for one per core, got 0
    """
    if n_jobs is None:
        return 1
    try:
        number = index(n_jobs)
    except TypeError:
        raise DomainError(f"n_jobs must be an integer >= 1, or -1 for one per core, got {n_jobs!r}") from None
    if number < 1 and number != -1:
        raise DomainError(f"n_jobs must be >= 1, or -1 for one per core, got {number}")
    return number


def _usable_cores() -> int:
    """Return the number of cores that containers or taskset leave to this process, where the system reports it."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
