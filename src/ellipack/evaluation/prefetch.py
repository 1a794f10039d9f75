"""Items made ready ahead on a thread of their own, so that reading costs little and a signal need not wait."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import TypeVar

Item = TypeVar("Item")

_AHEAD = 2  # items
_PATIENCE = 0.1  # seconds between two looks at whether there is still anyone to wait, or to wait for


def _never() -> bool:
    return False


def prefetch(items: Iterator[Item], given_up: Callable[[], bool] = _never) -> Iterator[Item]:
    """Yield items, a few of them made ready ahead; what making them raises is raised here.

    Parameters
    ----------
    items : to be iterated on the other thread, and closed there if they can be: nobody else may close what another
        thread may be reading from.
    given_up : asked before each item, and and again while waiting; once it holds, nothing more comes.

    Examples
    --------
    >>> list(prefetch(iter(range(5))))
    [0, 1, 2, 3, 4]
    """
    ready: Queue[tuple[Item] | BaseException | None] = Queue(_AHEAD)
    over = Event()

    def hand_over(item: tuple[Item] | BaseException | None) -> None:
        while not over.is_set():
            with suppress(Full):
                ready.put(item, timeout=_PATIENCE)
                return

    def read() -> None:
        try:
            for item in items:
                hand_over((item,))
                if over.is_set():
                    break
            hand_over(None)
        except BaseException as error:  # whatever it is, it is for whoever waits
            hand_over(error)
        finally:
            getattr(items, "close", _never)()

    # Daemonic: it may wait for standard input for ever.
    Thread(target=read, daemon=True, name="ellipack-reader").start()
    try:
        while not given_up():
            with suppress(Empty):
                item = ready.get(timeout=_PATIENCE)
                if item is None:
                    return
                if isinstance(item, BaseException):
                    raise item
                yield item[0]
    finally:
        over.set()


def run_in_thread(make: Callable[[], Item], given_up: Callable[[], bool]) -> Item | None:
    """Return what is made on a thread of its own, or nothing if it was given up on before that was done.

    >>> run_in_thread(lambda: 7, lambda: False)
    7
    """
    return next(prefetch((make() for _ in range(1)), given_up), None)
