"""Dense linear algebra whose results do not depend on the number of threads.

BLAS libraries split large products over threads, and each way to split them rounds differently. Decompositions in this
package are small, so that one thread is as fast.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock, get_ident
from typing import Any

import numpy as np  # noqa: F401  # loads a BLAS library that the controller must find
import scipy.linalg  # noqa: F401  # loads another one
import threadpoolctl

_lock = RLock()
_users: list[int] = []  # the threads that need the limit
_limits: list[Any] = []  # the limit in force


@cache
def _controller() -> Any:
    """Return the controller of the BLAS libraries that are loaded now; finding them is slow."""
    return threadpoolctl.ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread while the block runs, in all threads of this process.

    Examples
    --------
    >>> with single_threaded_blas():
    ...     values, vectors = np.linalg.eigh(np.eye(2))
    """
    with _lock:
        if not _limits:
            _let_any_thread_set_limits()
            _limits.append(_controller().limit(limits=1, user_api="blas"))
        _users.append(get_ident())  # last: after an error above, this thread does not use the limit
    try:
        yield
    finally:
        with _lock:
            _users.remove(get_ident())
            if not _users:
                _lift()


def _lift() -> None:
    """Lift the limit."""
    _let_any_thread_set_limits()
    _limits.pop().restore_original_limits()
    _let_any_thread_set_limits()


def _hold_lock() -> None:
    """Wait until no other thread sets a limit.

    A child that is forked meanwhile would wait for ever for a lock of the BLAS library.
    """
    _lock.acquire()


def _release_lock() -> None:
    """Release the lock in the parent, unless an interrupt has ended the wait for it."""
    if _lock._is_owned():  # type: ignore[attr-defined]  # threading.Condition relies on this method, too
        _lock.release()


def _keep_own_limits() -> None:
    """Get a new lock in a forked child, and lift limits of threads that do not exist there."""
    global _lock  # noqa: PLW0603
    _lock = RLock()
    others = [user for user in _users if user != get_ident()]
    for user in others:
        _users.remove(user)
    if others and not _users:
        _lift()


def _let_any_thread_set_limits() -> None:
    """Allow any thread to set and lift limits.

    From version 3.8 on, threadpoolctl ignores all threads but the one that set the first limit.
    """
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_hold_lock, after_in_parent=_release_lock, after_in_child=_keep_own_limits)
