"""Steps that an interrupt does not cut in two: `uninterrupted`."""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

Result = TypeVar("Result")


def uninterrupted(step: Callable[[], Result]) -> Result:
    """Call a function in a thread, so that what a signal handler raises is raised when it has ended, and not within."""
    results: list[Result] = []
    failures: list[BaseException] = []

    def call() -> None:
        try:
            results.append(step())
        except BaseException as error:
            failures.append(error)

    thread = Thread(target=call, name="ellipack-learner")
    thread.start()
    interrupt: BaseException | None = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt
    if failures:
        raise failures[0]
    return results[0]
