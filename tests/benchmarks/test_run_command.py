"""The benchmark of the command on a tiny table."""

from pathlib import Path

import pytest

from benchmarks.run_command import CommandCost, parse, read_and_encode, run_command, targets, write_table


def test_the_command_runs_over_the_table(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, 50)
    header, first, *rest = path.read_text().splitlines()
    assert header.replace('"', "") == "x0,x1,x2,x3,x4,x5,x6,x7,x8,x9,place,time,y"
    assert "2026-01-01 00:00:00" in first
    assert len(rest) == 49
    rows, seconds, gib = run_command(path)
    assert rows == 50
    assert seconds > 0
    assert 0.01 < gib < 4
    assert read_and_encode(path) > 0


def test_targets() -> None:
    good, bad = CommandCost(10, 9.0, 0.9, 2.9), CommandCost(10, 9.0, 1.1, 3.1)
    assert [target.reached for target in targets(good)] == [True, True]
    assert [target.reached for target in targets(bad)] == [False, False]


def test_rows_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    assert parse([]).rows == 100_000
    with pytest.raises(SystemExit):
        parse(["--rows", "0"])
    assert "--rows must be >= 1, got 0" in capsys.readouterr().err
