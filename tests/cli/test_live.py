"""Streams that are alive: each row of a pipe is predicted before the next one is sent."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.cli.runner import TIMEOUT, CliRunner, RunningCommand
from tests.cli.tables import TARGET, rides, write

ROWS = 40
COLUMNS = ["km", "traffic", "zone", TARGET]


def rows(count: int = ROWS) -> list[list[str]]:
    """Return rides whose first one shows the kinds of all columns."""
    return [[row[1], row[2], row[4], row[6]] for row in rides(count)]


class LiveRun:
    """A run that reads a pipe and writes its predictions to standard output."""

    def __init__(self, command: RunningCommand) -> None:
        self.command, self._n_read = command, 0

    def send(self, text: str) -> None:
        """Send some text, which need not be a whole line."""
        self.command.feed(text.encode())

    def receive(self) -> str:
        """Return the next line of the output. It fails if the run waits for more input."""
        deadline = time.monotonic() + TIMEOUT
        while self.is_silent():
            assert self.command.is_running(), self.command.err()
            assert time.monotonic() < deadline, f"nothing came within {TIMEOUT} s"
            time.sleep(0.001)
        self._n_read += 1
        return self.command.out().splitlines()[self._n_read - 1]

    def is_silent(self) -> bool:
        """Return whether all lines so far have been received."""
        return self.command.out().count("\n") == self._n_read


@contextmanager
def start_live_run(cli: CliRunner, folder: Path, *options: str, table: str = "-") -> Iterator[LiveRun]:
    with cli.start("run", table, "--target", TARGET, "--predictions", "-", *options, folder=folder) as command:
        yield LiveRun(command)


def to_line(row: list[str]) -> str:
    return ",".join(row) + "\n"


def test_each_prediction_comes_before_the_next_row_is_sent(cli: CliRunner, tmp_path: Path) -> None:
    """The predictions are those of a file. One row would not tell that zones are text."""
    write(tmp_path / "rides.csv", rows(), COLUMNS)
    kind = "--kind", "zone=category"
    assert cli("run", "rides.csv", "-t", TARGET, *kind, "--predictions", "p.csv", folder=tmp_path).code == 0
    expected = (tmp_path / "p.csv").read_text().splitlines()
    with start_live_run(cli, tmp_path, "--save", "m", *kind) as run:
        run.send(to_line(COLUMNS))
        for t, row in enumerate(rows()):
            line = to_line(row)
            run.send(line[: t % len(line)])  # a row may come in pieces
            run.send(line[t % len(line) :])
            if t == 0:
                assert run.receive() == expected[0]
            assert run.receive() == expected[t + 1]
            assert run.is_silent()
        assert run.command.stop(signal.SIGTERM) == 128 + signal.SIGTERM
        assert run.command.err().splitlines() == [
            "ellipack: columns are decided from 1 row of standard input; --head N waits for N rows, --kind sets them",
            "ellipack: columns: numbers: km, traffic; text: zone",
            f"ellipack: stopped after {ROWS} rows and saved; to resume: ellipack run - --resume m --predictions -",
        ]


def test_kinds_that_the_first_row_does_not_tell_are_decided_later(cli: CliRunner, tmp_path: Path) -> None:
    with start_live_run(cli, tmp_path, "--save", "m") as run:
        run.send(to_line(COLUMNS))
        for t, row in enumerate(rows()):
            traffic = "starting" if t < 3 else "" if t == 3 else row[1]
            run.send(to_line([row[0], traffic, row[2], row[3]]))
            if t == 0:
                assert run.receive() == "row,prediction,label"
            assert run.receive().startswith(f"{t + 1},")
        assert run.command.stop(signal.SIGTERM) == 128 + signal.SIGTERM
        assert run.command.err().splitlines()[1:-1] == [
            "ellipack: columns: numbers: km; undecided (too few values): traffic, zone",
            "ellipack: column 'zone' has its first 20 values: text from row 21 on",
            "ellipack: column 'traffic' has its first 20 values: text from row 22 on",
            "ellipack: warning: column 'traffic' is treated as text, although it looks like numbers: 3 of its first 20 "
            "values are not, such as 'starting' in row 1: correct them, name spellings of missing values with --na, "
            "skip their rows (run with --kind 'traffic=number' and --on-error skip), or leave it out "
            "(--drop 'traffic')",
        ]


def test_labels_of_json_rows_come_later_by_id_also_after_a_resume(cli: CliRunner, tmp_path: Path) -> None:
    """The first row has no key of the target, and labels come with nothing but the id."""
    predictions, labels = list[float](), [float(row[-1]) for row in rows()]
    for part in (range(15), range(15, ROWS)):
        with start_live_run(cli, tmp_path, "--id", "ride", "--min", "0", "--save", "m", "--resume", "m") as run:
            assert part.start or not (tmp_path / "m").exists()
            for t in part:
                km, traffic = map(float, rows()[t][:2])
                run.send(json.dumps({"ride": t, "km": km, "traffic": traffic}) + "\n")
                if t == 0:
                    assert run.receive() == "row,ride,prediction,label"
                number, ride, prediction, label = run.receive().split(",")
                assert (int(number), ride, label) == (max(1, 2 * t), str(t), "")
                predictions.append(float(prediction))
                if t:  # the label of the row before
                    run.send(json.dumps({"ride": t - 1, TARGET: labels[t - 1]}) + "\n")
                    assert run.receive() == f"{2 * t + 1},{t - 1},{predictions[t - 1]!r},{labels[t - 1]!r}"
            assert run.command.stop(signal.SIGTERM) == 128 + signal.SIGTERM
            message = "no row of standard input has a value of the target 'duration' yet"
            assert (message in run.command.err()) == (part.start == 0)
    errors = np.array(predictions) - labels
    assert np.std(errors[ROWS // 2 :]) < 0.5 * np.std(labels)


def test_an_unreadable_row_ends_the_run_at_once_and_head_waits_for_rows(cli: CliRunner, tmp_path: Path) -> None:
    with start_live_run(cli, tmp_path, "--head", "3") as run:
        run.send(to_line(COLUMNS) + to_line(rows()[0]) + to_line(rows()[1]))
        time.sleep(0.3)
        assert run.is_silent()
        run.send(to_line(rows()[2]))
        assert [run.receive().partition(",")[0] for _ in range(4)] == ["row", "1", "2", "3"]
        run.send("1,2\n")
        assert run.command.wait(TIMEOUT) == 3
        message = run.command.err().splitlines()[-1]
    assert message.startswith("ellipack: standard input, row 4: has 2 fields where the header has 4")


def test_a_named_pipe_is_alive_too(cli: CliRunner, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows")
    with start_live_run(cli, tmp_path, table="rows") as run:
        with (tmp_path / "rows").open("wb", buffering=0) as writer:
            writer.write((to_line(COLUMNS) + to_line(rows()[0])).encode())
            assert run.receive() == "row,prediction,label"
            assert run.receive().startswith("1,0.0,")
        assert run.command.wait(TIMEOUT) == 0
