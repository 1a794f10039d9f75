"""Two commands do not write to the same file."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ellipack.cli import output_lock
from ellipack.cli.output_lock import lock_output
from ellipack.errors import StreamError
from ellipack.evaluation.append_only_file import AppendOnlyFile, OutputPosition
from tests.cli.runner import TIMEOUT, CliRunner, start_command
from tests.cli.tables import TARGET, rides, write

LOCK = ".{}.ellipack-lock"


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def test_the_second_run_says_who_writes_the_file(
    cli: CliRunner, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(tmp_path / "rides.csv", rides(60))
    (tmp_path / "link").symlink_to("m")
    first = "run", "-", "-t", TARGET, "--save", "m", "--predictions", "p.csv"
    second = {
        ("--save", "m", "--resume", "m"): 4,
        ("--save", "link"): 4,
        ("--save", "other", "--predictions", "p.csv"): 3,
        ("--report", "m"): 3,
    }
    with start_command(*first, folder=tmp_path, streams=tmp_path_factory.mktemp("streams")) as running:
        running.feed((tmp_path / "rides.csv").read_bytes())
        wait_for((tmp_path / "p.csv").exists)  # after its lock
        before = sorted(os.listdir(tmp_path))
        for outputs, code in second.items():
            result = cli("run", "rides.csv", "-t", TARGET, *outputs, folder=tmp_path)
            assert result.code == code
            assert re.search(
                rf"is in use by process {running.number} on \S+ since \S+ \S+ UTC \(ellipack run - -t {TARGET} "
                r"--save m --predictions p.csv\): wait for it, or choose another file",
                result.err,
            )
            assert sorted(os.listdir(tmp_path)) == before
        running.stop(signal.SIGKILL)
    assert (tmp_path / LOCK.format("m")).exists()  # a killed process leaves it, without a lock on it
    for outputs in list(second)[:3]:
        assert cli("run", "rides.csv", "-t", TARGET, *outputs, folder=tmp_path).code == 0
    assert not list(tmp_path.glob(LOCK.format("*")))


def test_a_run_holds_the_lock_on_its_report(
    cli: CliRunner, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write(tmp_path / "rides.csv", rides(60))
    first = "run", "-", "-t", TARGET, "--report", "r.html"
    with start_command(*first, folder=tmp_path, streams=tmp_path_factory.mktemp("streams")) as running:
        lock = tmp_path / LOCK.format("r.html")
        wait_for(lambda: lock.exists() and lock.stat().st_size > 0)
        result = cli("run", "rides.csv", "-t", TARGET, "--report", "r.html", folder=tmp_path)
        assert (result.code, f"r.html is in use by process {running.number}" in result.err) == (3, True)
    assert cli("run", "rides.csv", "-t", TARGET, "--report", "r.html", folder=tmp_path).code == 0
    assert sorted(os.listdir(tmp_path)) == ["r.html", "rides.csv"]


@pytest.mark.parametrize("command", ["predict m rides.csv -o out.csv", "report m -o out.html"])
def test_other_commands_lock_their_output(command: str, cli: CliRunner, tmp_path: Path) -> None:
    output = command.rsplit(" ", 1)[-1]
    write(tmp_path / "rides.csv", rides(60))
    assert cli("run", "rides.csv", "-t", TARGET, "--save", "m", folder=tmp_path).code == 0
    with lock_output(str(tmp_path / output)):
        result = cli(*command.split(), folder=tmp_path)
    assert (result.code, f"in use by process {os.getpid()}" in result.err) == (3, True)
    assert cli(*command.split(), folder=tmp_path).code == 0
    assert sorted(os.listdir(tmp_path)) == sorted(["m", output, "rides.csv"])


@pytest.mark.parametrize(
    ("option", "code", "message"),
    [
        ("--save", 4, "names that end in .ellipack-lock are those of locks"),
        ("--predictions", 2, "predictions must go to an uncompressed .csv or .parquet file"),
        ("--report", 2, "the report must go to a .html file"),
    ],
)
def test_lock_files_are_no_outputs(option: str, code: int, message: str, cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    with lock_output(str(tmp_path / "p.csv")):
        lock = tmp_path / LOCK.format("p.csv")
        before = lock.read_bytes()
        result = cli("run", "rides.csv", "-t", TARGET, option, lock.name, folder=tmp_path)
        assert (result.code, message in result.err) == (code, True)
        assert lock.read_bytes() == before


def test_only_one_of_many_holds_the_lock(tmp_path: Path) -> None:
    """Processes that take, release and remove the lock file in turn never hold it at the same time."""
    program = """
import os
from ellipack.cli.output_lock import lock_output
from ellipack.errors import StreamError
held = 0
while held < 100:
    try:
        with lock_output("out"):
            with open("inside", "x"):
                pass
            held += 1
            os.unlink("inside")
    except StreamError:
        pass
"""
    processes = [subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) for _ in range(2)]
    assert [process.wait(TIMEOUT) for process in processes] == [0, 0]
    assert not os.listdir(tmp_path)


def test_files_that_are_not_locks_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / LOCK.format("out")
    path.write_text("my notes")
    with pytest.raises(StreamError, match="is not a lock file of ellipack: remove it"), lock_output(f"{tmp_path}/out"):
        pass
    assert path.read_text() == "my notes"
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StreamError, match="can't be written"), lock_output(f"{tmp_path}/out"):
        pass
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("left", [b"", b"ellipack lo", b"ellipack lock: process 1 on", bytes(99)])
def test_lock_files_cut_short_by_a_power_loss_are_removed(left: bytes, tmp_path: Path) -> None:
    (tmp_path / LOCK.format("out")).write_bytes(left)
    with lock_output(f"{tmp_path}/out"):
        pass
    assert not os.listdir(tmp_path)


def test_warning_if_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: int) -> bool:
        raise OSError("Operation not supported")

    monkeypatch.setattr(output_lock, "try_lock", refuse)
    with lock_output(f"{tmp_path}/out"):
        pass
    assert "out can't be locked (Operation not supported): make sure that no other" in capsys.readouterr().err


def test_a_file_with_two_names_is_appended_to_by_one_process(tmp_path: Path) -> None:
    one = AppendOnlyFile(tmp_path / "one", OutputPosition())
    one.write(b"1")
    os.link(tmp_path / "one", tmp_path / "other")
    with pytest.raises(StreamError, match="another process writes to it, under another name"):
        AppendOnlyFile(tmp_path / "other", OutputPosition())
    one.close()
    assert (tmp_path / "one").read_bytes() == b"1"
    AppendOnlyFile(tmp_path / "other", OutputPosition()).close()
