"""What a terminal is told, and that nothing else is."""

from collections.abc import Iterator
from io import StringIO

import pytest
from rich.console import Console

from benchmarks.command_line import following, telling
from benchmarks.speed import Comparison, run


def slow() -> Iterator[Comparison]:
    """Compare slowly.

    Not to be told.
    """
    yield Comparison("this", "that", 1.0, 2.0, 1.0)
    yield Comparison("this", "other", 1.0, 3.0, 1.0)


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    written = StringIO()
    monkeypatch.setattr(
        "benchmarks.command_line.Console", lambda stderr: Console(file=written, force_terminal=True, width=100)
    )
    return written


def test_a_terminal_is_told_what_and_how_far(terminal: StringIO) -> None:
    assert list(following([("first", 1), ("second", 2)])) == [1, 2]
    assert "second" in terminal.getvalue()
    assert "2/2" in terminal.getvalue()
    with telling("something long"):
        pass
    assert "something long" in terminal.getvalue()


def test_benchmarks_are_told_by_their_first_line(terminal: StringIO) -> None:
    assert [each.peer for each in run([slow])] == ["that", "other"]
    assert "Compare slowly." in terminal.getvalue()
    assert "Not to be told." not in terminal.getvalue()


def test_where_nobody_looks_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(following([("first", 1)])) == [1]
    with telling("something long"):
        pass
    assert [each.ratio for each in run([slow])] == [2.0, 3.0]
    assert capsys.readouterr() == ("", "")
