"""Prediction intervals on the command line: `run --interval` and `predict --interval`."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import CliRunner

N = 300


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, rng = tmp_path_factory.mktemp("intervals"), np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    rows = np.column_stack([x, x[:, 0] + 0.3 * rng.normal(size=N)]).round(6).tolist()
    for name, part in (("all.csv", rows), ("first.csv", rows[:200])):
        with (path / name).open("w", newline="") as file:
            csv.writer(file).writerows([["a", "b", "y"], *part])
    return path


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_intervals_are_columns_scores_and_charts(cli: CliRunner, folder: Path) -> None:
    wanted = ("--interval", "0.9", "--interval", "0.5")
    options = ("-t", "y", *wanted, "--predictions", "p.csv", "--save", "m", "--report", "r.html", "--json")
    done = cli("run", "all.csv", *options, folder=folder)
    assert done.code == 0, done.err
    rows = read(folder / "p.csv")
    assert list(rows[0]) == ["row", "prediction", "lower_90", "upper_90", "lower_50", "upper_50", "label"]
    assert float(rows[1]["lower_90"]) == -np.inf
    inside = [float(each["lower_90"]) <= float(each["label"]) <= float(each["upper_90"]) for each in rows[2:]]
    records = json.loads(done.out)["intervals"]
    assert [each["coverage"] for each in records] == [0.9, 0.5]
    assert records[0]["covered"] == pytest.approx(np.mean(inside))
    assert abs(records[0]["covered"] - 0.9) < 0.05
    assert "Coverage over time" in (folder / "r.html").read_text()
    printed = cli("inspect", "m", folder=folder)
    assert "in intervals of 90%" in printed.out
    assert json.loads(cli("inspect", "m", "--json", folder=folder).out)["intervals"] == records


def test_a_resumed_run_writes_the_same_intervals(cli: CliRunner, folder: Path) -> None:
    assert cli("run", "all.csv", "-t", "y", "--interval", "0.8", "--predictions", "whole.csv", folder=folder).code == 0
    start = ("--interval", "0.8", "--predictions", "cut.csv", "--save", "cut", "--complete")
    assert cli("run", "first.csv", "-t", "y", *start, folder=folder).code == 0
    refused = cli("run", "all.csv", "--resume", "cut", "--interval", "0.9", "--predictions", "cut.csv", folder=folder)
    assert refused.code == 2
    assert "--interval must match the resumed run" in refused.err
    done = cli("run", "all.csv", "--resume", "cut", "--predictions", "cut.csv", folder=folder)
    assert done.code == 0, done.err
    assert (folder / "cut.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_predictions_of_a_saved_run_have_intervals(cli: CliRunner, folder: Path) -> None:
    assert cli("run", "first.csv", "-t", "y", "--save", "model", folder=folder).code == 0
    for more in ((), ("--follow",)):
        done = cli("predict", "model", "all.csv", "--interval", "0.95", "-o", "out.csv", *more, folder=folder)
        assert done.code == 0, done.err
        rows = read(folder / "out.csv")
        assert list(rows[0]) == ["row", "prediction", "lower_95", "upper_95"]
        assert all(float(each["lower_95"]) < float(each["prediction"]) < float(each["upper_95"]) for each in rows)
    wrong = cli("predict", "model", "all.csv", "--interval", "95", folder=folder)
    assert wrong.code == 2
    assert "'--interval': 95.0 is not in the range 0.5<=x<=0.99" in wrong.err
