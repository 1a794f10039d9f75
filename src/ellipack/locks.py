"""Lock that a thread holds while it changes a learner or an index.

In a forked child only the thread that forked exists. Locks that other threads held would never be released there, so
that the child gets new ones. A fork waits until no thread is in a compiled core (up to 64 rounds of `MetricRegressor`,
4,096 of the paper's learners), so that the child has the state of a completed round.
"""

import os
from threading import RLock
from typing import Any
from weakref import WeakSet

from ellipack._core import close_fork_gate, open_fork_gate, open_fork_gate_in_child
from ellipack.errors import ReentrantCallError


class LearnLock:
    """Lock that a thread holds while it changes a learner or an index.

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
            message = "no signal handler or callback can change or copy a learner or an index while it learns"
            raise ReentrantCallError(message)
        return self._lock

    @property
    def pause(self) -> Any:
        """Context manager in which no other thread changes the learner, to copy or save it.

        Unlike `turn`, it can be used in a signal handler or callback of the thread that learns.
        """
        return self._lock

    def renew(self) -> None:
        """Replace the lock by a free one."""
        self._lock = RLock()


_learn_locks: WeakSet[LearnLock] = WeakSet()


def _renew_locks() -> None:
    """Free all locks in a forked child."""
    open_fork_gate_in_child()
    for learn_lock in _learn_locks:
        learn_lock.renew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=close_fork_gate, after_in_parent=open_fork_gate, after_in_child=_renew_locks)
