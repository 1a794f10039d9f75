"""Every call of `ellipack run` fails in turn, or the process is killed there, or power is lost there.

Afterwards the same command completes the run: its model and its predictions are those of a run without faults, byte for
byte. By default, a sample of the calls fails; with the environment variable ``ELLIPACK_FAULTS``, all do.
"""

import errno
import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write
from tests.faults.power_loss import Disk
from tests.faults.preloading import ALL_POINTS, NEVER, library, plan, sample

FILES = ["p.csv", "p.parquet"]


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliRunner]:
    """Return a runner of commands whose calls can fail."""
    runner = CliRunner(tmp_path_factory.mktemp("preloaded"), {"LD_PRELOAD": library()})
    yield runner
    runner.close()


def arguments(predictions: str) -> list[str]:
    outputs = ["--save", "m", "--resume", "m", "--predictions", predictions, "--report", "r.html"]
    return ["run", "rides.csv", "-t", TARGET, "--save-every", "20", *outputs]


def fresh_folder(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write(folder / "rides.csv", rides(60))
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files except the report, which contains the speed of the run."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "r.html"}


def complete_run(runner: CliRunner, predictions: str, folder: Path, log: Path) -> tuple[dict[str, bytes], int]:
    """Run without faults, and log all changes; return the files, and the number of calls."""
    fresh_folder(folder)
    environment = {**plan(NEVER, 0, "once", folder), "IO_FAULTS_LOG": str(log)}
    assert runner(*arguments(predictions), folder=folder, environment=environment).code == 0
    low, high = 1, 4000
    while low < high:  # find the last call at which a run is killed
        middle = (low + high + 1) // 2
        fresh = fresh_folder(folder.with_name("counted"))
        code = runner(*arguments(predictions), folder=fresh, environment=plan(middle, 0, "kill", fresh)).code
        low, high = (middle, high) if code == -signal.SIGKILL else (low, middle - 1)
    return files_in(folder), low


@pytest.mark.parametrize("predictions", FILES)
def test_a_run_with_faults_can_be_completed(predictions: str, preloaded: CliRunner, tmp_path: Path) -> None:
    whole, calls = complete_run(preloaded, predictions, tmp_path / "whole", tmp_path / "log")
    assert calls > 50
    ways = [("once", errno.EIO), ("always", errno.ENOSPC), ("kill", 0)]
    for offset, (mode, error) in enumerate(ways):
        for at in sample(calls, 5 * offset, 16):
            folder = fresh_folder(tmp_path / "faulty")
            failed = preloaded(*arguments(predictions), folder=folder, environment=plan(at, error, mode, folder))
            place = f"{mode} at call {at} of {calls}: {failed.err}"
            assert failed.code in ((-signal.SIGKILL, 0) if mode == "kill" else (0, 3, 4)), place
            assert "Traceback" not in failed.err, place
            again = preloaded(*arguments(predictions), folder=folder)
            assert again.code == 0, f"{place}; then {again.err}"
            assert files_in(folder) == whole, place


@pytest.mark.parametrize("predictions", FILES)
def test_a_run_is_completed_after_a_power_loss(predictions: str, preloaded: CliRunner, tmp_path: Path) -> None:
    whole, _ = complete_run(preloaded, predictions, tmp_path / "whole", tmp_path / "log")
    rng, log = random.Random(0), (tmp_path / "log").read_text().splitlines()
    assert len(log) > 30
    losses = [at for at in range(len(log) + 1) for _ in range(20)] if ALL_POINTS else range(0, len(log) + 1, 6)
    for at in losses:
        disk = Disk(tmp_path / "whole" / "rides.csv")
        for line in log[:at]:
            disk.apply(line)
        folder = disk.lose_power(tmp_path / "lost", rng)
        place = f"after line {at} of {len(log)}, with {sorted(os.listdir(folder))}"
        again = preloaded(*arguments(predictions), folder=folder)
        assert again.code == 0, f"{place}: {again.err}"
        assert files_in(folder) == whole, place
