import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack.errors import DomainError
from ellipack.parallel import for_row_slices, thread_count


@given(st.integers(0, 50), st.integers(1, 8))
def test_slices_cover_every_row_once(count: int, n_jobs: int) -> None:
    seen: list[int] = []
    for_row_slices(lambda part: seen.extend(range(count)[part]), count, n_jobs)
    assert sorted(seen) == list(range(count))


@given(st.integers(0, 50), st.integers(1, 4), st.integers(1, 9))
def test_slices_have_at_most_so_many_rows(count: int, n_jobs: int, most: int) -> None:
    seen: list[int] = []

    def work(part: slice) -> None:
        assert part.stop - part.start <= most
        seen.extend(range(count)[part])

    for_row_slices(work, count, n_jobs, most)
    assert sorted(seen) == list(range(count))


def test_an_error_ends_the_work() -> None:
    began: list[int] = []

    def work(part: slice) -> None:
        began.append(part.start)
        if part.start == 0:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        for_row_slices(work, 10_000, 2, 1)
    assert len(began) < 10_000


def test_slices_run_at_the_same_time() -> None:
    barrier = threading.Barrier(3, timeout=10)
    for_row_slices(lambda _: barrier.wait(), 3, n_jobs=3)  # would time out if they ran one after another


def test_errors_in_threads_are_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        for_row_slices(lambda part: 1 / part.start, 4, n_jobs=2)


def test_zero_threads_are_refused() -> None:
    with pytest.raises(DomainError, match="n_jobs must be >= 1, or -1 for one per core, got 0"):
        for_row_slices(print, 4, n_jobs=0)


@pytest.mark.parametrize("n_jobs", [1.5, -1.0, "2"])
def test_n_jobs_must_be_an_integer(n_jobs: object) -> None:
    with pytest.raises(DomainError, match="n_jobs must be an integer >= 1, or -1 for one per core, got "):
        thread_count(n_jobs)  # type: ignore[arg-type]


def test_minus_one_counts_the_cores_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert thread_count(-1) == 3


def test_one_row_needs_no_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", None, raising=False)
    assert thread_count(-1, most=1) == 1
    with pytest.raises(DomainError, match="n_jobs must be >= 1, or -1 for one per core, got 0"):
        thread_count(0, most=1)


def test_minus_one_counts_all_cores_where_affinity_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert thread_count(-1) == 64
