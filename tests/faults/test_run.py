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
from typing import NamedTuple

import pytest

from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write
from tests.faults.power_loss import Disk, distinct_losses
from tests.faults.preloading import library, plan, sample

LOSSES = 30
"""Power losses that are drawn after each change. Those that leave the same files are tried once."""


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


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    """Make a folder that contains only these files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files except the report, which contains the speed of the run."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "r.html"}


class CompleteRun(NamedTuple):
    """Files of a run without faults, the number of its calls, and the changes that it made."""

    predictions: str
    files: dict[str, bytes]
    calls: int
    changes: list[str]
    table: Path


def log_of(run: list[str], folder: Path, preloaded: CliRunner) -> list[str]:
    """Run a command without faults; return its calls and changes of files."""
    log = folder.with_name("log")
    environment = {**plan(0, 0, "count", folder), "IO_FAULTS_LOG": str(log)}
    assert preloaded(*run, folder=folder, environment=environment).code == 0
    return log.read_text().splitlines()


@pytest.fixture(scope="module", params=["p.csv", "p.parquet"])
def whole(
    request: pytest.FixtureRequest, preloaded: CliRunner, tmp_path_factory: pytest.TempPathFactory
) -> CompleteRun:
    """Return a complete run with each kind of predictions."""
    folder = fresh_folder(tmp_path_factory.mktemp("whole") / "folder")
    lines = log_of(arguments(request.param), folder, preloaded)
    changes = [line for line in lines if line != "call"]
    return CompleteRun(request.param, files_in(folder), lines.count("call"), changes, folder / "rides.csv")


def test_a_run_with_faults_can_be_completed(whole: CompleteRun, preloaded: CliRunner, tmp_path: Path) -> None:
    assert whole.calls > 50
    ways = [("once", errno.EIO), ("always", errno.ENOSPC), ("kill", 0)]
    for offset, (mode, error) in enumerate(ways):
        for at in sample(whole.calls, 7 * offset, 96):
            folder = fresh_folder(tmp_path / "faulty")
            run = arguments(whole.predictions)
            failed = preloaded(*run, folder=folder, environment=plan(at, error, mode, folder))
            place = f"{mode} at call {at} of {whole.calls}: {failed.err}"
            assert failed.code in ((-signal.SIGKILL, 0) if mode == "kill" else (0, 3, 4)), place
            assert "Traceback" not in failed.err, place
            again = preloaded(*run, folder=folder)
            assert again.code == 0, f"{place}; then {again.err}"
            assert files_in(folder) == whole.files, place


def test_a_run_is_completed_after_a_power_loss(whole: CompleteRun, preloaded: CliRunner, tmp_path: Path) -> None:
    assert len(whole.changes) > 30
    losses = list(distinct_losses(Disk(whole.table), whole.changes, LOSSES, random.Random(0)))
    assert len(losses) > 40
    for number in sample(len(losses), 7, 30):
        folder = tmp_path / "lost"
        write_files(folder, losses[number - 1])
        place = f"loss {number} of {len(losses)}, with {sorted(os.listdir(folder))}"
        again = preloaded(*arguments(whole.predictions), folder=folder)
        assert again.code == 0, f"{place}: {again.err}"
        assert files_in(folder) == whole.files, place


@pytest.mark.parametrize("outputs", [{"--save": "m"}, {"--predictions": "p.csv"}, {"--predictions": "p.parquet"}])
def test_outputs_of_a_complete_run_survive_a_power_loss(
    outputs: dict[str, str], preloaded: CliRunner, tmp_path: Path
) -> None:
    folder = fresh_folder(tmp_path / "whole")
    options = [word for option in outputs.items() for word in option]
    lines = log_of(["run", "rides.csv", "-t", TARGET, *options], folder, preloaded)
    disk, rng = Disk(folder / "rides.csv"), random.Random(0)
    for line in lines:
        if line != "call":
            disk.apply(line)
    for _ in range(20):
        lost = disk.lose_power(rng)
        for name in outputs.values():
            assert lost[name] == (folder / name).read_bytes()
