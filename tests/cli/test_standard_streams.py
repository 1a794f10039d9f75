"""Closed standard streams, and other input that once ended in a traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write


@pytest.mark.parametrize(
    ("arguments", "closed", "code", "message"),
    [
        ("run rides.csv -t duration --save m", "stdout", 3, "standard output can't be written: Bad file descriptor"),
        ("run - -t duration", "stdin", 3, "standard input is empty: it needs a header and rows"),
        ("run rides.csv -t duration --save m", "stderr", 0, ""),
    ],
)
def test_closed_streams_are_no_traceback(
    arguments: str, closed: str, code: int, message: str, cli: CliRunner, tmp_path: Path
) -> None:
    write(tmp_path / "rides.csv", rides(40))
    done = cli(*arguments.split(), folder=tmp_path, closed=closed)
    assert done.code == code
    assert done.err.splitlines()[-1:] == ([f"ellipack: {message}"] if message else [])
    assert (tmp_path / "m").exists() == ("--save" in arguments)


@pytest.mark.parametrize(("redirection", "code"), [("<&-", 0), (">&-", 3), ("2>&-", 0)])
def test_closed_streams_of_a_new_process(redirection: str, code: int, tmp_path: Path) -> None:
    command = f"{sys.executable} -m ellipack --version {redirection}"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    error = "ellipack: standard output can't be written: Bad file descriptor\n"
    assert (done.returncode, done.stderr) == (code, error if code else "")


@pytest.mark.parametrize("text", ['"word"', '"word"\n', '"two\nlines"'])
def test_a_table_of_one_quoted_word_has_no_rows(text: str, cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    result = cli("run", "t.csv", "-t", "y", folder=tmp_path)
    assert (result.code, result.err) == (3, "ellipack: t.csv has columns but no rows\n")


def test_paths_that_are_not_utf8_can_be_used(cli: CliRunner, tmp_path: Path) -> None:
    table, model, report = (os.fsdecode(name) for name in (b"t\xff.csv", b"m\xff", b"r\xff.html"))
    write(tmp_path / "rides.csv", rides(40))
    os.rename(tmp_path / "rides.csv", tmp_path / table)
    for _ in range(2):
        run = "run", table, "-t", TARGET, "--save", model, "--resume", model, "--report", report
        result = cli(*run, folder=tmp_path)
        assert result.code == 0, result.err
    assert cli("report", model, folder=tmp_path).code == 0
    assert "Traceback" not in cli("run", table, "-t", os.fsdecode(b"\xff"), folder=tmp_path).err
