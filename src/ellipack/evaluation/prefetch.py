"""Run an iterator in a background thread, so that reading overlaps with learning and signals are handled promptly."""

from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import TypeVar
from weakref import ref

Item = TypeVar("Item")

_QUEUE_SIZE = 2  # items
_POLL_SECONDS = 0.1  # interval for checks of cancellation


class _Token:
    """Object that lives as long as the thread that has it."""


def _never() -> bool:
    """Return False."""
    return False


def prefetch(items: Iterator[Item], cancelled: Callable[[], bool] = _never) -> Iterator[Item]:
    """Iterate in a background thread, a few items ahead. Exceptions of the iterator are raised here.

    Parameters
    ----------
    items : iterator
        Iterated, and closed if it has a method `close`, in the background thread only.
    cancelled : callable, optional
        Called before each item and repeatedly while waiting for one. Iteration ends when it returns True. By default
        it always returns False.

    Yields
    ------
    object
        The items in order.

    Raises
    ------
    MemoryError
        If the thread has ended before all items were read, because memory ran out in it.

    Examples
    --------
    >>> list(prefetch(iter(range(5))))
    [0, 1, 2, 3, 4]
    """
    # Unlike those of a `Queue`, methods of a `SimpleQueue` can't leave it locked if memory runs out.
    ready: SimpleQueue[tuple[Item] | BaseException | None] = SimpleQueue()
    places: SimpleQueue[None] = SimpleQueue()
    for _ in range(_QUEUE_SIZE):
        places.put(None)
    stopped = Event()

    def put(item: tuple[Item] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(Empty):
                places.get(timeout=_POLL_SECONDS)
                ready.put(item)
                return

    def read(token: _Token) -> None:
        try:
            for item in items:
                put((item,))
                if stopped.is_set():
                    break
            put(None)
        except BaseException as error:  # raised in the main thread
            put(error)
        finally:
            del token  # which the traceback of an error would keep
            getattr(items, "close", _never)()

    token = _Token()
    is_alive = ref(token)
    # The end of the process does not wait for such a thread, which may block on standard input forever. A `Thread`
    # would wait for the new thread to begin, and forever if memory runs out there.
    start_new_thread(read, (token,))
    del token
    try:
        while not cancelled():
            try:
                item = ready.get(timeout=_POLL_SECONDS)
            except Empty:
                if is_alive() is None and ready.empty():
                    raise MemoryError("memory ran out in the thread that reads") from None
                continue
            places.put(None)
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        stopped.set()


def run_in_thread(make: Callable[[], Item], cancelled: Callable[[], bool]) -> Item | None:
    """Call a function in a background thread and return its result, or None if cancelled before.

    Parameters
    ----------
    make : callable
        The function.
    cancelled : callable
        Called repeatedly while waiting. Waiting ends when it returns True.

    Examples
    --------
    >>> run_in_thread(lambda: 7, lambda: False)
    7
    """
    return next(prefetch((make() for _ in range(1)), cancelled), None)
