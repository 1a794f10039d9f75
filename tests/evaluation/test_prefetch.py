import threading
import time
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.evaluation import prefetch as prefetch_module
from ellipack.evaluation.prefetch import prefetch, run_in_thread


class Items:
    """Iterator that records how many items it returned, whether it was closed, and the threads that used it."""

    def __init__(self, numbers: list[int], error: Exception | None = None) -> None:
        self.made, self.closed, self.threads = 0, threading.Event(), set[int]()
        self._numbers, self._error = iter(numbers), error

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        self.threads.add(threading.get_ident())
        for number in self._numbers:
            self.made += 1
            return number
        if self._error is not None:
            raise self._error
        raise StopIteration

    def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.closed.set()


@given(st.lists(st.integers()))
def test_items_come_in_order_from_one_background_thread(numbers: list[int]) -> None:
    items = Items(numbers)
    assert list(prefetch(items)) == numbers
    assert items.closed.wait(10)
    assert len(items.threads) == 1
    assert threading.get_ident() not in items.threads


def test_exceptions_come_after_the_items_before_them() -> None:
    items = Items([1, 2, 3, 4, 5], OSError("the end"))
    ahead = prefetch(items)
    got = [next(ahead) for _ in range(5)]
    with pytest.raises(OSError, match="the end"):
        next(ahead)
    assert got == [1, 2, 3, 4, 5]
    assert items.closed.wait(10)


def test_prefetches_a_few_items_and_stops_when_closed() -> None:
    items = Items(list(range(1000)))
    ahead = prefetch(items)
    assert next(ahead) == 0
    time.sleep(0.3)
    assert items.made <= 5
    ahead.close()  # type: ignore[attr-defined]  # it is a generator
    assert items.closed.wait(10)
    assert items.made <= 6


def test_cancelling_ends_the_wait() -> None:
    over, never = threading.Event(), threading.Event()

    def endless() -> Iterator[int]:
        yield 1
        never.wait()
        yield 2

    got = []
    for item in prefetch(endless(), over.is_set):
        got.append(item)
        threading.Timer(0.2, over.set).start()
    assert got == [1]
    assert run_in_thread(lambda: never.wait() or 3, over.is_set) is None
    never.set()


def test_run_in_thread_returns_or_raises() -> None:
    assert run_in_thread(lambda: 3, lambda: False) == 3
    with pytest.raises(ZeroDivisionError):
        run_in_thread(lambda: 1 // 0, lambda: False)


def test_a_thread_without_memory_to_begin_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch_module, "start_new_thread", lambda _, arguments: start_new_thread(id, arguments))
    with pytest.raises(MemoryError, match="in the thread that reads"):
        list(prefetch(iter([1, 2])))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_thread_without_memory_to_report_an_error_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(prefetch_module, "suppress", fail)  # which the thread calls to put an item or an error
    with pytest.raises(MemoryError, match="in the thread that reads"):
        list(prefetch(iter([1, 2])))


def test_no_lock_is_kept_without_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is no memory to call `Condition.__exit__`, the condition stays locked."""
    leave, failures, readers, ends = threading.Condition.__exit__, [MemoryError()], set[int](), SimpleQueue[str]()

    def leave_or_fail(condition: threading.Condition, *error: Any) -> None:
        if failures and threading.get_ident() in readers:
            raise failures.pop()
        leave(condition, *error)

    def items() -> Iterator[int]:
        readers.add(threading.get_ident())
        yield from range(5)

    def run() -> None:
        with suppress(MemoryError):
            list(prefetch(items()))
        ends.put("ended")

    monkeypatch.setattr(threading.Condition, "__exit__", leave_or_fail)
    start_new_thread(run, ())
    assert ends.get(timeout=10) == "ended"
