"""Runs that SIGKILL ends at random moments, and that the same command resumes until they are complete.

Some labels are missing, and some of these come later.

The environment variable ``ELLIPACK_KILLS`` sets the number of kills.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ellipack.evaluation.run import load_run
from tests.cli.runner import PLAIN_TERMINAL, PROGRAM, CliRunner
from tests.cli.tables import COLUMNS, TARGET, rides_with_late_labels, write

KILLS = int(os.environ.get("ELLIPACK_KILLS", "15"))
SHARES = [("p.csv", 1.0, 0), ("p.parquet", 0.1, 2)]
"""File of predictions, share of the kills and random seed of each test."""

ROWS, SAVE_EVERY = 400, 20
STARTING, LEARNING, ENDING = "starting", "learning", "ending"
STAGES = (
    *(LEARNING, STARTING, STARTING, ENDING, STARTING, LEARNING),
    *(STARTING, STARTING, LEARNING, STARTING, STARTING, STARTING),
)
"""Stages at which runs are killed, in turn."""

COLD, TURNS = {5, 22}, 24
"""Out of `TURNS` runs, those that start in a new Python process: one is killed while learning, one at the start.

All others start in a fork, with everything imported.
"""

MAX_DELAY = {LEARNING: 0.1, ENDING: 0.05}  # seconds from the start of a stage to the kill

ENVIRONMENT = {
    name: value for name, value in {**os.environ, **PLAIN_TERMINAL}.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""Python caches compiled modules, since it starts often."""


class CompleteRun(NamedTuple):
    """Files of a run that was not killed, and the number of bytes it appended."""

    files: dict[str, bytes]
    appended: int


def arguments(predictions: str) -> list[str]:
    """Return the command that starts and resumes the run."""
    options = ["--predictions", predictions, "--save", "model", "--resume", "model", "--save-every", str(SAVE_EVERY)]
    return ["run", "rides.csv", "--target", TARGET, "--id", "ride", "--keep", "zone", "--min", "5", *options]


def fresh_folder(folder: Path) -> Path:
    """Return a folder that contains only the table."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write(folder / "rides.csv", rides_with_late_labels(ROWS), ["ride", *COLUMNS])
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def appended_in(folder: Path, predictions: str) -> int:
    """Return the size of the file to which predictions are appended."""
    path = folder / (f".{predictions}.rows" if predictions.endswith(".parquet") else predictions)
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def await_stage(stage: str, is_running: Callable[[], bool], folder: Path, predictions: str, whole: CompleteRun) -> None:
    """Wait until a run has saved (learning) or written its last prediction (ending), or has ended."""
    model = folder / "model"
    before = model.stat().st_ino if model.exists() else 0
    while is_running():
        if stage == LEARNING and model.exists() and model.stat().st_ino != before:
            return
        if stage == ENDING and appended_in(folder, predictions) >= whole.appended:
            return
        time.sleep(0.002)


def run_and_kill_cold(*arguments: str, folder: Path, wait: Callable[[Callable[[], bool]], None]) -> int:
    """Do the same as `CliRunner.run_and_kill`, in a new Python process."""
    devnull = subprocess.DEVNULL
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, env=ENVIRONMENT, stdout=devnull, stderr=devnull
    ) as process:
        wait(lambda: process.poll() is None)
        process.kill()
    return process.returncode


@pytest.mark.parametrize(("predictions", "share", "seed"), SHARES)
def test_a_killed_run_loses_and_repeats_no_row(
    predictions: str, share: float, seed: int, cli: CliRunner, tmp_path: Path
) -> None:
    untouched, folder = fresh_folder(tmp_path / "whole"), fresh_folder(tmp_path / "killed")
    assert cli(*arguments(predictions), folder=untouched).code == 0
    whole = CompleteRun(files_in(untouched), load_run(untouched / "model").output_position.size)
    rng, kills, turns, max_delay = np.random.default_rng(seed), max(1, round(share * KILLS)), count(), dict(MAX_DELAY)
    while kills:
        turn = next(turns)
        stage, is_cold = STAGES[turn % len(STAGES)], turn % TURNS in COLD
        after = rng.uniform(0, max_delay[stage])

        def wait(is_running: Callable[[], bool], stage: str = stage, after: float = after) -> None:
            if stage != STARTING:
                await_stage(stage, is_running, folder, predictions, whole)
            time.sleep(after)

        began = time.monotonic()
        kill = run_and_kill_cold if is_cold else cli.run_and_kill
        code = kill(*arguments(predictions), folder=folder, wait=wait)
        if stage == LEARNING and not is_cold:
            max_delay[STARTING] = time.monotonic() - began
        if code == 0:  # the run ended before the kill: start another one
            assert files_in(folder) == whole.files
            fresh_folder(folder)
            continue
        assert code == -signal.SIGKILL
        kills -= 1
        if (folder / "model").exists():
            saved = load_run(folder / "model")
            assert saved.position % SAVE_EVERY == 0
            assert appended_in(folder, predictions) >= saved.output_position.size or (folder / "p.parquet").exists()
    assert cli(*arguments(predictions), folder=folder).code == 0
    assert files_in(folder) == whole.files


def test_a_killed_run_leaves_no_learners_of_keys(tmp_path: Path) -> None:
    folder, temporary = fresh_folder(tmp_path / "killed"), tmp_path / "temporary"
    temporary.mkdir()
    keyed = ["--learner", "keyed", "--by", "zone", "--set", "max_learners=1"]
    command = [*PROGRAM, "run", "-", "--target", TARGET, "--drop", "ride", *keyed, "--save", "model", "--head", "50"]
    with (
        (folder / "rides.csv").open("rb") as table,
        subprocess.Popen(
            [*command, "--save-every", "50"],
            cwd=folder,
            env={**ENVIRONMENT, "TMPDIR": str(temporary)},
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        assert process.stdin is not None
        process.stdin.write(table.read())  # which is not the end of the table
        process.stdin.flush()
        while not (folder / "model").exists() and process.poll() is None:
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    left = {name for name in os.listdir(folder) if not name.startswith(".model.")}  # locks, and a file half written
    assert left == {"model", "rides.csv"}
    assert not list(temporary.iterdir())
