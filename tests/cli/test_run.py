import gzip
import json
import os
import pty
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from pyarrow import parquet

import ellipack
from ellipack import MetricRegressor
from ellipack.evaluation.run import load_run
from ellipack.tabular import TableEncoder, open_table
from ellipack.validation import Floats
from tests.cli.runner import TIMEOUT, CliRunner, CommandResult, run_command
from tests.cli.tables import COLUMNS, TARGET, rides, write

ROWS = 400
TAKEN_FOR = "ellipack: columns: dates or times: when; numbers: km, traffic, wind; text: zone; Booleans: card\n"
EXPECTED_OUTPUT = """\
MetricRegressor on rides.csv, target duration
┌─────────────────────────────┬─────────┐
│ rows                        │     400 │
│ rows skipped                │       0 │
│ rows left out of the errors │      10 │
│ RMSE                        │   1.829 │
│ RMSE of the last quarter    │  0.2636 │
│ RMSE of the running mean    │   20.11 │
│ RMSE of the last value      │   30.41 │
│ MAE                         │  0.7262 │
│ R2                          │  0.9916 │
│ skill over the running mean │   90.9% │
│ RMSE saved by the past      │   -2.6% │
│ effective rank              │ 2 of 15 │
│ centers                     │     400 │
└─────────────────────────────┴─────────┘
What drives it
┏━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ column  ┃    importance ┃      recently ┃                                 ┃
┡━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ km      │    67% ± 8.4% │    67% ± 8.1% │ ████████████████  rises with it │
│ traffic │    33% ± 8.4% │    33% ± 8.1% │ ███████▉                        │
│ when    │ <0.1% ± <0.1% │ <0.1% ± <0.1% │                                 │
│ zone    │ <0.1% ± <0.1% │ <0.1% ± <0.1% │                                 │
│ wind    │     0% ± 0.1% │    0% ± <0.1% │                                 │
│ card    │    0% ± <0.1% │    0% ± <0.1% │                                 │
└─────────┴───────────────┴───────────────┴─────────────────────────────────┘
Leading directions
┏━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ eigenvalue ┃ loadings (features in standard units) ┃
┡━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│          1 │ +1.00 km                              │
│       0.36 │ +1.00 traffic                         │
└────────────┴───────────────────────────────────────┘
"""


class FinishedRun(NamedTuple):
    folder: Path
    result: CommandResult
    predictions: Floats


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Return a finished run of the command in a new process."""
    folder = tmp_path_factory.mktemp("finished")
    write(folder / "rides.csv", rides(ROWS))
    options = "--predictions", "p.csv", "--report", "page.html", "--save", "model"
    result = run_command("run", "rides.csv", "--target", TARGET, *options, folder=folder)
    return FinishedRun(folder, result, np.loadtxt(folder / "p.csv", delimiter=",", skiprows=1))


def strip_lines(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def parse_json(result: CommandResult) -> dict[str, Any]:
    """Return the printed JSON, without the speed, which differs between runs."""
    found: dict[str, Any] = json.loads(result.out)
    return found | {"speed": []}


def test_run_prints_results_and_the_path_of_the_report(finished: FinishedRun) -> None:
    assert finished.result.code == 0
    assert strip_lines(finished.result.out) == EXPECTED_OUTPUT
    assert finished.result.err == f"{TAKEN_FOR}ellipack: report: page.html\n"  # no progress line: not a terminal


def test_written_predictions_give_the_printed_errors(finished: FinishedRun) -> None:
    rows, predictions, labels = finished.predictions.T
    assert (finished.folder / "p.csv").read_text().startswith("row,prediction,label\n1,0.0,")
    assert rows.tolist() == list(range(1, ROWS + 1))
    assert labels.tolist() == [float(row[-1]) for row in rides(ROWS)]
    means = np.append(0.0, np.cumsum(labels)[:-1] / np.arange(1, ROWS))
    errors, counted, means = (predictions - labels)[10:], labels[10:], means[10:]
    cells = [line.split("│") for line in EXPECTED_OUTPUT.splitlines() if "│" in line]
    shown = {name.strip(): value.strip() for _, name, value, *_ in cells}
    assert shown["RMSE"] == f"{np.sqrt(np.mean(errors**2)):.4g}"
    assert shown["MAE"] == f"{np.mean(np.abs(errors)):.4g}"
    assert shown["R2"] == f"{1 - np.mean(errors**2) / counted.var():.4f}"
    skill = 1 - np.sqrt(np.mean(errors**2) / np.mean((means - counted) ** 2))
    assert shown["skill over the running mean"] == f"{skill:.1%}"
    assert "<html" in (finished.folder / "page.html").read_text(encoding="utf-8")


def test_json_contains_the_record_and_changes_nothing_else(
    finished: FinishedRun, cli: CliRunner, tmp_path: Path
) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    result = cli("run", "rides.csv", "-t", TARGET, "--json", "--save", "model", folder=tmp_path)
    assert (result.code, result.err) == (0, TAKEN_FOR)
    found = json.loads(result.out)
    assert found["summary"]["rows"] == ROWS
    assert f"{found['summary']['rmse']:.4g}" == "1.829"
    assert [column["name"] for column in found["columns"]] == list(COLUMNS[:-1])
    assert [column["kind"] for column in found["columns"]] == [
        "time",
        "number",
        "number",
        "number",
        "category",
        "boolean",
    ]
    # The models differ only in the position in the file of predictions.
    one, other = load_run(finished.folder / "model"), load_run(tmp_path / "model")
    assert one.output_position.size == (finished.folder / "p.csv").stat().st_size
    one.output_position = other.output_position
    one.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_every_format_and_standard_input_give_the_same_result(
    finished: FinishedRun, cli: CliRunner, tmp_path: Path
) -> None:
    text = write(tmp_path / "rides.csv", rides(ROWS)).read_bytes()
    (tmp_path / "rides.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "rides.csv.zst").write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    as_text = pacsv.ConvertOptions(column_types={name: pa.string() for name in ("when", "zone", "card")})
    table = pacsv.read_csv(tmp_path / "rides.csv", convert_options=as_text)
    parquet.write_table(table, tmp_path / "rides.parquet")
    objects = [{name: value or None for name, value in row.items()} for row in table.to_pylist()]
    (tmp_path / "rides.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    expected = (finished.folder / "p.csv").read_bytes()
    for name in ("rides.csv.gz", "rides.csv.zst", "rides.parquet", "rides.ndjson"):
        result = cli("run", name, "--target", TARGET, "--predictions", "p.csv", folder=tmp_path)
        assert result.code == 0, result.err
        assert (tmp_path / "p.csv").read_bytes() == expected, name
    for stdin in (text, (tmp_path / "rides.csv.gz").read_bytes(), (tmp_path / "rides.ndjson").read_bytes()):
        result = cli("run", "-", "--target", TARGET, "--predictions", "-", folder=tmp_path, stdin=stdin)
        assert result.code == 0, result.err
        assert result.out.encode() == expected
        assert strip_lines(result.err) == TAKEN_FOR + EXPECTED_OUTPUT.replace("rides.csv", "-")


def test_predictions_are_parquet_if_the_file_name_says_so(
    finished: FinishedRun, cli: CliRunner, tmp_path: Path
) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    result = cli("run", "rides.csv", "--target", TARGET, "--predictions", "p.parquet", folder=tmp_path)
    assert result.code == 0, result.err
    columns = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert list(columns) == ["row", "prediction", "label"]
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), finished.predictions)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet", "rides.csv"]


def test_take_drop_and_kind_select_columns(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(50))
    run = "run", "rides.csv", "--target", TARGET, "--json"
    names = ["km", "traffic"]
    assert parse_json(cli(*run, "--take", "traffic", "--take", "km", folder=tmp_path))["features"] == names
    dropped = [word for name in ("when", "wind", "zone", "card") for word in ("--drop", name)]
    assert parse_json(cli(*run, *dropped, folder=tmp_path))["features"] == names
    result_by_kind = parse_json(cli(*run, "--take", "card", "--kind", "card=category", folder=tmp_path))
    assert sorted(result_by_kind["features"]) == ["card=no", "card=other", "card=yes"]


def test_set_changes_parameters_of_the_learner(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(100))
    run = "run", "rides.csv", "--target", TARGET, "--json", "--learner", "metric"
    result = cli(*run, "--set", "max_centers=50", "--set", "n_jobs=1", folder=tmp_path)
    found = json.loads(result.out)
    assert found["parameters"]["max_centers"] == 50
    assert found["n_centers"] <= 50
    assert parse_json(cli(*run, folder=tmp_path))["n_centers"] == 100


def test_bad_rows_stop_the_run_or_are_skipped_and_counted(cli: CliRunner, tmp_path: Path) -> None:
    rows = rides(60)
    for t in (9, 19, 29, 39, 44, 49):
        rows[t][1] = f"far{t}"
    rows[54] = rows[54][:3]
    write(tmp_path / "rides.csv", rows)
    kind = "--kind", "km=number"
    result = cli("run", "rides.csv", "--target", TARGET, *kind, folder=tmp_path)
    assert result.code == 3
    assert result.out == ""
    assert result.err == (
        "ellipack: rides.csv, row 55: has 3 fields where the header has 7: "
        f"'{','.join(rows[54])}': fix it, or run with --on-error skip\n"
    )
    write(tmp_path / "rides.csv", rows[:54] + rows[55:])
    result = cli("run", "rides.csv", "--target", TARGET, *kind, folder=tmp_path)
    assert result.code == 3
    assert result.err.splitlines()[-1] == (
        "ellipack: rides.csv, row 10, column 'km': 'far9' is not a number: fix it, or run with --on-error skip"
    )
    write(tmp_path / "rides.csv", rows)
    skip = "--on-error", "skip", "--predictions", "p.csv"
    result = cli("run", "rides.csv", "--target", TARGET, *kind, *skip, folder=tmp_path)
    assert result.code == 0
    assert "│ rows                        │      53 │" in result.out
    assert "│ rows skipped                │       7 │" in result.out
    message = [line for line in result.err.splitlines() if "skipped" in line]
    assert message[0] == "ellipack: skipped: rides.csv, row 10, column 'km': 'far9' is not a number"
    assert len(message) == 6
    assert message[-1] == "ellipack: skipped: 7 rows in total"
    played = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)[:, 0].astype(int).tolist()
    assert played == [t for t in range(1, 61) if t not in (10, 20, 30, 40, 45, 50, 55)]


def test_rows_before_a_bad_one_are_saved_and_the_run_can_be_resumed(cli: CliRunner, tmp_path: Path) -> None:
    rows = rides(300)
    good = rows[250][1]
    rows[250][1] = "far"
    write(tmp_path / "rides.csv", rows)
    run = "run", "rides.csv", "--target", TARGET, "--save", "m", "--predictions", "p.csv", "--save-every", "100"
    result = cli(*run, folder=tmp_path)
    assert result.code == 3
    assert result.err.splitlines()[-1] == (
        "ellipack: rides.csv, row 251, column 'km': 'far' is not a number: fix it, or run with --on-error skip "
        "(the 200 rows before it are saved; to resume: "
        "ellipack run rides.csv --resume m --predictions p.csv --save-every 100)"
    )
    rows[250][1] = good
    write(tmp_path / "rides.csv", rows)
    assert cli("run", "rides.csv", "--resume", "m", "--predictions", "p.csv", folder=tmp_path).code == 0
    write(tmp_path / "whole.csv", rows)
    assert cli("run", "whole.csv", "--target", TARGET, "--predictions", "whole", folder=tmp_path).code == 0
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole").read_bytes()


def test_table_without_usable_rows_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", [["3", ""], ["4", "?"]], ["km", "duration"])
    run = "run", "rides.csv", "--kind", "duration=number", "--target", TARGET, "--save", "m"
    result = cli(*run, "--on-error", "skip", folder=tmp_path)
    assert (result.code, result.out) == (3, "")
    message = "rides.csv has no row to learn from: all 2 values of 'duration' are missing"
    assert result.err.splitlines()[-1] == f"ellipack: {message}"
    assert not (tmp_path / "m").exists()


def test_formulas_without_stored_values_are_the_reason_why_no_row_is_learned(cli: CliRunner, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["km", "duration"], *([t * t % 7, f"=2*A{t + 2}"] for t in range(30))]:
        book.active.append(row)
    book.save(tmp_path / "rides.xlsx")
    result = cli("run", "rides.xlsx", "--target", TARGET, folder=tmp_path)
    assert (result.code, result.err.splitlines()[-1]) == (
        3,
        "ellipack: rides.xlsx has no row to learn from: all 30 values of 'duration' are missing "
        "(formulas need stored values: save the file in a spreadsheet program)",
    )


def test_result_of_several_files_names_them(cli: CliRunner, tmp_path: Path) -> None:
    for i in range(3):
        write(tmp_path / f"p{i}.csv", rides(40, seed=i))
    result = cli("run", "p0.csv", "p1.csv", "p2.csv", "--target", TARGET, "--report", "r.html", folder=tmp_path)
    assert result.out.startswith(f"MetricRegressor on p0.csv and 2 more, target {TARGET}\n"), result.err
    assert "p0.csv and 2 more" in (tmp_path / "r.html").read_text()


def test_one_row_is_enough(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(1))
    result = cli("run", "rides.csv", "--target", TARGET, "--report", "page.html", folder=tmp_path)
    assert result.code == 0, result.err
    assert re.search(r"│ R2 +│ +- │", result.out)


def test_unusual_column_names_are_printed_safely(cli: CliRunner, tmp_path: Path) -> None:
    names = ["[red]x[/red]", "a, b", 'say "hi"', "two\nlines", "<b>&amp;</b>", ":smile: \x1b[31m", "ärger 東京"]
    rng = np.random.default_rng(0)
    rows = [[f"{value:.3f}" for value in row] for row in rng.normal(size=(80, len(names) + 1))]
    for row in rows:
        row[-1] = f"{sum(float(value) for value in row[:-1]):.3f}"
    write(tmp_path / "odd.csv", rows, [*names, "[bold]y"])
    options = "--report", "page.html", "--save", "m", "--predictions", "p.csv"
    result = cli("run", "odd.csv", "--target", "[bold]y", *options, folder=tmp_path)
    assert result.code == 0, result.err
    for shown in ("[red]x[/red]", "a, b", 'say "hi"', "two lines", "<b>&amp;</b>", ":smile:", "ärger 東京", "[bold]y"):
        assert shown in result.out
    assert "\x1b" not in result.out
    assert "<b>&amp;</b>" not in (tmp_path / "page.html").read_text(encoding="utf-8").partition("<main>")[0]
    inspected = cli("inspect", "m", folder=tmp_path)
    assert inspected.code == 0, inspected.err
    assert "[red]x[/red]" in inspected.out
    again = cli("predict", "m", "odd.csv", folder=tmp_path)
    assert again.code == 0, again.err
    assert len(again.out.splitlines()) == 81


def test_identifiers_are_left_out_and_that_is_said(cli: CliRunner, tmp_path: Path) -> None:
    rows = [[f"r{t:03d}", str(t), "7", *row] for t, row in enumerate(rides(60))]
    write(tmp_path / "rides.csv", rows, ["id", "line", "seven", *COLUMNS])
    result = cli("run", "rides.csv", "--target", TARGET, "--save", "m", folder=tmp_path)
    assert result.code == 0
    left_out = "left out: id (an identifier: 60 different values in 60 rows), line (counts the rows)"
    assert [line.endswith(left_out) for line in result.err.splitlines()] == [True]
    notes = cli("inspect", "m", folder=tmp_path).out
    assert "an identifier" in notes
    assert "counts the rows" in notes
    assert "constant at first" in notes


def test_levels_decide_which_columns_are_one_hot_encoded(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "shops.csv", [[f"shop {t % 40}", "abc"[t % 3], str(t % 40)] for t in range(200)], ["s", "k", "y"])
    run = "run", "shops.csv", "--target", "y", "--json"
    statistics = ["mean of y by s", "last y by s", "log count of s"]
    result = parse_json(cli(*run, folder=tmp_path))
    assert sorted(result["features"]) == sorted([*statistics, "k=other", "k=a", "k=b", "k=c"])
    assert result["columns"][0]["note"] == "statistics of 40 levels; 40 rows with a new or forgotten level"
    assert result["columns"][1]["note"] == "12 rows in 'other'"
    one_hot = parse_json(cli(*run, "--levels", "40", "--take", "s", folder=tmp_path))
    assert sorted(one_hot["features"]) == sorted(["s=other", *(f"s=shop {i}" for i in range(40))])
    none = parse_json(cli(*run, "--levels", "0", "--take", "k", folder=tmp_path))
    assert none["features"] == ["mean of y by k", "last y by k", "log count of k"]
    forgetful = parse_json(cli(*run, "--level-memory", "9", "--take", "s", folder=tmp_path))
    assert forgetful["columns"][0]["note"] == "statistics of 9 levels; 200 rows with a new or forgotten level"
    for option in ("--levels", "--level-memory"):
        refused = cli(*run, option, "-1", folder=tmp_path)
        assert refused.code == 2
        assert f"Invalid value for '{option}': -1 is not in the range" in refused.err


def test_command_and_library_give_the_same_predictions(finished: FinishedRun, tmp_path: Path) -> None:
    table = write(tmp_path / "rides.csv", rides(ROWS))
    with open_table(str(table)) as source:
        encoder = TableEncoder.from_head(source.peek(1000), TARGET)
        rows = encoder.parse(next(source))
    learner, made = MetricRegressor(), list[Floats]()
    for part in encoder.partial_fit_transform(rows):
        if made:
            learner.add_features(part.new_scales)
        made.append(learner.progressive(part.X, rows.labels[part.rows]))
    np.testing.assert_array_equal(np.concatenate(made), finished.predictions[:, 1])


def test_progress_line_is_shown_on_a_terminal_and_erased(cli: CliRunner, tmp_path: Path) -> None:
    """Rows are sent until the speed is shown, which takes half a second."""
    header, *lines = write(tmp_path / "rides.csv", rides(2000)).read_bytes().splitlines(keepends=True)
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    os.mkfifo(tmp_path / "rows")
    with cli.start(
        *("run", "rows", "--target", TARGET),
        folder=tmp_path,
        environment={"TERM": "xterm-256color"},
        stderr=Path(os.ttyname(theirs)),
    ) as running:
        with open(os.open(tmp_path / "rows", os.O_RDWR), "wb", buffering=0) as rows:  # does not wait for a reader
            rows.write(header + b"".join(lines[:100]))
            seen = b""
            for line in lines[100:]:
                rows.write(line)
                seen += _read_available(ours)
                if b" rows/s " in seen:
                    break
                time.sleep(0.02)
        assert running.wait(TIMEOUT) == 0
        out = running.out()
        seen += _read_available(ours)
    os.close(theirs)
    os.close(ours)
    assert b" rows" in seen
    assert re.search(rb"[0-9,]+ rows/s  RMSE [0-9.]+  skill [0-9.]+%", seen)
    assert seen.endswith(b"\x1b[2K")  # the line is erased
    assert "│ rows                        │" in out
    assert "\x1b" not in out


def _read_available(terminal: int) -> bytes:
    """Return what was written to a terminal since the last call."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nothing, or the other end is closed
        return b""


def test_nested_columns_of_json_can_be_dropped(cli: CliRunner, tmp_path: Path) -> None:
    rows = [{"a": {"b": i}, "x": i % 3, "y": i % 3} for i in range(30)]
    (tmp_path / "t.json").write_text(json.dumps(rows))
    stopped = cli("run", "t.json", "-t", "y", folder=tmp_path)
    assert "t.json, row 1, column 'a': is a list or an object" in stopped.err
    assert "or run with --drop 'a': no row can be read" in stopped.err
    run = "run", "t.json", "-t", "y", "--drop", "a", "--keep", "a", "--predictions", "p.csv", "--save", "m"
    result = cli(*run, folder=tmp_path)
    assert result.code == 0, result.err
    assert (tmp_path / "p.csv").read_text().splitlines()[1].startswith('1,"{""b"": 0}",')
    assert cli("predict", "m", "t.json", folder=tmp_path).code == 0
    resumed = cli("run", "t.json", "--resume", "m", "--predictions", "p.csv", folder=tmp_path)
    assert resumed.code == 0, resumed.err
    assert cli("run", "t.json", "-t", "y", "--take", "x", folder=tmp_path).code == 0
    assert ellipack.run(tmp_path / "t.json", target="y", drop=["a"]).scores.rows == 30
