"""Rows without a label, columns that are kept, ids and bounds, on the command line."""

import json
from pathlib import Path

import pytest
from pyarrow import parquet

from tests.cli.runner import CliRunner
from tests.cli.tables import COLUMNS, TARGET, rides, rides_with_late_labels, write

ROWS = 120
OPTIONS = "--id", "ride", "--keep", "zone", "--min", "20", "--max", "50"


def write_table(path: Path, rows: int | None = None) -> Path:
    return write(path, rides_with_late_labels(ROWS)[:rows], ["ride", *COLUMNS])


def test_rows_without_a_label_are_predicted_and_counted(cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path / "rides.csv")
    result = cli("run", "rides.csv", "-t", TARGET, *OPTIONS, "--predictions", "p.csv", "--save", "m", folder=tmp_path)
    assert result.code == 0, result.err
    assert "│ rows                        │     108 │" in result.out
    assert "│ rows without a label        │      24 │" in result.out
    assert "│ labels that came later      │      12 │" in result.out
    lines = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()]
    assert lines[0] == ["row", "ride", "zone", "prediction", "label"]
    assert [line[1] for line in lines[1:]] == [row[0] for row in rides_with_late_labels(ROWS)]
    assert [line[2] for line in lines[1:]] == [row[5] for row in rides_with_late_labels(ROWS)]
    assert [line[4] == "" for line in lines[1:]] == [row[-1] == "" for row in rides_with_late_labels(ROWS)]
    assert (
        {20.0, 50.0}
        < {float(line[3]) for line in lines[1:]}
        <= {*map(float, range(20, 51))} | {float(line[3]) for line in lines[1:] if 20 < float(line[3]) < 50}
    )
    by_ride = [line[3] for line in lines[1:] if line[1] == "r 13"]
    assert len(by_ride) == 2
    assert by_ride[0] == by_ride[1]
    summary = json.loads(cli("inspect", "m", "--json", folder=tmp_path).out)["summary"]
    assert (summary["rows"], summary["unlabeled"], summary["late_labels"]) == (108, 24, 12)
    again = cli("predict", "m", "rides.csv", "--keep", "ride", folder=tmp_path)
    assert again.code == 0, again.err
    assert again.err == ""
    assert again.out.startswith("row,ride,prediction\n1,r 0,")
    assert min(float(line.split(",")[2]) for line in again.out.splitlines()[1:]) >= 20


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_a_resumed_run_gives_the_same_bytes(name: str, cli: CliRunner, tmp_path: Path) -> None:
    run = "run", "rides.csv", "-t", TARGET, *OPTIONS, "--predictions", name, "--save", "m", "--resume", "m"
    for folder, steps in ((tmp_path / "whole", [None]), (tmp_path / "parts", [25, 77, None])):
        folder.mkdir()
        for rows in steps:
            write_table(folder / "rides.csv", rows)
            result = cli(*run, folder=folder)
            assert result.code == 0, result.err
    for file in (name, "m"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "parts" / file).read_bytes()
    if name == "p.parquet":
        columns = parquet.read_table(tmp_path / "whole" / name).to_pydict()
        assert list(columns) == ["row", "ride", "zone", "prediction", "label"]
        assert columns["zone"] == [row[5] or None for row in rides_with_late_labels(ROWS)]
        assert [label is None for label in columns["label"]] == [row[-1] == "" for row in rides_with_late_labels(ROWS)]


def test_kept_cells_are_quoted_and_missing_ones_are_not(cli: CliRunner, tmp_path: Path) -> None:
    names = ["plain", "a, b", 'say "hi"', "two\nlines", ""]
    write(tmp_path / "t.csv", [[names[t % 5], str(t), str(t)] for t in range(20)], ["name, or so", "x", "y"])
    for output in ("p.csv", "p.parquet"):
        result = cli("run", "t.csv", "-t", "y", "--keep", "name, or so", "--predictions", output, folder=tmp_path)
        assert result.code == 0, result.err
    text = (tmp_path / "p.csv").read_text()
    assert text.startswith('row,"name, or so",prediction,label\n1,plain,0.0,0.0\n2,"a, b",0.0,1.0\n3,"say ""hi""",')
    assert '\n4,"two\nlines",' in text
    assert "\n5,," in text
    kept = parquet.read_table(tmp_path / "p.parquet")["name, or so"].to_pylist()
    assert kept == [name or None for name in names] * 4


def test_bad_labels_are_errors_and_missing_ones_are_not(cli: CliRunner, tmp_path: Path) -> None:
    rows = [*rides(40), [*rides(41)[-1][:-1], "soon"]]
    rows[10][-1] = ""
    write(tmp_path / "rides.csv", rows)
    result = cli("run", "rides.csv", "-t", TARGET, folder=tmp_path)
    assert result.code == 3
    assert "row 41, column 'duration': 'soon' is not a number" in result.err.splitlines()[-1]
    result = cli("run", "rides.csv", "-t", TARGET, "--on-error", "skip", folder=tmp_path)
    assert "│ rows                        │      39 │" in result.out
    assert "│ rows skipped                │       1 │" in result.out
    assert "│ rows without a label        │       1 │" in result.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--keep", "no", "--predictions", "p.csv"),
            "a column that is kept must be one of the columns of rides.csv: ride, when, ",
        ),
        (("--id", "no"), "the id column must be one of the columns of rides.csv: ride, when, "),
        (("--min", "3", "--max", "2"), "the minimum must be at most the maximum, 2, got 3"),
        (("--min", "inf"), "the minimum must be a number"),
    ],
)
def test_invalid_options_are_errors(options: tuple[str, ...], message: str, cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path / "rides.csv", 20)
    result = cli("run", "rides.csv", "-t", TARGET, *options, folder=tmp_path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"ellipack: {message}")


def test_options_of_a_resumed_run_must_match(cli: CliRunner, tmp_path: Path) -> None:
    write_table(tmp_path / "rides.csv", 20)
    assert cli("run", "rides.csv", "-t", TARGET, *OPTIONS, "--save", "m", folder=tmp_path).code == 0
    for option, given in (("--min", "1"), ("--max", "60"), ("--id", "zone"), ("--keep", "card")):
        result = cli("run", "rides.csv", "--resume", "m", option, given, folder=tmp_path)
        assert result.code == 2
        assert result.err.startswith(f"ellipack: {option} must match the resumed run, which has ")


def test_large_ids_of_json_give_each_label_to_its_row(cli: CliRunner, tmp_path: Path) -> None:
    ids = [2**53 + 1, 2**53]
    rows: list[dict[str, float]] = [{"id": each, "x": x} for x, each in enumerate(ids)]
    rows += [{"id": each, "x": 0, "y": 10.0 + x} for x, each in reversed([*enumerate(ids)])]
    (tmp_path / "t.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = cli("run", "t.ndjson", "-t", "y", "--id", "id", "--predictions", "p.csv", folder=tmp_path)
    assert result.code == 0, result.err
    lines = [line.split(",") for line in (tmp_path / "p.csv").read_text().splitlines()[1:]]
    assert [line[1] for line in lines] == [str(row["id"]) for row in rows]
    assert lines[2][2:] == [lines[1][2], "11.0"]
    assert lines[3][2:] == [lines[0][2], "10.0"]
