import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ellipack import MetricRegressor
from ellipack.evaluation.run import load_run
from tests.cli.runner import CliRunner, CommandResult
from tests.cli.tables import COLUMNS, TARGET, rides, write

RUN = "run", "rides.csv", "--target", TARGET
ROWS, HALF = 200, 120


@pytest.fixture(scope="module")
def whole(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table that was learned in one run."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder / "rides.csv", rides(ROWS))
    for name in ("p.csv", "p.parquet"):
        assert cli(*RUN, "--save", f"model of {name}", "--predictions", name, folder=folder).code == 0
    return folder


@pytest.fixture(scope="module")
def half_finished(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the same table, learned when it had only half of its rows."""
    folder = tmp_path_factory.mktemp("half")
    write(folder / "rides.csv", rides(ROWS)[:HALF])
    for name in ("p.csv", "p.parquet"):
        assert cli(*RUN, "--save", f"model of {name}", "--predictions", name, folder=folder).code == 0
    write(folder / "rides.csv", rides(ROWS))
    return folder


@pytest.fixture
def half(half_finished: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return shutil.copytree(half_finished, tmp_path / "half")


def last(result: CommandResult) -> str:
    return result.err.splitlines()[-1]


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_resumed_run_continues_after_its_last_row(name: str, whole: Path, half: Path, cli: CliRunner) -> None:
    result = cli("run", "rides.csv", "--resume", f"model of {name}", "--predictions", name, folder=half)
    assert result.code == 0
    assert result.err == f"ellipack: resuming model of {name} (120 rows learned) after row 120 of rides.csv\n"
    assert (half / name).read_bytes() == (whole / name).read_bytes()
    assert (half / f"model of {name}").read_bytes() == (whole / f"model of {name}").read_bytes()
    again = cli("run", "./rides.csv", "--resume", f"model of {name}", "--predictions", name, folder=half)
    assert (again.code, last(again)) == (0, "ellipack: ./rides.csv has no new rows")
    assert again.out == result.out.replace("rides.csv", "./rides.csv")
    assert (half / name).read_bytes() == (whole / name).read_bytes()
    assert sorted(path.name for path in half.iterdir()) == sorted(path.name for path in whole.iterdir())


def test_saving_to_another_file_keeps_the_resumed_model(half: Path, cli: CliRunner) -> None:
    before = (half / "model of p.csv").read_bytes()
    resume = "--resume", "model of p.csv", "--save", "other", "--predictions", "p.csv"
    assert cli("run", "rides.csv", *resume, folder=half).code == 0
    assert (half / "model of p.csv").read_bytes() == before
    assert (half / "other").read_bytes() != before


def test_another_table_is_learned_from_its_first_row_with_its_own_predictions(
    whole: Path, half: Path, cli: CliRunner
) -> None:
    write(half / "more.csv", rides(ROWS)[HALF:])
    before = (half / "p.csv").read_bytes()
    result = cli("run", "more.csv", "--resume", "model of p.csv", "--predictions", "more_p.csv", folder=half)
    assert result.code == 0
    assert last(result) == (
        "ellipack: resuming model of p.csv (120 rows learned) from the first row of more.csv; "
        "it was trained on rides.csv"
    )
    assert (half / "p.csv").read_bytes() == before
    made = [line.split(",") for line in (half / "more_p.csv").read_text().splitlines()[1:]]
    expected = [line.split(",") for line in (whole / "p.csv").read_text().splitlines()[1 + HALF :]]
    assert [row for row, *_ in made] == [str(t) for t in range(1, ROWS - HALF + 1)]
    assert [rest for _, *rest in made] == [rest for _, *rest in expected]
    # The same command, repeated, finds no new rows in more.csv.
    again = cli("run", "more.csv", "--resume", "model of p.csv", "--predictions", "more_p.csv", folder=half)
    assert last(again) == "ellipack: more.csv has no new rows"


def test_standard_input_continues_where_it_stopped(whole: Path, cli: CliRunner, tmp_path: Path) -> None:
    run = "run", "-", "--target", TARGET, "--save", "m", "--resume", "m", "--predictions", "p.csv"
    for part in (rides(ROWS)[:HALF], rides(ROWS)[HALF:]):
        stdin = write(tmp_path / "part.csv", part).read_text()
        result = cli(*run, folder=tmp_path, stdin=stdin)
        assert result.code == 0
    assert result.err == "ellipack: resuming m (120 rows learned) from standard input\n"
    assert (tmp_path / "p.csv").read_bytes() == (whole / "p.csv").read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "it has only {fewer:,}"),
        (lambda path: path.unlink(), "it has only 0"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"7", b"8")), "it starts with other bytes"),
        (lambda path: path.write_bytes(b"#" + path.read_bytes()), "it starts with other bytes"),
    ],
)
def test_changed_predictions_are_not_resumed(
    damage: Callable[[Path], object], message: str, half: Path, cli: CliRunner
) -> None:
    size = (half / "p.csv").stat().st_size
    damage(half / "p.csv")
    before = {path: path.read_bytes() for path in half.iterdir()}
    result = cli("run", "rides.csv", "--resume", "model of p.csv", "--predictions", "p.csv", folder=half)
    assert result.code == 3
    expected = f"p.csv must begin with the {size:,} bytes of predictions that the saved run wrote, but {message}"
    assert expected.format(fewer=size - 1) in last(result)
    assert {path: path.read_bytes() for path in half.iterdir()} == before


def test_missing_or_foreign_parquet_predictions_are_not_resumed(half: Path, cli: CliRunner) -> None:
    run = "run", "rides.csv", "--resume", "model of p.parquet", "--predictions", "p.parquet"
    (half / "p.parquet").write_bytes(b"nothing of the kind")
    result = cli(*run, folder=half)
    assert (result.code, last(result).partition(" to resume")[0]) == (3, "ellipack: p.parquet contains no predictions")
    (half / "p.parquet").unlink()
    result = cli(*run, folder=half)
    assert result.code == 3
    size = load_run(half / "model of p.parquet").output_position.size
    assert f".p.parquet.rows must begin with the {size:,} bytes" in last(result)


def test_predictions_after_the_last_save_are_truncated(whole: Path, half: Path, cli: CliRunner) -> None:
    with (half / "p.csv").open("ab") as file:
        file.write(b"121,half a li")
    assert cli("run", "rides.csv", "--resume", "model of p.csv", "--predictions", "p.csv", folder=half).code == 0
    assert (half / "p.csv").read_bytes() == (whole / "p.csv").read_bytes()


def test_warning_if_predictions_are_no_longer_written(half: Path, cli: CliRunner) -> None:
    result = cli("run", "rides.csv", "--resume", "model of p.csv", folder=half)
    assert result.code == 0
    warning = "ellipack: warning: the saved run wrote predictions; without --predictions, no more are written"
    assert last(result) == warning


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "km"], "--target must match the resumed run, which has 'duration', got 'km'"),
        (["--learner", "packing"], "--learner must match the resumed run, which has MetricRegressor, got packing"),
        (["--set", "views=2"], "--set views must match the resumed run, which has 1, got 2"),
        (["--drop", "km"], "--drop must match the resumed run, which has 'km' among its columns, got 'km'"),
        (["--take", "km"], "--take must match the resumed run"),
        (["--levels", "5"], "--levels must match the resumed run, which has 32, got 5"),
        (["--level-memory", "5"], "--level-memory must match the resumed run, which has 50000, got 5"),
        (
            ["--kind", "km=category"],
            "--kind of 'km' must match the resumed run, which has 'number', got 'category'",
        ),
    ],
)
def test_options_must_match_the_resumed_run(options: list[str], message: str, half: Path, cli: CliRunner) -> None:
    before = (half / "model of p.csv").read_bytes()
    result = cli("run", "rides.csv", "--resume", "model of p.csv", *options, folder=half)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"ellipack: {message}")
    assert (half / "model of p.csv").read_bytes() == before


def test_matching_options_may_be_repeated(half: Path, cli: CliRunner) -> None:
    taken = [word for name in COLUMNS[:-1] for word in ("--take", name)]
    same = "--target", TARGET, "--learner", "metric", "--set", "views=1", *taken, "--kind", "km=number"
    result = cli("run", "rides.csv", "--resume", "model of p.csv", "--predictions", "p.csv", *same, folder=half)
    assert result.code == 0, result.err


@pytest.mark.parametrize("learner", ["metric", "packing", "phased"])
def test_every_learner_can_be_resumed(learner: str, cli: CliRunner, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2))
    rows = [[f"{a:.3f}", f"{b:.3f}", f"{0.5 + a / 2:.3f}"] for a, b in X]
    run = "run", "ball.csv", "--target", "y", "--learner", learner, "--save", "m", "--resume", "m"
    for count in (40, 60):
        write(tmp_path / "ball.csv", rows[:count], ["a", "b", "y"])
        result = cli(*run, "--predictions", "p.csv", folder=tmp_path)
        assert result.code == 0, result.err
    shutil.copy(tmp_path / "p.csv", tmp_path / "parts.csv")
    (tmp_path / "m").unlink()
    assert cli(*run, "--predictions", "p.csv", folder=tmp_path).code == 0
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "parts.csv").read_bytes()


def test_only_a_complete_saved_run_can_be_resumed(half: Path, cli: CliRunner) -> None:
    model = half / "model of p.csv"
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    (half / "damaged").write_bytes(data)
    (half / "short").write_bytes(model.read_bytes()[:1000])
    X = np.random.default_rng(0).normal(size=(50, 2))
    MetricRegressor().fit(X, X[:, 0]).save(half / "learner")
    for name, message in {
        "damaged": "damaged is damaged: its checksum does not match; use another copy",
        "short": "short is not an ellipack model, or is truncated: 1000 bytes",
        "learner": "learner holds a MetricRegressor and not a run: create one with `ellipack run --save`",
        "nothing": "nothing can't be read: No such file or directory",
    }.items():
        result = cli("run", "rides.csv", "--target", TARGET, "--resume", name, folder=half)
        assert (result.code, result.out, result.err) == (4, "", f"ellipack: {message}\n")
