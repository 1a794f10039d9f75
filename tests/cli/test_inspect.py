import json
import re
from pathlib import Path

import numpy as np
import pytest

from ellipack import MetricRegressor, PackingClassifier, PackingRegressor
from tests.cli.runner import CliRunner
from tests.cli.tables import TARGET, rides, write


@pytest.fixture(scope="module")
def folder(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model, and the JSON and printed output of its run."""
    made = tmp_path_factory.mktemp("inspected")
    write(made / "rides.csv", rides(100))
    run = "run", "rides.csv", "--target", TARGET
    (made / "shown").write_text(cli(*run, folder=made).out)
    (made / "run.json").write_text(cli(*run, "--save", "model", "--json", folder=made).out)
    return made


def test_inspect_shows_the_output_of_the_run_and_more(folder: Path, cli: CliRunner) -> None:
    result = cli("inspect", "model", folder=folder)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith((folder / "shown").read_text())
    titles = re.findall(
        r"^[A-Z][a-z]+(?: [a-z :]+)?$", "\n".join(map(str.rstrip, result.out.splitlines())), re.MULTILINE
    )
    assert titles == [
        "What drives it",
        "Leading directions",
        "Metric of the learner that sees the past",
        "Expert weights",
        "Phases",
        "Columns",
        "Parameters",
    ]
    assert "│ max_centers  │ 100000 │" in result.out
    assert "│ zone    │ category │       0 │ 12 rows in 'other' │\n" in result.out
    weights = [float(each) for each in re.findall(r"([0-9.]+)% │ ", result.out.partition("Expert weights")[2])]
    assert sum(weights) == pytest.approx(100, abs=1)


def test_json_of_a_model_equals_json_of_its_run(folder: Path, cli: CliRunner) -> None:
    result = cli("inspect", "model", "--json", folder=folder)
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out) | {"speed": []} == json.loads((folder / "run.json").read_text()) | {"speed": []}
    assert cli("inspect", "run.json", folder=folder).out == cli("inspect", "model", folder=folder).out
    piped = cli("inspect", "-", folder=folder, stdin=(folder / "run.json").read_text())
    assert piped.out == cli("inspect", "model", folder=folder).out


def test_a_learner_saved_without_a_run_is_shown_without_scores(cli: CliRunner, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2))
    MetricRegressor().fit(X, X[:, 1]).save(tmp_path / "metric")
    PackingRegressor().fit(X, 0.5 + X[:, 1] / 2).save(tmp_path / "packing")
    for name, learner in (("metric", "MetricRegressor"), ("packing", "PackingRegressor")):
        result = cli("inspect", name, folder=tmp_path)
        assert (result.code, result.err) == (0, "")
        assert result.out.startswith(f"{learner} on {name}, target y\n")
        assert "RMSE" not in result.out
        assert "x1" in result.out
    MetricRegressor().save(tmp_path / "new")
    assert cli("inspect", "new", folder=tmp_path) == (
        4,
        "",
        "ellipack: new holds a learner that is not fitted yet\n",
    )


@pytest.mark.parametrize("command", ["inspect", "report"])
def test_invalid_model_is_reported_in_one_line(command: str, folder: Path, cli: CliRunner, tmp_path: Path) -> None:
    (tmp_path / "no.json").write_text('{"source": 1}')
    (tmp_path / "cut.json").write_text((folder / "run.json").read_text()[:500])
    (tmp_path / "cut").write_bytes((folder / "model").read_bytes()[:500])
    for name, message in (
        ("no.json", "no.json is not the output of `ellipack run --json`: record"),
        ("cut.json", "cut.json is not the output of `ellipack run --json`: record must be JSON"),
        ("cut", "cut is not an ellipack model, or is truncated: 500 bytes"),
        ("none", "none can't be read: No such file or directory"),
        (".", ". can't be read: Is a directory"),
    ):
        result = cli(command, name, folder=tmp_path)
        assert (result.code, result.out) == (4, "")
        assert result.err.startswith(f"ellipack: {message}")
        assert result.err.count("\n") == 1
    assert not list(tmp_path.glob("*.html"))


def test_reports_of_a_model_and_of_its_run_are_equal(folder: Path, cli: CliRunner) -> None:
    result = cli("report", "model", folder=folder)
    assert result == (0, "", "ellipack: report: model.html\n")
    page = (folder / "model.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<strong><bdi>duration</bdi></strong>" in page
    piped = cli("report", "-", folder=folder, stdin=cli("inspect", "model", "--json", folder=folder).out)
    assert (piped.code, piped.err) == (0, "")
    assert piped.out == page
    assert cli("report", "run.json", "-o", "run.html", folder=folder).code == 0
    assert (folder / "run.html").stat().st_size == pytest.approx(len(page.encode()), rel=0.1)


def test_reports_are_pages(folder: Path, cli: CliRunner) -> None:
    result = cli("report", "model", "-o", "page.txt", folder=folder)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "ellipack: the report must go to a .html file, or to one without an extension, got 'page.txt'\n"
    )
    assert cli("report", "model", "-o", "page.htm", folder=folder).code == 0


def test_report_path_must_be_writable(folder: Path, cli: CliRunner) -> None:
    result = cli("report", "model", "-o", "no/page.html", folder=folder)
    assert (result.code, result.err) == (
        3,
        "ellipack: no/page.html can't be written: the directory no does not exist\n",
    )
    result = cli("report", "model", "-o", "model", folder=folder)
    assert (result.code, result.err) == (
        2,
        "ellipack: MODEL and --output must be different files, got 'model' for both\n",
    )


def test_inspect_refuses_a_classifier(cli: CliRunner, tmp_path: Path) -> None:
    PackingClassifier().fit([[0.1], [0.9]], ["a", "b"]).save(tmp_path / "classifier")
    result = cli("inspect", "classifier", folder=tmp_path)
    assert result.code != 0
    assert "classifier must hold a regressor, got a PackingClassifier" in result.err
