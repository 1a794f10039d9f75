"""Tables that grow, are rotated, renamed or changed between two runs of the same command."""

import gzip
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from ellipack.evaluation.run import load_run
from tests.cli.runner import CliRunner, CommandResult
from tests.cli.tables import COLUMNS, TARGET, rides, write

ROWS, HALF = 260, 150
RUN = "run", "rides.csv", "-t", TARGET, "--save", "m", "--resume", "m", "--predictions", "p.csv"


@pytest.fixture(scope="module")
def half_learned(cli: CliRunner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with half a table, which is learned, and with predictions of another run for the whole table."""
    folder = tmp_path_factory.mktemp("half")
    write(folder / "rides.csv", rides(ROWS))
    assert cli("run", "rides.csv", "-t", TARGET, "--predictions", "whole.csv", folder=folder).code == 0
    write(folder / "rides.csv", rides(ROWS)[:HALF])
    assert cli(*RUN, folder=folder).code == 0
    return folder


@pytest.fixture
def folder(half_learned: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(half_learned, tmp_path / "copy"))


def last(result: CommandResult) -> str:
    return result.err.splitlines()[-1]


def labels(path: Path) -> list[str]:
    return [line.rpartition(",")[2] for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("kind", ["csv", "quoted", "crlf", "gz", "ndjson"])
def test_incomplete_last_line_waits_until_it_is_complete(kind: str, cli: CliRunner, tmp_path: Path) -> None:
    """The table is cut at several bytes of its last line, `...,0.` of `0.182928` among them."""
    lines = [f"{0.1 * t:.3f},{t % 7},{0.182928 + t}" for t in range(30)]
    text = "\n".join(["a,b,y", *lines]) + "\n"
    if kind == "quoted":
        text = "a,b,y\n" + "".join('"{}","{}","{}"\n'.format(*line.split(",")) for line in lines)
    if kind == "crlf":
        text = text.replace("\n", "\r\n")
    if kind == "ndjson":
        rows = [dict(zip("aby", map(float, line.split(",")), strict=True)) for line in lines]
        text = "".join(f"{json.dumps(row)}\n" for row in rows)
    table = tmp_path / f"t.{ {'gz': 'csv.gz', 'ndjson': 'ndjson'}.get(kind, 'csv') }"
    run = "run", table.name, "-t", "y", "--save", "m", "--resume", "m", "--predictions", "p.csv"

    def write_bytes(size: int) -> None:
        data = text.encode()[:size]
        table.write_bytes(gzip.compress(data) if kind == "gz" else data)

    whole = len(text.encode())
    ends = {"crlf": 2, "ndjson": 2}.get(kind, 1)
    for cut in (12, 6, ends):
        write_bytes(whole - cut)
        result = cli(*run, folder=tmp_path)
        assert result.code == 0, result.err
        assert f"the last line of {table.name} has no line end; it may be incomplete and waits" in last(result)
        assert load_run(tmp_path / "m").position == 29
    write_bytes(whole)
    assert cli(*run, folder=tmp_path).code == 0
    assert [float(label) for label in labels(tmp_path / "p.csv")] == [0.182928 + t for t in range(30)]


@pytest.mark.parametrize("first_rows", [30, 130])
def test_only_the_last_line_of_the_last_file_waits(first_rows: int, cli: CliRunner, tmp_path: Path) -> None:
    """No file but the last has a line end after its last line, which is half a number at first in the last file."""
    header, lines = "a,b,y\n", [f"{0.1 * t:.3f},{t % 7},{0.125 + t}" for t in range(first_rows + 40)]
    run = "run", "[abc].csv", "-t", "y", "--save", "m", "--resume", "m", "--predictions", "p.csv"

    def expect_rows(count: int) -> None:
        for _ in range(2):
            result = cli(*run, folder=tmp_path)
            assert result.code == 0, result.err
            assert load_run(tmp_path / "m").scores.n_rows == count
        assert [float(label) for label in labels(tmp_path / "p.csv")] == [0.125 + t for t in range(count)]

    second = header + "\n".join(lines[first_rows:-10])
    (tmp_path / "a.csv").write_text(header + "\n".join(lines[:first_rows]))
    (tmp_path / "b.csv").write_text(second[:-2])
    expect_rows(len(lines) - 11)
    with (tmp_path / "a.csv").open("a") as file:
        file.write("\n")  # which changes no row
    (tmp_path / "b.csv").write_text(second)
    expect_rows(len(lines) - 11)
    (tmp_path / "c.csv").write_text(header + "\n".join(lines[-10:]) + "\n")
    expect_rows(len(lines))


def test_last_line_is_read_if_the_input_is_over(cli: CliRunner, tmp_path: Path) -> None:
    text = "a,y\n" + "".join(f"{t},{t}\n" for t in range(9)) + "9,9"
    (tmp_path / "t.csv").write_text(text)
    for arguments in (["t.csv"], ["t.csv", "--save", "m", "--complete"], ["-", "--save", "m"]):
        result = cli("run", *arguments, "-t", "y", "--json", folder=tmp_path, stdin=text)
        assert json.loads(result.out)["summary"]["rows"] == 10, result.err
    (tmp_path / "t.ndjson").write_text('{"a": 1, "y": 1}\n{"a": 2, "y": 2}')  # the object is complete
    result = cli("run", "t.ndjson", "-t", "y", "--json", "--save", "m", folder=tmp_path)
    assert json.loads(result.out)["summary"]["rows"] == 2


def test_header_without_a_line_end_has_no_rows(cli: CliRunner, tmp_path: Path) -> None:
    for name, text in {"t.csv": "a,y", "t.ndjson": '{"a": 1'}.items():
        (tmp_path / name).write_text(text)
        result = cli("run", name, "-t", "y", "--save", "m", folder=tmp_path)
        assert (result.code, "Traceback" in result.err) == (3, False)


def test_rotated_table_is_learned_from_its_first_row(cli: CliRunner, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.name != "rides.csv"}
    write(folder / "rides.csv", rides(HALF, seed=1))
    refused = cli(*RUN, folder=folder)
    assert refused.code == 2
    assert "--predictions must be another file for another table (its first rows are not those" in refused.err
    assert {path: path.read_bytes() for path in before} == before
    result = cli(*RUN[:-1], "q.csv", folder=folder)
    assert (result.code, last(result)) == (
        0,
        f"ellipack: resuming m ({HALF} rows learned) from the first row of rides.csv; "
        "its first rows are not those that were learned",
    )
    assert labels(folder / "q.csv") == [repr(float(row[-1])) for row in rides(HALF, seed=1)]
    assert load_run(folder / "m").scores.n_rows == 2 * HALF
    # The same command, repeated, knows the new table.
    assert "has no new rows" in last(cli(*RUN[:-1], "q.csv", folder=folder))


@pytest.mark.parametrize("fault", ["no target", "bad first row"])
@pytest.mark.parametrize("save", [[], ["--save", "new"]])
def test_failed_run_on_another_table_leaves_the_model_as_it_was(
    fault: str, save: list[str], cli: CliRunner, folder: Path
) -> None:
    rows = rides(ROWS, seed=1)
    if fault == "no target":
        write(folder / "other.csv", [row[:-1] for row in rows], COLUMNS[:-1])
    else:
        write(folder / "other.csv", [["never", *rows[0][1:]], *rows[1:]])
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = cli("run", "other.csv", "--resume", "m", *save, folder=folder)
    assert (result.code, "saved" in last(result)) == (3, False), result.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert "has no new rows" in last(cli(*RUN, folder=folder))


def test_failed_run_on_another_table_saves_the_rows_before_the_error(cli: CliRunner, folder: Path) -> None:
    rows = rides(ROWS, seed=1)
    write(folder / "other.csv", [*rows[:20], ["never", *rows[20][1:]], *rows[21:]])
    result = cli("run", "other.csv", "--resume", "m", "--save-every", "20", folder=folder)
    assert (result.code, "(the 20 rows before it are saved; to resume: " in last(result)) == (3, True), result.err
    assert load_run(folder / "m").scores.n_rows == HALF + 20


@pytest.mark.parametrize("kind", ["csv", "gz", "parquet"])
def test_renamed_table_continues(kind: str, cli: CliRunner, folder: Path) -> None:
    whole = write(folder / "rides.csv", rides(ROWS))
    moved = folder / f"moved.{ {'gz': 'csv.gz'}.get(kind, kind) }"
    match kind:
        case "csv":
            whole.rename(moved)
        case "gz":
            moved.write_bytes(gzip.compress(whole.read_bytes()))
        case "parquet":
            columns = {name: [row[i] or None for row in rides(ROWS)] for i, name in enumerate(COLUMNS)}
            parquet.write_table(pa.table(columns), moved)
    result = cli("run", moved.name, *RUN[2:], folder=folder)
    assert (result.code, f"after row {HALF} of {moved.name}" in result.err) == (0, True), result.err
    assert (folder / "p.csv").read_bytes() == (folder / "whole.csv").read_bytes()


@pytest.mark.parametrize("damage", ["changed", "shorter"])
def test_table_that_only_begins_like_the_one_learned_is_refused(damage: str, cli: CliRunner, folder: Path) -> None:
    rows = rides(ROWS)[:HALF]
    if damage == "changed":
        rows[HALF - 50][1] = "99.0"
        write(folder / "rides.csv", [*rows, *rides(ROWS)[HALF:]])
    else:
        write(folder / "rides.csv", rows[: HALF - 1])
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = cli(*RUN, folder=folder)
    message = "rides.csv begins with the rows that were learned, but the last ones before row 151 have changed or are"
    assert (result.code, message in result.err) == (3, True)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("changed", [0, 40])
def test_table_that_only_ends_like_the_one_learned_is_refused(changed: int, cli: CliRunner, folder: Path) -> None:
    rows = rides(ROWS)
    rows[changed][1] = "99.0"
    write(folder / "rides.csv", rows)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    result = cli(*RUN, folder=folder)
    assert (result.code, last(result)) == (
        3,
        "ellipack: rides.csv has the last rows that were learned, before row 151, but some of its first 100 "
        "rows have changed: restore them, or learn the table under another name",
    )
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    shutil.copy(folder / "rides.csv", folder / "other.csv")
    result = cli("run", "other.csv", *RUN[2:-1], "q.csv", folder=folder)
    assert (result.code, "from the first row of other.csv" in last(result)) == (0, True), result.err


@pytest.mark.parametrize("rows", [1, 30, ROWS])
@pytest.mark.parametrize("kind", ["csv", "gz", "ndjson", "parquet"])
def test_rotated_table_of_any_format_and_length_is_learned(
    kind: str, rows: int, cli: CliRunner, tmp_path: Path
) -> None:
    """The rotated table may end before the rows that would be compared."""
    name = f"rides.{ {'gz': 'csv.gz'}.get(kind, kind) }"

    def write_table(lines: list[list[str]]) -> None:
        columns = {name: [row[i] or None for row in lines] for i, name in enumerate(COLUMNS)}
        match kind:
            case "csv":
                write(tmp_path / name, lines)
            case "gz":
                (tmp_path / name).write_bytes(gzip.compress(write(tmp_path / "text", lines).read_bytes()))
            case "ndjson":
                objects = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
                (tmp_path / name).write_text("".join(f"{json.dumps(each)}\n" for each in objects))
            case "parquet":
                parquet.write_table(pa.table(columns), tmp_path / name)

    run = "run", name, "-t", TARGET, "--save", "m", "--resume", "m"
    for seed, count in enumerate((ROWS, rows)):
        write_table(rides(count, seed=seed))
        result = cli(*run, folder=tmp_path)
        assert result.code == 0, result.err
    assert load_run(tmp_path / "m").scores.n_rows == ROWS + rows


def test_predictions_of_a_saved_run_are_not_overwritten_by_those_of_another_table(
    cli: CliRunner, tmp_path: Path
) -> None:
    write(tmp_path / "rides.csv", rides(HALF))
    write(tmp_path / "more.csv", rides(HALF, seed=1))
    for name in ("p.csv", "p.parquet"):
        assert cli(*RUN[:4], "--save", name[2:], "--predictions", name, folder=tmp_path).code == 0
        before = (tmp_path / name).read_bytes()
        result = cli("run", "more.csv", "--resume", name[2:], "--predictions", name, folder=tmp_path)
        assert (result.code, "which holds the predictions of the saved run" in result.err) == (2, True)
        assert (tmp_path / name).read_bytes() == before
