"""The command works if everything but its output folder is read-only, the home and temporary directories included."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.tables import TARGET, rides, write
from tests.faults.preloading import library


def test_a_run_needs_no_other_folder_than_that_of_its_outputs(tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    outputs = ["--save", "m", "--predictions", "p.parquet", "--report", "r.html"]
    read_only = {"LD_PRELOAD": library(), "IO_FAULTS_READ_ONLY": str(tmp_path), "HOME": "/"}
    done = subprocess.run(
        [sys.executable, "-m", "ellipack", "run", "rides.csv", "-t", TARGET, *outputs],
        cwd=tmp_path,
        env={**os.environ, **read_only},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "ellipack: report: r.html")
    assert sorted(os.listdir(tmp_path)) == ["m", "p.parquet", "r.html", "rides.csv"]
