"""Runs killed by SIGKILL at random moments, and gone on with by the same command, until they end.

As many kills as the environment variable ``ELLIPACK_KILLS`` says.
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
from tests.cli.tables import TARGET, rides, write

KILLS = int(os.environ.get("ELLIPACK_KILLS", "50"))
SHARES = [("p.csv", 0.5, 0), ("p.csv", 0.5, 1), ("p.parquet", 0.1, 2)]
"""What predictions are written to, how many of the kills that gets, and the seed of their moments."""

ROWS, SAVE_EVERY = 800, 20
STARTING, LEARNING, ENDING = "starting", "learning", "ending"
STAGES = (
    *(LEARNING, STARTING, STARTING, ENDING, STARTING, LEARNING),
    *(STARTING, STARTING, LEARNING, STARTING, STARTING, STARTING),
)
"""When runs are killed, in turn."""

COLD, TURNS = {5, 22}, 24
"""Of so many, those that begin cold, as a shell starts them: one is killed as it learns, another as it starts.

All others begin warm, with everything imported already.
"""

REACH = {LEARNING: 0.2, ENDING: 0.05}  # seconds

ENVIRONMENT = {
    name: value for name, value in {**os.environ, **PLAIN_TERMINAL}.items() if name != "PYTHONDONTWRITEBYTECODE"
}
"""Compiled modules are kept: Python starts often here."""


class Whole(NamedTuple):
    """What a run leaves behind that nobody has killed: its files, and the bytes that it has appended."""

    files: dict[str, bytes]
    appended: int


def arguments(predictions: str) -> list[str]:
    """Return the one command that is given again and again."""
    places = ["--predictions", predictions, "--save", "model", "--resume", "model", "--save-every", str(SAVE_EVERY)]
    return ["run", "rides.csv", "--target", TARGET, *places]


def fresh(folder: Path) -> Path:
    """Return a folder in which there is a stream and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write(folder / "rides.csv", rides(ROWS))
    return folder


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def appended_in(folder: Path, predictions: str) -> int:
    """Return how many bytes there are of the file to which predictions are appended."""
    path = folder / (f".{predictions}.rows" if predictions.endswith(".parquet") else predictions)
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def await_stage(stage: str, runs: Callable[[], bool], folder: Path, predictions: str, whole: Whole) -> None:
    """Wait until a run has come so far, or has ended: to its first save, or to its last prediction."""
    model = folder / "model"
    before = model.stat().st_ino if model.exists() else 0
    while runs():
        if stage == LEARNING and model.exists() and model.stat().st_ino != before:
            return
        if stage == ENDING and appended_in(folder, predictions) >= whole.appended:
            return
        time.sleep(0.002)


def killed_cold(*arguments: str, folder: Path, wait: Callable[[Callable[[], bool]], None]) -> int:
    """Do as `CliRunner.killed`, with a process that begins where a shell's would, before anything is imported."""
    nowhere = subprocess.DEVNULL
    with subprocess.Popen(
        [*PROGRAM, *arguments], cwd=folder, env=ENVIRONMENT, stdout=nowhere, stderr=nowhere
    ) as process:
        wait(lambda: process.poll() is None)
        process.kill()
    return process.returncode


@pytest.mark.parametrize(("predictions", "share", "seed"), SHARES)
def test_a_run_killed_at_any_moment_loses_and_doubles_nothing(
    predictions: str, share: float, seed: int, cli: CliRunner, tmp_path: Path
) -> None:
    untouched, folder = fresh(tmp_path / "whole"), fresh(tmp_path / "killed")
    assert cli(*arguments(predictions), folder=untouched).code == 0
    whole = Whole(files_in(untouched), load_run(untouched / "model").output_position.size)
    rng, kills, turns, reach = np.random.default_rng(seed), max(1, round(share * KILLS)), count(), dict(REACH)
    while kills:
        turn = next(turns)
        stage, is_cold = STAGES[turn % len(STAGES)], turn % TURNS in COLD
        after = rng.uniform(0, reach[stage])

        def wait(runs: Callable[[], bool], stage: str = stage, after: float = after) -> None:
            if stage != STARTING:
                await_stage(stage, runs, folder, predictions, whole)
            time.sleep(after)

        began = time.monotonic()
        kill = killed_cold if is_cold else cli.killed
        code = kill(*arguments(predictions), folder=folder, wait=wait)
        if stage == LEARNING and not is_cold:
            reach[STARTING] = time.monotonic() - began
        if code == 0:  # it was faster, and another one begins
            assert files_in(folder) == whole.files
            fresh(folder)
            continue
        assert code == -signal.SIGKILL
        kills -= 1
        if (folder / "model").exists():
            saved = load_run(folder / "model")
            assert saved.position % SAVE_EVERY == 0
            assert appended_in(folder, predictions) >= saved.output_position.size or (folder / "p.parquet").exists()
    assert cli(*arguments(predictions), folder=folder).code == 0
    assert files_in(folder) == whole.files
