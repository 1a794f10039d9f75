import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from ellipack.evaluation.run import load_run
from ellipack.tabular import open_table
from ellipack.validation import Floats
from tests.cli.runner import CliRunner
from tests.cli.tables import COLUMNS, TARGET, rides, write

ROWS = 150


@pytest.fixture(scope="module")
def trained(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a model and a table of new rows."""
    folder = tmp_path_factory.mktemp("trained")
    write(folder / "rides.csv", rides(ROWS))
    assert cli("run", "rides.csv", "--target", TARGET, "--save", "model", folder=folder).code == 0
    new = rides(30, seed=1)
    new[3][4] = "nowhere yet"
    write(folder / "new.csv", new)
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "trained")


@pytest.fixture(scope="module")
def expected(trained: Path) -> Floats:
    """Return the predictions of the learner."""
    run = load_run(trained / "model")
    with open_table(str(trained / "new.csv")) as source:
        return run.learner.predict(run.encoder.transform(run.encoder.parse_unlabeled(next(source))))


def numbers(text: str) -> Floats:
    return np.array([line.split(",") for line in text.splitlines()[1:]], dtype=float)


def test_predictions_equal_those_of_the_learner_and_leave_the_model_unchanged(
    folder: Path, cli: CliRunner, expected: Floats
) -> None:
    before = (folder / "model").read_bytes()
    result = cli("predict", "model", "new.csv", folder=folder)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("row,prediction\n1,")
    np.testing.assert_array_equal(numbers(result.out), np.column_stack([np.arange(1, 31), expected]))
    assert (folder / "model").read_bytes() == before


def test_column_order_and_file_format_do_not_matter(folder: Path, cli: CliRunner, expected: Floats) -> None:
    rows = rides(30, seed=1)
    rows[3][4] = "nowhere yet"
    order = [5, 3, 1, 0, 4, 2]  # without the target
    write(folder / "turned.csv", [[row[i] for i in order] for row in rows], [COLUMNS[i] for i in order])
    objects = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    (folder / "new.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    for name in ("turned.csv", "new.ndjson"):
        np.testing.assert_array_equal(numbers(cli("predict", "model", name, folder=folder).out)[:, 1], expected)
    result = cli("predict", "model", "-", folder=folder, stdin=(folder / "turned.csv").read_bytes())
    np.testing.assert_array_equal(numbers(result.out)[:, 1], expected)
    result = cli("predict", "model", "new.csv", "-o", "out.parquet", folder=folder)
    assert (result.code, result.out) == (0, "")
    table = parquet.read_table(folder / "out.parquet")
    assert table.column_names == ["row", "prediction"]
    np.testing.assert_array_equal(table["prediction"].to_numpy(), expected)
    assert not list(folder.glob(".*"))


def test_missing_columns_are_errors_and_extra_columns_are_ignored(folder: Path, cli: CliRunner) -> None:
    write(folder / "more.csv", [[*row, "x"] for row in rides(3)], [*COLUMNS, "remark"])
    result = cli("predict", "model", "more.csv", folder=folder)
    assert (result.code, result.err) == (0, "ellipack: columns ignored by the model: remark\n")
    write(folder / "less.csv", [row[1:] for row in rides(3)], COLUMNS[1:])
    result = cli("predict", "model", "less.csv", folder=folder)
    assert result.code == 3
    assert result.err.startswith("ellipack: less.csv has no column named 'when' (a feature column); its columns are")


def test_bad_rows_stop_predictions_or_are_skipped(folder: Path, cli: CliRunner) -> None:
    rows = rides(5)
    rows[2][1] = "far"
    write(folder / "bad.csv", rows)
    result = cli("predict", "model", "bad.csv", "-o", "out.parquet", folder=folder)
    assert result.code == 3
    assert result.err == (
        "ellipack: bad.csv, row 3, column 'km': 'far' is not a number: fix it, or run with --on-error skip\n"
    )
    assert not list(folder.glob("*out*"))
    assert not list(folder.glob(".*"))
    result = cli("predict", "model", "bad.csv", "--on-error", "skip", folder=folder)
    assert (result.code, result.err) == (0, "ellipack: skipped: bad.csv, row 3, column 'km': 'far' is not a number\n")
    assert numbers(result.out)[:, 0].tolist() == [1, 2, 4, 5]


def test_errors_say_what_can_be_done_after_learning(folder: Path, cli: CliRunner) -> None:
    rows = rides(5)
    rows[2][1] = "1,5"
    write(folder / "commas.csv", rows)
    reason = (
        "commas.csv, row 3, column 'km': '1,5' is not a number: if all numbers of the table are written like this one, "
        "convert them, or learn a new model with --decimal ,"
    )
    result = cli("predict", "model", "commas.csv", folder=folder)
    assert (result.code, result.err) == (3, f"ellipack: {reason}: fix it, or run with --on-error skip\n")
    result = cli("predict", "model", "commas.csv", "--on-error", "skip", folder=folder)
    assert (result.code, result.err) == (0, f"ellipack: skipped: {reason}\n")


def test_invalid_arguments_are_reported_in_one_line(folder: Path, cli: CliRunner) -> None:
    for arguments, code, message in (
        (["none", "new.csv"], 4, "none can't be read: No such file or directory"),
        (["new.csv", "new.csv"], 2, "MODEL and TABLE must be different files, got 'new.csv' for both"),
        (["new.csv", "model"], 4, "new.csv is not an ellipack model, or is truncated"),
        (["model", "none.csv"], 3, "none.csv: no such file: check the path"),
        (
            ["model", "new.csv", "-o", "new.csv"],
            2,
            "TABLE and --output must be different files, got 'new.csv' for both",
        ),
        (
            ["model", "new.csv", "-o", "out.xlsx"],
            2,
            "predictions must go to an uncompressed .csv or .parquet file, or to one without an extension, got 'out.xl",
        ),
        (["model", "new.csv", "-o", "no/out.csv"], 3, "no/out.csv can't be written: the directory no does not exist"),
    ):
        result = cli("predict", *arguments, folder=folder)
        assert (result.code, result.out) == (code, "")
        assert result.err.startswith(f"ellipack: {message}")
        assert result.err.count("\n") == 1
