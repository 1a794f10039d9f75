"""Tables at the command line: an error names the invalid row, and nothing of its batch is learned."""

import re
from pathlib import Path

import numpy as np
import pytest

from ellipack import MetricRegressor
from ellipack.errors import StreamError
from ellipack.evaluation.run import Run
from ellipack.tabular import TableEncoder, TableStream, open_table
from tests.cli.runner import CliRunner
from tests.entry_points.learners import SMALL, bits, stream

ROWS, BATCH = 60, 30
HEAD = b"a,b,y"

REFUSED = {
    "text": (b"0.1,high,0.5", "row 60, column 'b': 'high' is not a number"),
    "too large": (b"0.1,-1e308,0.5", "row 60, column 'b': '-1e308' is too large \\(the maximum is 1e\\+140\\)"),
    "infinite": (b"0.1,inf,0.5", "row 60, column 'b': 'inf' is too large"),
    "label text": (b"0.1,0.2,high", "row 60, column 'y': 'high' is not a number"),
    "label too large": (b"0.1,0.2,1e61", "row 60, column 'y': '1e61' is too large \\(the maximum is 1e\\+60\\)"),
    "a cell too few": (b"0.1,0.2", "row 60"),
    "a cell too many": (b"0.1,0.2,0.3,0.4", "row 60"),
    "no UTF-8": (b"0.1,\xff,0.5", "row 60"),
}
"""The last line of a table, and the error message."""

HANDLED = {
    "nothing in a cell": b"0.1,,0.5",
    "NaN": b"0.1,nan,0.5",
    "1e-308": b"0.1,1e-308,0.5",
    "past 2**53": b"9007199254740993,0.2,0.5",
    "a jump": b"0.1,0.2,1e9",
    "constant": b"0,0,0",
    "spaces": b" 0.1 , 0.2 , 0.5 ",
    "quotes": b'"0.1","0.2","0.5"',
}


def write_table(path: Path, last: bytes, rows: int = ROWS) -> str:
    """Write a table that ends with a given line; return its path."""
    X, y = stream(rows - 1, d=2)
    lines = [b"%r,%r,%r" % row for row in zip(*X.T.tolist(), y.tolist(), strict=True)]
    path.write_bytes(b"\n".join([HEAD, *lines, last]) + b"\n")
    return str(path)


def run_bits(run: Run) -> tuple[object, ...]:
    """Return the whole state of a run, to the bit."""
    scores = run.scores.to_archive()
    arrays = {name: array.tobytes() for name, array in scores.arrays_by_full_name().items()}
    return bits(run.learner), run.encoder.to_dict(), scores.facts, arrays, run.position, run.skipped


def new_run(source: TableStream) -> Run:
    """Return a run over a table before its first row."""
    return Run(MetricRegressor(neighbors=8, config=SMALL), TableEncoder.from_head(source.peek(50), "y"), source.name)


@pytest.mark.parametrize(("last", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_a_batch_with_an_invalid_row_is_not_learned(last: bytes, message: str, tmp_path: Path) -> None:
    path = write_table(tmp_path / "rows.csv", last)
    with open_table(path, batch_rows=BATCH) as source:
        run = new_run(source)
        run.learn_batch(next(source))
        before = run_bits(run)
        with pytest.raises(StreamError, match=f"rows.csv, {message}"):
            run.learn_batch(next(source))
    assert run.position == BATCH
    assert run_bits(run) == before


@pytest.mark.parametrize("last", [last for last, _ in REFUSED.values()], ids=REFUSED.keys())
def test_skipped_rows_have_no_effect(last: bytes, tmp_path: Path) -> None:
    runs = []
    for name, lines in (("with", last), ("without", b"")):
        path = write_table(tmp_path / f"{name}.csv", lines)
        with open_table(path, batch_rows=BATCH, on_error="skip") as source:
            run = new_run(source)
            made = [run.learn_batch(batch, "skip").predictions for batch in source]
        assert np.isfinite(np.concatenate(made)).all()
        runs.append(run)
    assert (runs[0].skipped, runs[1].skipped) == (1, 0)
    assert bits(runs[0].learner) == bits(runs[1].learner)


@pytest.mark.parametrize("last", HANDLED.values(), ids=HANDLED.keys())
def test_unusual_rows_are_learned(last: bytes, tmp_path: Path) -> None:
    path = write_table(tmp_path / "rows.csv", last)
    with open_table(path, batch_rows=BATCH) as source:
        run = new_run(source)
        made = [run.learn_batch(batch).predictions for batch in source]
    assert np.isfinite(np.concatenate(made)).all()
    assert (run.position, run.skipped, run.scores.n_rows) == (ROWS, 0, ROWS)


@pytest.mark.parametrize(
    ("table", "code", "message"),
    [
        (b"a,b,y\n1,2,high\n", 3, "ellipack: rows.csv: the target 'y' must contain numbers, got 'high'"),
        (b"a,b,y\n", 3, "ellipack: rows.csv.* no row"),
        (b"", 3, "ellipack: rows.csv"),
        (b'"word"', 3, "ellipack: rows.csv has columns but no rows"),
        (b'"word', 3, "ellipack: rows.csv.* can't be read as CSV"),
        (b"a,b\n1,2\n", 3, r"ellipack: rows.csv has no column named 'y' \(the target\); its columns are: a, b"),
    ],
)
def test_the_command_reports_errors_in_one_line(
    table: bytes, code: int, message: str, cli: CliRunner, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_bytes(table)
    done = cli("run", "rows.csv", "--target", "y", "--save", "model", folder=tmp_path)
    assert done.code == code
    (line,) = done.err.splitlines()
    assert re.match(message, line)
    assert not (tmp_path / "model").exists()
