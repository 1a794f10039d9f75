"""The past on the command line: `run --by`, `run --no-past` and `predict --follow`."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ellipack import KeyedRegressor, MetricRegressor
from ellipack.cli.learners import use_folder_of_outputs
from ellipack.evaluation.run import load_run
from ellipack.validation import Floats
from tests.cli.runner import CliRunner

N = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table of shops whose levels move slowly, cut in two."""
    path, rng = tmp_path_factory.mktemp("past"), np.random.default_rng(0)
    shops = rng.integers(12, size=N)
    levels = 5 * rng.normal(size=12) + np.cumsum(0.1 * rng.normal(size=(N, 12)), axis=0)
    price = rng.normal(size=N)
    units = levels[np.arange(N), shops] - price
    rows = [[f"shop {s}", f"{p:.6f}", f"{u:.6f}"] for s, p, u in zip(shops, price, units, strict=True)]
    for name, part in (("all.csv", rows), ("first.csv", rows[:350]), ("rest.csv", rows[350:])):
        write(path / name, part)
    return path


def write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["shop", "price", "units"], *rows])


def result(cli: CliRunner, folder: Path, *arguments: str) -> dict[str, Any]:
    done = cli("run", "all.csv", "-t", "units", "--drop", "shop", "--json", *arguments, folder=folder)
    assert done.code == 0, done.err
    record: dict[str, Any] = json.loads(done.out)
    return record


def test_the_past_by_key_lowers_the_error_and_is_reported(cli: CliRunner, folder: Path) -> None:
    without, stream, keyed = (result(cli, folder, *each) for each in (["--no-past"], [], ["--by", "shop"]))
    assert without["past"] is None
    assert without["parameters"]["past"] is False
    errors = [record["summary"]["rmse"] for record in (without, stream, keyed)]
    assert errors[2] < 0.8 * min(errors[:2])
    assert keyed["past"]["rmse_with"] < 0.8 * keyed["past"]["rmse_without"]
    assert keyed["past"]["rmse_without"] == pytest.approx(stream["past"]["rmse_without"])
    assert keyed["past"]["features"][2:] == [
        "units, 1 row ago", "units, 2 rows ago", "units, 3 rows ago", "error of that prediction, 1 row ago by shop",
        "units, 1 row ago by shop", "units, 2 rows ago by shop", "mean of units by shop", "price",
    ]  # fmt: skip
    printed = cli("run", "all.csv", "-t", "units", "--drop", "shop", "--by", "shop", folder=folder).out
    assert "RMSE saved by the past" in printed


def test_a_resumed_run_keeps_its_past(cli: CliRunner, folder: Path, tmp_path: Path) -> None:
    whole = result(cli, folder, "--by", "shop")
    model = str(tmp_path / "model")
    begun = cli("run", "first.csv", "-t", "units", "--drop", "shop", "--by", "shop", "--save", model, folder=folder)
    assert begun.code == 0, begun.err
    resumed = cli("run", "all.csv", "--resume", model, "--json", folder=folder)
    assert resumed.code == 0, resumed.err
    again = json.loads(resumed.out)
    assert again["past"] == whole["past"]
    assert again["summary"] == whole["summary"]
    refused = cli("run", "all.csv", "--resume", model, "--by", "price", folder=folder)
    assert refused.code == 2
    assert "--by must match the resumed run, which has ['shop'], got ['price']" in refused.err


@pytest.fixture(scope="module")
def model(cli: CliRunner, folder: Path) -> Path:
    arguments = ["first.csv", "-t", "units", "--drop", "shop", "--by", "shop", "--save", "model"]
    done = cli("run", *arguments, folder=folder)
    assert done.code == 0, done.err
    return folder / "model"


def followed(model: Path, folder: Path, known: Floats) -> Floats:
    """Return the predictions of the loaded learner for the rest of the table."""
    with (folder / "rest.csv").open() as file:
        rows = list(csv.DictReader(file))
    learner = load_run(model).learner
    assert isinstance(learner, MetricRegressor)
    X = np.array([[float(row["price"])] for row in rows])
    return learner.predict_next(X, keys=[row["shop"] for row in rows], labels=known)


@pytest.mark.parametrize("labels", ["all", "none", "some"])
def test_following_rows_use_the_labels_of_the_file(cli: CliRunner, folder: Path, model: Path, labels: str) -> None:
    with (folder / "rest.csv").open() as file:
        rows = [[row["shop"], row["price"], row["units"]] for row in csv.DictReader(file)]
    for t, row in enumerate(rows):
        row[2] = row[2] if labels == "all" or (labels == "some" and t % 3) else ""
    write(folder / f"{labels}.csv", rows)
    done = cli("predict", "model", f"{labels}.csv", "--follow", folder=folder)
    assert done.code == 0, done.err
    predictions = [float(line.split(",")[1]) for line in done.out.splitlines()[1:]]
    known = np.array([float(row[2]) if row[2] else np.nan for row in rows])
    assert predictions == followed(model, folder, known).tolist()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "store"], "--by must be one of the columns of all.csv: shop, price, units"),
        (["--by", "units"], "--by must not be the target, because a row is predicted without it, got 'units'"),
        (["--learner", "keyed", "--by", "shop", "--by", "units"], "--by must not be the target"),
        (["--by", "shop", "--no-past"], "--by needs the past: omit --no-past"),
        (["--by", "shop", "--learner", "packing"], "--by needs --learner metric"),
        (["--set", "past=9"], "past must be an integer from 0 to 8, got 9"),
    ],
)
def test_wrong_options_are_refused(cli: CliRunner, folder: Path, arguments: list[str], message: str) -> None:
    done = cli("run", "all.csv", "-t", "units", *arguments, folder=folder)
    assert done.code == 2
    assert message in done.err


def test_a_table_without_the_key_is_refused(cli: CliRunner, folder: Path, model: Path) -> None:
    (folder / "no_shop.csv").write_text("price\n1.0\n")
    done = cli("predict", "model", "no_shop.csv", "--follow", folder=folder)
    assert done.code == 3
    assert "no_shop.csv must have the column 'shop', whose values are keys" in done.err


def test_one_learner_per_key(cli: CliRunner, folder: Path) -> None:
    arguments = ("--learner", "keyed", "--by", "shop", "--set", "max_learners=4")
    record = result(cli, folder, *arguments)
    assert (record["keys"]["name"], record["keys"]["count"], record["keys"]["on_disk"]) == ("shop", 12, 8)
    assert sum(record["keys"]["rows"]) == record["summary"]["rows"]
    printed = cli("run", "all.csv", "-t", "units", "--drop", "shop", *arguments, folder=folder).out
    assert "Errors by shop" in printed
    assert "12 learners, 8 of them on disk" in printed
    refused = cli("run", "all.csv", "-t", "units", "--learner", "keyed", folder=folder)
    assert refused.code == 2
    assert "--learner keyed needs --by" in refused.err


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([None, "-", "b/p.csv"], "b"),
        (["a/model", "b/p.csv"], "a"),
        (["/dev/null", "a/link"], "b"),
        ([None, "-", "/dev/null"], None),
    ],
)
def test_the_learners_of_keys_are_in_the_folder_of_the_first_output(
    outputs: list[str | None], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        (tmp_path / name).mkdir()
    (tmp_path / "b" / "report").touch()
    (tmp_path / "a" / "link").symlink_to(tmp_path / "b" / "report")
    learner = KeyedRegressor("shop")
    use_folder_of_outputs(learner, *outputs)
    assert learner._options().limits.folder == (expected and os.path.realpath(expected))
