"""The command works if everything but its output folder is read-only, the home and temporary directories included."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.tables import TARGET, rides, write
from tests.faults.preloading import library

KEYED = ["--learner", "keyed", "--by", "zone", "--set", "max_learners=1"]


def run_read_only(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that can write to one folder only, which is not the current one. Paths `./NAME` are in it."""
    read_only = {"LD_PRELOAD": library(), "IO_FAULTS_READ_ONLY": str(folder), "HOME": "/"}
    return subprocess.run(
        [sys.executable, "-m", "ellipack", *(each.replace("./", f"{folder}/", 1) for each in arguments)],
        cwd="/",
        env={**os.environ, **read_only},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("learner", [[], KEYED], ids=["metric", "keyed"])
def test_a_run_needs_no_other_folder_than_that_of_its_outputs(learner: list[str], tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    outputs = ["--save", "./m", "--predictions", "./p.parquet", "--report", "./r.html"]
    done = run_read_only(tmp_path, "run", "./rides.csv", "-t", TARGET, *outputs, *learner)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, f"ellipack: report: {tmp_path}/r.html")
    assert sorted(os.listdir(tmp_path)) == ["m", "p.parquet", "r.html", "rides.csv"]


@pytest.mark.parametrize("option", ["--save", "--predictions", "--report"])
def test_one_output_is_enough_for_the_learners_of_keys(option: str, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    done = run_read_only(tmp_path, "run", "./rides.csv", "-t", TARGET, *KEYED, option, "./out")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(tmp_path)) == ["out", "rides.csv"]


def test_a_resumed_run_and_predictions_need_no_other_folder(tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    arguments = ["./rides.csv", "-t", TARGET, *KEYED, "--save", "./m"]
    assert run_read_only(tmp_path, "run", *arguments).returncode == 0
    write(tmp_path / "rides.csv", rides(90))
    resumed = run_read_only(tmp_path, "run", *arguments, "--resume", "./m")
    assert resumed.returncode == 0, resumed.stderr
    predicted = run_read_only(tmp_path, "predict", "./m", "./rides.csv", "--output", "./q.csv")
    assert predicted.returncode == 0, predicted.stderr
    assert sorted(os.listdir(tmp_path)) == ["m", "q.csv", "rides.csv"]
