"""Dense linear algebra whose results do not depend on the number of threads.

BLAS libraries split large products over threads, and other splits round differently. Decompositions here are small, so
that one thread is as fast.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import numpy as np  # noqa: F401  # its BLAS library must be loaded before the libraries are looked through
import threadpoolctl

_lock = Lock()
_limits: list[Any] = []  # the limit in force and, after it, one entry for each further user


@cache
def _controller() -> Any:
    # To look through all loaded libraries takes a while. NumPy's is loaded by now; those loaded later do not matter.
    return threadpoolctl.ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Run BLAS on one thread while the block runs, in all threads of this process.

    >>> with single_threaded_blas():
    ...     pass
    """
    with _lock:
        if not _limits:
            _let_any_thread_set_limits()
        _limits.append(None if _limits else _controller().limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            # The first user's limit is lifted by the last one to leave.
            limit = _limits[0]
            _limits.pop()
            if not _limits:
                _let_any_thread_set_limits()
                limit.restore_original_limits()
                _let_any_thread_set_limits()


def _let_any_thread_set_limits() -> None:
    """End the control of a thread over OpenBLAS.

    From version 3.8 on, threadpoolctl ignores limits, and their ends, from all threads but the one that set the first.
    """
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
