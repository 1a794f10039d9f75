"""Progress is shown in a terminal, and nowhere else."""

from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from benchmarks.command_line import run_cases, show_activity, track_progress
from benchmarks.speed import SpeedComparison, run_benchmarks


def slow() -> Iterator[SpeedComparison]:
    """Compare slowly.

    Not shown.
    """
    yield SpeedComparison("this", "that", 1.0, 2.0, 1.0)
    yield SpeedComparison("this", "other", 1.0, 3.0, 1.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    written = StringIO()
    monkeypatch.setattr(
        "benchmarks.command_line.Console", lambda stderr: Console(file=written, force_terminal=True, width=100)
    )
    return written


def test_progress_in_a_terminal(terminal: StringIO) -> None:
    assert list(track_progress([("first", 1), ("second", 2)])) == [1, 2]
    assert "second" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    with show_activity("a long task"):
        pass
    assert "a long task" in terminal.getvalue()


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_results_of_cases_are_in_their_order(jobs: int) -> None:
    cases = [(str(each), each) for each in (-3, 1, -2)]
    assert run_cases(abs, cases, jobs) == [3, 1, 2]


def test_benchmarks_are_named_by_the_first_line_of_their_docstring(terminal: StringIO) -> None:
    assert [each.peer for each in run_benchmarks([slow])] == ["that", "other"]
    assert "Compare slowly." in terminal.getvalue()
    assert "Not shown." not in terminal.getvalue()


def test_nothing_is_shown_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track_progress([("first", 1)])) == [1]
    with show_activity("a long task"):
        pass
    assert [each.ratio for each in run_benchmarks([slow])] == [2.0, 3.0]
    assert capsys.readouterr() == ("", "")
