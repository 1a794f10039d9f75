import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError
from ellipack.threads import Gate, for_rows, thread_count


@given(st.integers(0, 50), st.integers(1, 8))
def test_every_row_is_worked_on_once(count: int, n_jobs: int) -> None:
    seen: list[int] = []
    for_rows(lambda part: seen.extend(range(count)[part]), count, n_jobs)
    assert sorted(seen) == list(range(count))


def test_threads_work_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=10)
    for_rows(lambda _: meeting.wait(), 3, n_jobs=3)  # would time out if one had to wait for another to end


def test_what_goes_wrong_in_a_thread_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        for_rows(lambda part: 1 / part.start, 4, n_jobs=2)


def test_some_thread_must_do_it() -> None:
    with pytest.raises(DomainError, match="n_jobs must be >= 1, or -1 for one a core, got 0"):
        for_rows(print, 4, n_jobs=0)


@pytest.mark.parametrize("n_jobs", [1.5, -1.0, "2", None])
def test_threads_are_whole(n_jobs: object) -> None:
    with pytest.raises(DomainError, match="n_jobs must be a whole number >= 1, or -1 for one a core, got "):
        thread_count(n_jobs)  # type: ignore[arg-type]


def test_one_a_core_counts_the_cores_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert thread_count(-1) == 3


def test_one_a_core_counts_all_cores_where_the_system_cannot_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert thread_count(-1) == 64


def test_many_look_at_once_and_who_changes_is_alone() -> None:
    gate, inside, most, wrong = Gate(), [0, 0], [0], []

    def look(_: int) -> None:
        for _ in range(200):
            with gate.looking():
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                wrong.extend([1] * inside[1])
                sleep(0)
                inside[0] -= 1

    def change(_: int) -> None:
        for _ in range(100):
            with gate.changing():
                inside[1] += 1
                wrong.extend([1] * (inside[0] + inside[1] - 1))
                sleep(0)
                inside[1] -= 1

    with ThreadPoolExecutor(6) as pool:
        looking = [pool.submit(look, i) for i in range(4)]
        changing = [pool.submit(change, i) for i in range(2)]
        for done in looking + changing:
            done.result(timeout=60)
    assert not wrong
    assert inside == [0, 0]
    with gate.looking(), gate.looking():
        pass


def test_nobody_waits_for_ever() -> None:
    gate, stop, turns = Gate(), Event(), [0, 0]

    def look() -> None:
        while not stop.is_set():
            with gate.looking():
                turns[0] += 1

    def change() -> None:
        while not stop.is_set():
            with gate.changing():
                turns[1] += 1

    with ThreadPoolExecutor(5) as pool:
        done = [pool.submit(look) for _ in range(3)] + [pool.submit(change) for _ in range(2)]
        for _ in range(1000):
            if min(turns) >= 100:
                break
            sleep(0.01)
        stop.set()
        for each in done:
            each.result(timeout=60)
    assert min(turns) >= 100


def test_a_change_that_fails_lets_others_in() -> None:
    gate = Gate()
    with pytest.raises(KeyError), gate.changing():
        raise KeyError
    with pytest.raises(KeyError), gate.looking():
        raise KeyError
    with gate.changing():
        pass


def test_a_copied_gate_is_open() -> None:
    gate = Gate()
    with gate.changing():
        twin = pickle.loads(pickle.dumps(gate))
    with twin.changing():
        pass
