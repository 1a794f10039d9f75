import fcntl
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from ellipack.cli.options import Options
from ellipack.cli.run import run_table
from ellipack.cli.signals import StopSignals
from ellipack.errors import StreamError
from ellipack.evaluation.run import StopLearning, load_run
from ellipack.tabular import TableEncoder
from tests.cli.runner import TIMEOUT, CliRunner, RunningCommand, start_command
from tests.cli.tables import TARGET, rides, write

ROWS = 1000


def wait_until(condition: Callable[[], bool], run: RunningCommand) -> None:
    """Wait until a condition holds, while a command is running."""
    deadline = time.monotonic() + TIMEOUT
    while not condition() and run.is_running() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def unread_bytes(pipe: int) -> int:
    """Return the number of unread bytes in a pipe."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a table with long rows, so that few of them fill all buffers."""
    rows = [[*row, "x" * 1500] for row in rides(ROWS)]
    path = tmp_path_factory.mktemp("table") / "rides.csv"
    return write(path, rows, ["when", "km", "traffic", "wind", "zone", "card", TARGET, "remark"]).read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_waiting_run_stops_saves_and_prints_how_to_resume(
    number: signal.Signals,
    code: int,
    table: bytes,
    cli: CliRunner,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    run = (
        "run",
        "-",
        "--target",
        TARGET,
        "--drop",
        "remark",
        "--save-every",
        "100",
        "--save",
        "my model",
        "--predictions",
        "p.csv",
    )
    # Ctrl-C stops a new process. All other runs of these tests use the runner, which is ten times faster.
    new_process = partial(start_command, streams=tmp_path_factory.mktemp("streams"))
    start = new_process if number == signal.SIGINT else cli.start
    with start(*run, folder=tmp_path) as running:
        running.feed(table)
        wait_until((tmp_path / "my model").exists, running)
        assert running.stop(number) == code
        out, err = running.out(), running.err()
    saved = load_run(tmp_path / "my model")
    assert out == ""
    assert err.splitlines(keepends=True)[-1] == (
        f"ellipack: stopped after {saved.position:,} rows and saved; to resume: "
        "ellipack run - --resume 'my model' --predictions p.csv --save-every 100\n"
    )
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + saved.position
    assert saved.output_position.size == (tmp_path / "p.csv").stat().st_size


def test_run_stopped_between_batches_resumes_to_the_same_result(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    run = "rides.csv", "--target", TARGET, "--save-every", "100"
    resume = "--save", "m", "--resume", "m", "--predictions", "p.parquet"
    with cli.start("run", *run, *resume, folder=tmp_path) as running:
        wait_until((tmp_path / "m").exists, running)
        assert running.stop(signal.SIGINT) == 130
        err = running.err()
    saved = load_run(tmp_path / "m")
    assert 0 < saved.position < ROWS
    assert f"stopped after {saved.position:,} rows and saved; to resume: " in err
    command = err.partition("to resume: ellipack ")[2].split()
    assert cli(*command, folder=tmp_path).code == 0
    assert cli("run", *run, "--save", "whole", "--predictions", "whole.parquet", folder=tmp_path).code == 0
    assert (tmp_path / "p.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_signal_ends_a_batch_in_which_a_phase_ends(cli: CliRunner, tmp_path: Path) -> None:
    """The phase ends at row 510, where slopes are estimated for seconds: in the batch after row 500."""
    X = np.random.default_rng(0).normal(size=(520, 300))
    cells = [[f"{value:.3f}" for value in (*x, x[0] ** 2 + x[1])] for x in X]
    write(tmp_path / "wide.csv", cells, [*(f"x{i}" for i in range(X.shape[1])), "y"])
    run = "run", "wide.csv", "--target", "y", "--learner", "phased", "--save-every", "100"
    resume = *run, "--save", "m", "--resume", "m", "--predictions", "p.csv"
    with cli.start(*resume, folder=tmp_path) as running:
        wait_until(lambda: (tmp_path / "m").exists() and load_run(tmp_path / "m").position == 500, running)
        assert running.wait(0.5) is None  # it estimates slopes
        began = time.monotonic()
        assert running.stop(signal.SIGTERM) == 143
        stopping = time.monotonic() - began
        assert "stopped after 500 rows and saved" in running.err()
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + 500
    began = time.monotonic()
    assert cli(*resume, folder=tmp_path).code == 0
    assert stopping < (time.monotonic() - began) / 3
    assert cli(*run, "--save", "whole", "--predictions", "whole.csv", folder=tmp_path).code == 0
    assert (tmp_path / "p.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_message_if_nothing_was_saved(table: bytes, cli: CliRunner, tmp_path: Path) -> None:
    with cli.start("run", "-", "--target", TARGET, "--save", "m", folder=tmp_path) as running:
        running.feed(b"when,km,duration\n")
        wait_until(lambda: unread_bytes(running.stdin) == 0, running)
        assert running.stop(signal.SIGTERM) == 143
        assert running.err() == "ellipack: stopped before the first row; nothing was saved\n"
    assert not list(tmp_path.iterdir())
    run = "run", "-", "--target", TARGET, "--drop", "remark", "--predictions", "p.csv"
    with cli.start(*run, folder=tmp_path) as running:
        running.feed(table)
        wait_until((tmp_path / "p.csv").exists, running)
        assert running.stop(signal.SIGINT) == 130
        err = running.err()
    last = err.splitlines()[-1]
    assert last.startswith("ellipack: stopped after ")
    assert last.endswith("; nothing was saved: use --save MODEL to be able to resume")


def test_second_signal_ends_the_process_at_once(cli: CliRunner, tmp_path: Path) -> None:
    # The run can't finish, since predictions go to a pipe without a reader.
    write(tmp_path / "rides.csv", rides(ROWS))
    os.mkfifo(tmp_path / "pipe.csv")
    reader = os.open(tmp_path / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)  # less than the predictions of a batch
    with cli.start("run", "rides.csv", "--target", TARGET, "--predictions", "pipe.csv", folder=tmp_path) as running:
        wait_until(lambda: unread_bytes(reader) > len("row,prediction,label\n"), running)
        os.kill(running.number, signal.SIGINT)
        assert running.wait(1) is None  # it finishes the current batch
        assert running.stop(signal.SIGINT) == -signal.SIGINT
    os.close(reader)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_is_recorded_and_handlers_are_restored(number: signal.Signals) -> None:
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it in background jobs
    try:
        before = signal.getsignal(number)
        stop = StopSignals()
        with stop.installed():
            assert not stop.received()
            signal.raise_signal(number)
            assert (stop.received(), stop.number) == (True, number)
            assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert signal.getsignal(number) is before
    finally:
        signal.signal(signal.SIGINT, interrupt)


def test_a_signal_raises_only_inside_blocks_that_ask_for_it() -> None:
    inside, before = StopSignals(), StopSignals()
    with inside.installed(), pytest.raises(StopLearning), inside.raising():
        signal.raise_signal(signal.SIGTERM)
    with before.installed():
        with before.raising():
            pass
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(StopLearning), before.raising():
            pytest.fail("the block begins after a signal")
    assert inside.received()
    assert before.received()


def test_ignored_signals_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        stop = StopSignals()
        with stop.installed():
            signal.raise_signal(signal.SIGINT)
            assert not stop.received()
            signal.raise_signal(signal.SIGTERM)
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_is_heeded_while_the_columns_are_inferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of columns it takes seconds."""
    go_on, has_ended = threading.Event(), threading.Event()

    def infer_slowly(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        go_on.wait(TIMEOUT)
        has_ended.set()
        raise StreamError("stopped")

    monkeypatch.setattr(TableEncoder, "from_head", infer_slowly)
    path = write(tmp_path / "rides.csv", rides(20))
    try:
        assert run_table(Options(table=str(path), target=TARGET)) == 128 + signal.SIGTERM
        assert not go_on.is_set()
    finally:
        go_on.set()
        assert has_ended.wait(TIMEOUT)
