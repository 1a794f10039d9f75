import os
import shutil
from pathlib import Path

import pytest

from ellipack.cli.options import Options
from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write

RUN = "run", "rides.csv", "--target", TARGET


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "rides.csv", rides(60))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--save", "no/m"], 4, "no/m can't be written: the directory no does not exist"),
        (["--save", "."], 4, ". can't be written: it is a directory"),
        (["--predictions", "no/p.csv"], 3, "no/p.csv can't be written: the directory no does not exist"),
        (["--report", "no/r.html"], 3, "no/r.html can't be written: the directory no does not exist"),
        (
            ["--report", "rides.csv/r.html"],
            3,
            "rides.csv/r.html can't be written: the directory rides.csv does not exist",
        ),
        (
            ["--predictions", "rides.csv"],
            2,
            "TABLE and --predictions must be different files, got 'rides.csv' for both",
        ),
        (["--save", "./rides.csv"], 2, "TABLE and --save must be different files, got './rides.csv' for both"),
        (["--save", "x", "--predictions", "x"], 2, "--predictions and --save must be different files"),
        (["--predictions", "-", "--report", "-"], 2, "--predictions and --report can't both go to standard output"),
        *(
            (
                ["--predictions", name],
                2,
                "predictions must go to an uncompressed .csv or .parquet file, or to one without an extension, got "
                f"'{name}'",
            )
            for name in ("p.csv.gz", "p.xlsx", "p.ndjson", "p.TXT")
        ),
        *(
            (
                ["--report", name],
                2,
                f"the report must go to a .html file, or to one without an extension, got '{name}'",
            )
            for name in ("r.txt", "r.pdf", "r.html.gz")
        ),
        (["--interval", "95"], 2, "Invalid value for '--interval': 95.0 is not in the range 0.5<=x<=0.99."),
        (["--interval", "nan"], 2, "coverage must be from 0.5 to 0.99, got nan"),
        (
            ["--set", "views"],
            2,
            "--set must be NAME=VALUE with one of the names max_centers, n_jobs, neighbors, past, random_state",
        ),
        (["--set", "config=1"], 2, "--set must be NAME=VALUE"),
        (["--set", "max_centers=few"], 2, "max_centers must be an integer from 16 to 2147483647, got 'few'"),
        (["--learner", "packing", "--set", "keep_founding_label=no"], 2, "--set keep_founding_label must be true or"),
        (["--kind", "km"], 2, "--kind must be COLUMN=KIND, got 'km'"),
        (["--kind", "km=length"], 2, "the kind of column 'km' must be one of number, boolean, time, category"),
        (["--na", "n.v.", "--na", os.fsdecode(b"\xff")], 2, r"na must be text in UTF-8, got '\udcff'"),
        (["--drop", "miles"], 3, "rides.csv has no column named 'miles' (to drop); its columns are: when, km, traffic"),
        (
            ["--save-every", "0"],
            2,
            "Invalid value for '--save-every': 0 is not in the range x>=1. (see ellipack run --help)",
        ),
        (["--format", "xls"], 2, "Invalid value for '--format': 'xls' is not one of"),
        (["--keep", "zone"], 2, "--keep needs --predictions, or --save to keep the columns when the run is resumed"),
        (["--save-every", "10"], 2, "--save-every needs --save or --resume: this run is not saved"),
        (["--complete"], 2, "--complete needs --save or --resume: a run that is not saved learns the last line anyway"),
        (["--shards", "4"], 2, "--shards needs --workers or --scheduler"),
        (["--shard-rows", "64"], 2, "--shard-rows needs --workers or --scheduler"),
        (["--worker-timeout", "5"], 2, "--worker-timeout needs --workers or --scheduler"),
        (["--by", "zone", "--by", "zone"], 2, "columns of by must be distinct, got zone, zone"),
        (["--trend", TARGET], 3, "rides.csv: the target 'duration' cannot also be a trend"),
        (["--time-format", f"{TARGET}=iso"], 3, "rides.csv: the target 'duration' cannot have a time format"),
        (["--sheet", "one"], 2, "--sheet needs an Excel file or a database, but rides.csv is csv"),
        (["--format", "ndjson", "--delimiter", ";"], 2, "--delimiter needs a CSV file, but rides.csv is ndjson"),
        (["--colour", "red"], 2, "No such option '--colour'"),
    ],
)
def test_invalid_options_are_reported_before_anything_is_written(
    options: list[str], code: int, message: str, folder: Path, cli: CliRunner
) -> None:
    result = cli(*RUN, *options, folder=folder)
    assert (result.code, result.out) == (code, "")
    assert result.last_line.startswith(f"ellipack: {message}")
    assert sorted(path.name for path in folder.iterdir()) == ["rides.csv"]
    assert len((folder / "rides.csv").read_text().splitlines()) == 61


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "none.csv", "--target", "y"], 3, "none.csv: no such file: check the path"),
        (["run", "rides.csv"], 2, "--target must be one of the columns of rides.csv: when, km, traffic, wind, zone"),
        (
            ["run", "rides.csv", "--target", "hours"],
            3,
            "rides.csv has no column named 'hours' (the target); its columns are:",
        ),
        (["run", "rides.csv", "--target", "zone"], 3, "rides.csv: the target 'zone' must contain numbers, got 'port'"),
        (["run"], 2, "Missing argument 'TABLE...'. (see ellipack run --help)"),
        (["walk"], 2, "No such command 'walk'"),
    ],
)
def test_invalid_input_is_reported_in_one_line(
    arguments: list[str], code: int, message: str, folder: Path, cli: CliRunner
) -> None:
    result = cli(*arguments, folder=folder)
    assert (result.code, result.out) == (code, "")
    assert result.last_line.startswith(f"ellipack: {message}")


def test_full_disk_is_reported_and_the_old_model_is_kept(folder: Path, cli: CliRunner) -> None:
    save = "--save", "m", "--predictions", "p.csv"
    write(folder / "rides.csv", rides(400)[:60])
    assert cli(*RUN, *save, folder=folder).code == 0
    before = {name: (folder / name).read_bytes() for name in ("m", "p.csv")}
    write(folder / "rides.csv", rides(400))
    resume = "run", "rides.csv", "--resume", "m", "--predictions", "p.csv"
    # First there is no space for predictions, then only for predictions but not for the model.
    result = cli(*resume, folder=folder, max_file_size=len(before["p.csv"]) + 1000)
    assert (result.code, result.out) == (3, "")
    assert result.err.splitlines()[-1] == "ellipack: p.csv can't be written: File too large"
    result = cli(*resume, folder=folder, max_file_size=len(before["m"]) + 100)
    assert (result.code, result.out) == (4, "")
    assert result.err.splitlines()[-1].startswith("ellipack: m can't be written; the existing file is unchanged: ")
    assert (folder / "m").read_bytes() == before["m"]
    assert not list(folder.glob(".m.*"))
    # With enough space, the run resumes to the same result.
    assert cli(*resume, folder=folder).code == 0
    shutil.copy(folder / "rides.csv", folder / "other.csv")
    assert cli("run", "other.csv", "--target", TARGET, "--predictions", "whole.csv", folder=folder).code == 0
    assert (folder / "p.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_full_device_is_an_error_and_null_device_is_not(folder: Path, cli: CliRunner) -> None:
    result = cli(*RUN, "--predictions", "/dev/full", folder=folder)
    assert (result.code, result.out) == (3, "")
    assert result.last_line == "ellipack: /dev/full can't be written: No space left on device"
    assert cli(*RUN, "--predictions", "/dev/null", "--save", "m", folder=folder).code == 0


@pytest.mark.parametrize("place", ["p.parquet", "page.html"])
def test_disk_full_at_the_end_is_reported_in_one_line(place: str, folder: Path, cli: CliRunner) -> None:
    option = "--predictions" if place == "p.parquet" else "--report"
    result = cli(*RUN, option, place, folder=folder, max_file_size=2_000)
    assert (result.code, result.out) == (3, "")
    assert result.last_line == f"ellipack: {place} can't be written: File too large"
    assert not (folder / "p.parquet").exists()


def test_the_command_that_resumes_has_the_options_of_workers() -> None:
    options = Options("t.csv", target="y", save="m", workers=2, worker_timeout=1800.0)
    assert options.resume_command() == "ellipack run t.csv --resume m --workers 2 --worker-timeout 1800"
