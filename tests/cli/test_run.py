import gzip
import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from pyarrow import parquet

from ellipack import MetricRegressor
from ellipack.evaluation.run import load_run
from ellipack.tabular import TableEncoder, open_table
from ellipack.validation import Floats
from tests.cli.runner import PLAIN_TERMINAL, PROGRAM, CliRunner, CommandResult, command
from tests.cli.tables import COLUMNS, TARGET, rides, write

ROWS = 400
SHOWN = """\
MetricRegressor on rides.csv, target duration
┌─────────────────────────────┬─────────┐
│ rows                        │     400 │
│ rows skipped                │       0 │
│ RMSE                        │   4.388 │
│ RMSE of the running mean    │   20.41 │
│ RMSE of the last value      │   30.57 │
│ MAE                         │   1.218 │
│ R2                          │  0.9526 │
│ skill over the running mean │   78.5% │
│ effective rank              │ 2 of 16 │
│ centers                     │     400 │
└─────────────────────────────┴─────────┘
Feature importance
┏━━━━━━━━━┳━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ feature ┃ importance ┃                          ┃
┡━━━━━━━━━╇━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│ km      │      74.0% │ ████████████████████████ │
│ traffic │      25.8% │ ████████▍                │
└─────────┴────────────┴──────────────────────────┘
and 14 more, 0.1% in total
Leading directions
┏━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┓
┃ eigenvalue ┃ loadings (features in standard units) ┃
┡━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┩
│          1 │ +1.00 km                              │
│      0.349 │ +1.00 traffic                         │
└────────────┴───────────────────────────────────────┘
"""


class Ran(NamedTuple):
    folder: Path
    done: CommandResult
    predictions: Floats


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Return a folder in which the command has run, as from a shell."""
    folder = tmp_path_factory.mktemp("ran")
    write(folder / "rides.csv", rides(ROWS))
    places = "--predictions", "p.csv", "--report", "page.html", "--save", "model"
    done = command("run", "rides.csv", "--target", TARGET, *places, folder=folder)
    return Ran(folder, done, np.loadtxt(folder / "p.csv", delimiter=",", skiprows=1))


def unpadded(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def json_of(done: CommandResult) -> dict[str, Any]:
    """Return what was printed, without what no two runs have in common."""
    found: dict[str, Any] = json.loads(done.out)
    return found | {"speed": []}


def test_a_run_prints_a_table_and_says_where_the_page_is(ran: Ran) -> None:
    assert ran.done.code == 0
    assert unpadded(ran.done.out) == SHOWN
    assert ran.done.err == "ellipack: report: page.html\n"  # and no bar, since this is no terminal


def test_what_was_written_is_what_was_predicted(ran: Ran) -> None:
    rows, predictions, labels = ran.predictions.T
    assert (ran.folder / "p.csv").read_text().startswith("row,prediction,label\n1,0.0,")
    assert rows.tolist() == list(range(1, ROWS + 1))
    assert labels.tolist() == [float(row[-1]) for row in rides(ROWS)]
    errors = predictions - labels
    shown = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in SHOWN.splitlines() if "│" in line}
    assert shown["RMSE"] == f"{np.sqrt(np.mean(errors**2)):.4g}"
    assert shown["MAE"] == f"{np.mean(np.abs(errors)):.4g}"
    assert shown["R2"] == f"{1 - np.mean(errors**2) / labels.var():.4f}"
    means = np.append(0.0, np.cumsum(labels)[:-1] / np.arange(1, ROWS))
    skill = 1 - np.sqrt(np.mean(errors**2) / np.mean((means - labels) ** 2))
    assert shown["skill over the running mean"] == f"{skill:.1%}"
    assert "<html" in (ran.folder / "page.html").read_text(encoding="utf-8")


def test_json_has_the_whole_of_it_and_changes_nothing_else(ran: Ran, cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    done = cli("run", "rides.csv", "-t", TARGET, "--json", "--save", "model", folder=tmp_path)
    assert (done.code, done.err) == (0, "")
    found = json.loads(done.out)
    assert found["summary"]["rows"] == ROWS
    assert f"{found['summary']['rmse']:.4g}" == "4.388"
    assert [column["name"] for column in found["columns"]] == list(COLUMNS[:-1])
    assert [column["kind"] for column in found["columns"]] == [
        "time",
        "number",
        "number",
        "number",
        "category",
        "boolean",
    ]
    # No predictions were written, and that is all that differs.
    one, other = load_run(ran.folder / "model"), load_run(tmp_path / "model")
    assert one.output_position.size == (ran.folder / "p.csv").stat().st_size
    one.output_position = other.output_position
    one.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_any_kind_of_file_and_standard_input_are_learned_alike(ran: Ran, cli: CliRunner, tmp_path: Path) -> None:
    text = write(tmp_path / "rides.csv", rides(ROWS)).read_bytes()
    (tmp_path / "rides.csv.gz").write_bytes(gzip.compress(text))
    (tmp_path / "rides.csv.zst").write_bytes(pa.Codec("zstd").compress(text, asbytes=True))
    as_text = pacsv.ConvertOptions(column_types={name: pa.string() for name in ("when", "zone", "card")})
    table = pacsv.read_csv(tmp_path / "rides.csv", convert_options=as_text)
    parquet.write_table(table, tmp_path / "rides.parquet")
    objects = [{name: value or None for name, value in row.items()} for row in table.to_pylist()]
    (tmp_path / "rides.ndjson").write_text("".join(f"{json.dumps(each)}\n" for each in objects))
    expected = (ran.folder / "p.csv").read_bytes()
    for name in ("rides.csv.gz", "rides.csv.zst", "rides.parquet", "rides.ndjson"):
        done = cli("run", name, "--target", TARGET, "--predictions", "p.csv", folder=tmp_path)
        assert done.code == 0, done.err
        assert (tmp_path / "p.csv").read_bytes() == expected, name
    for stdin in (text, (tmp_path / "rides.csv.gz").read_bytes(), (tmp_path / "rides.ndjson").read_bytes()):
        done = cli("run", "-", "--target", TARGET, "--predictions", "-", folder=tmp_path, stdin=stdin)
        assert done.code == 0, done.err
        assert done.out.encode() == expected
        assert unpadded(done.err) == SHOWN.replace("rides.csv", "-")


def test_predictions_go_to_parquet_by_the_name_of_the_file(ran: Ran, cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    done = cli("run", "rides.csv", "--target", TARGET, "--predictions", "p.parquet", folder=tmp_path)
    assert done.code == 0, done.err
    columns = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert list(columns) == ["row", "prediction", "label"]
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), ran.predictions)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet", "rides.csv"]


def test_columns_are_taken_dropped_and_told_their_kind(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(50))
    run = "run", "rides.csv", "--target", TARGET, "--json"
    names = ["km", "traffic"]
    assert json_of(cli(*run, "--take", "traffic", "--take", "km", folder=tmp_path))["features"] == names
    dropped = [word for name in ("when", "wind", "zone", "card") for word in ("--drop", name)]
    assert json_of(cli(*run, *dropped, folder=tmp_path))["features"] == names
    told = json_of(cli(*run, "--take", "card", "--kind", "card=category", folder=tmp_path))
    assert sorted(told["features"]) == ["card=no", "card=other", "card=yes"]


def test_a_learner_is_set_as_asked(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(100))
    run = "run", "rides.csv", "--target", TARGET, "--json", "--learner", "metric"
    done = cli(*run, "--set", "max_centers=50", "--set", "n_jobs=1", folder=tmp_path)
    found = json.loads(done.out)
    assert found["parameters"]["max_centers"] == 50
    assert found["n_centers"] <= 50
    assert json_of(cli(*run, folder=tmp_path))["n_centers"] == 100


def test_bad_rows_stop_the_run_or_are_skipped_and_counted(cli: CliRunner, tmp_path: Path) -> None:
    rows = rides(60)
    for t in (9, 19, 29, 39, 44, 49):
        rows[t][1] = f"far{t}"
    rows[54] = rows[54][:3]
    write(tmp_path / "rides.csv", rows)
    kind = "--kind", "km=number"
    done = cli("run", "rides.csv", "--target", TARGET, *kind, folder=tmp_path)
    assert done.code == 3
    assert done.out == ""
    assert done.err == (
        "ellipack: rides.csv, row 55: has 3 fields where the header has 7: "
        f"'{','.join(rows[54])}': fix it, or run with --on-error skip\n"
    )
    write(tmp_path / "rides.csv", rows[:54] + rows[55:])
    done = cli("run", "rides.csv", "--target", TARGET, *kind, folder=tmp_path)
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
        "ellipack: rides.csv, row 10, column 'km': 'far9' is not a number: fix it, or run with --on-error skip"
    )
    write(tmp_path / "rides.csv", rows)
    skip = "--on-error", "skip", "--predictions", "p.csv"
    done = cli("run", "rides.csv", "--target", TARGET, *kind, *skip, folder=tmp_path)
    assert done.code == 0
    assert "│ rows                        │      53 │" in done.out
    assert "│ rows skipped                │       7 │" in done.out
    said = [line for line in done.err.splitlines() if "skipped" in line]
    assert said[0] == "ellipack: skipped: rides.csv, row 10, column 'km': 'far9' is not a number"
    assert len(said) == 6
    assert said[-1] == "ellipack: skipped: 7 rows in total"
    played = np.loadtxt(tmp_path / "p.csv", delimiter=",", skiprows=1)[:, 0].astype(int).tolist()
    assert played == [t for t in range(1, 61) if t not in (10, 20, 30, 40, 45, 50, 55)]


def test_rows_before_a_bad_one_are_saved_and_it_goes_on_once_that_is_mended(cli: CliRunner, tmp_path: Path) -> None:
    rows = rides(300)
    good = rows[250][1]
    rows[250][1] = "far"
    write(tmp_path / "rides.csv", rows)
    run = "run", "rides.csv", "--target", TARGET, "--save", "m", "--predictions", "p.csv", "--save-every", "100"
    done = cli(*run, folder=tmp_path)
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
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


def test_a_stream_with_nothing_to_learn_from_is_an_error(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", [["3", ""], ["4", "?"]], ["km", "duration"])
    run = "run", "rides.csv", "--kind", "duration=number", "--target", TARGET, "--save", "m"
    done = cli(*run, "--on-error", "skip", folder=tmp_path)
    assert (done.code, done.out) == (3, "")
    assert done.err.splitlines()[-1] == "ellipack: rides.csv has no row to learn from"
    assert not (tmp_path / "m").exists()


def test_one_row_is_enough(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(1))
    done = cli("run", "rides.csv", "--target", TARGET, "--report", "page.html", folder=tmp_path)
    assert done.code == 0, done.err
    assert re.search(r"│ R2 +│ +- │", done.out)


def test_names_are_shown_as_they_are_and_break_nothing(cli: CliRunner, tmp_path: Path) -> None:
    names = ["[red]x[/red]", "a, b", 'say "hi"', "two\nlines", "<b>&amp;</b>", ":smile: \x1b[31m", "ärger 東京"]
    rng = np.random.default_rng(0)
    rows = [[f"{value:.3f}" for value in row] for row in rng.normal(size=(80, len(names) + 1))]
    for row in rows:
        row[-1] = f"{sum(float(value) for value in row[:-1]):.3f}"
    write(tmp_path / "odd.csv", rows, [*names, "[bold]y"])
    places = "--report", "page.html", "--save", "m", "--predictions", "p.csv"
    done = cli("run", "odd.csv", "--target", "[bold]y", *places, folder=tmp_path)
    assert done.code == 0, done.err
    for shown in ("[red]x[/red]", "a, b", 'say "hi"', "two lines", "<b>&amp;</b>", ":smile:", "ärger 東京", "[bold]y"):
        assert shown in done.out
    assert "\x1b" not in done.out
    assert "<b>&amp;</b>" not in (tmp_path / "page.html").read_text(encoding="utf-8").partition("<main>")[0]
    inspected = cli("inspect", "m", folder=tmp_path)
    assert inspected.code == 0, inspected.err
    assert "[red]x[/red]" in inspected.out
    again = cli("predict", "m", "odd.csv", folder=tmp_path)
    assert again.code == 0, again.err
    assert len(again.out.splitlines()) == 81


def test_columns_that_say_nothing_are_pointed_out(cli: CliRunner, tmp_path: Path) -> None:
    rows = [[f"r{t:03d}", str(t), "7", *row] for t, row in enumerate(rides(60))]
    write(tmp_path / "rides.csv", rows, ["id", "line", "seven", *COLUMNS])
    done = cli("run", "rides.csv", "--target", TARGET, "--save", "m", folder=tmp_path)
    assert done.code == 0
    warned = done.err.splitlines()
    assert len(warned) == 2
    assert "column 'id' has 60 different values in 60 rows" in warned[0]
    assert warned[0].endswith("exclude it with --drop 'id'")
    assert warned[1].endswith("exclude it with --drop 'line' unless the trend matters")
    notes = cli("inspect", "m", folder=tmp_path).out
    assert "an identifier" in notes
    assert "constant at first" in notes


def test_the_learner_is_asked_and_taught_as_the_library_would(ran: Ran, tmp_path: Path) -> None:
    table = write(tmp_path / "rides.csv", rides(ROWS))
    with open_table(str(table)) as source:
        encoder = TableEncoder.from_head(source.peek(1000), TARGET)
        rows = encoder.parse(next(source))
    learner, made = MetricRegressor(), list[Floats]()
    for part in encoder.partial_fit_transform(rows):
        if made:
            learner.add_features(part.new_scales)
        made.append(learner.progressive(part.X, rows.labels[part.rows]))
    np.testing.assert_array_equal(np.concatenate(made), ran.predictions[:, 1])


def test_on_a_terminal_a_bar_shows_how_it_goes_and_vanishes(tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(30_000))  # long enough for the bar to move
    ours, theirs = pty.openpty()
    environment = {**os.environ, **PLAIN_TERMINAL, "TERM": "xterm-256color"}
    run = [*PROGRAM, "run", "rides.csv", "--target", TARGET, "--save-every", "200"]
    with subprocess.Popen(run, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                seen += chunk
        except OSError:  # how Linux says that the other end is closed
            pass
        assert process.stdout is not None
        out = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    assert b" rows" in seen
    assert re.search(rb"[0-9,]+ rows/s  RMSE [0-9.]+  skill [0-9.]+%", seen)
    assert seen.endswith(b"\x1b[2K")  # the line is erased
    assert "│ rows                        │" in out
    assert "\x1b" not in out
