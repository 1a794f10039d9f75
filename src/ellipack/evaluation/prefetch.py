"""Items made ready ahead on a thread of their own, so that reading costs little and a signal need not wait."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")

_QUEUE_SIZE = 2  # items
_POLL_SECONDS = 0.1  # seconds between two looks at whether there is still anyone to wait, or to wait for


def _never() -> bool:
    return False


def prefetch(items: Iterator[Item], cancelled: Callable[[], bool] = _never) -> Iterator[Item]:
    """Yield items, a few of them made ready ahead; what making them raises is raised here.

    Parameters
    ----------
    items : to be iterated on the other thread, and closed there if they can be: nobody else may close what another
        thread may be reading from.
    cancelled : asked before each item, and and again while waiting; once it holds, nothing more comes.

    Examples
    --------
    >>> list(prefetch(iter(range(5))))
    [0, 1, 2, 3, 4]
    """
    ready: Queue[tuple[Item] | BaseException | None] = Queue(_QUEUE_SIZE)
    stopped = Event()

    def put(item: tuple[Item] | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(Full):
                ready.put(item, timeout=_POLL_SECONDS)
                return

    def read() -> None:
        try:
            for item in items:
                put((item,))
                if stopped.is_set():
                    break
            put(None)
        except BaseException as error:  # whatever it is, it is for whoever waits
            put(error)
        finally:
            getattr(items, "close", _never)()

    # Daemonic: it may wait for standard input for ever.
    Thread(target=read, daemon=True, name="ellipack-reader").start()
    try:
        while not cancelled():
            with suppress(Empty):
                item = ready.get(timeout=_POLL_SECONDS)
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item[0]
    finally:
        stopped.set()


def run_in_thread(make: Callable[[], Item], cancelled: Callable[[], bool]) -> Item | None:
    """Return what is made on a thread of its own, or nothing if it was given up on before that was done.

    >>> run_in_thread(lambda: 7, lambda: False)
    7
    """
    return next(prefetch((make() for _ in range(1)), cancelled), None)
