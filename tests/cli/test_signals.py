import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ellipack.cli.signals import StopSignals
from ellipack.evaluation.run import load_run
from tests.cli.runner import TIMEOUT, CliRunner, RunningCommand, started
from tests.cli.tables import TARGET, rides, write

ROWS = 3000


def await_that(holds: Callable[[], bool], run: RunningCommand) -> None:
    """Wait until something holds, as long as a run goes on."""
    until = time.monotonic() + TIMEOUT
    while not holds() and run.runs() and time.monotonic() < until:
        time.sleep(0.01)
    assert holds()


def unread_in(pipe: int) -> int:
    """Return how many bytes of a pipe were not read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return a table that fills the buffers on the way with few rows, for they are long."""
    rows = [[*row, "x" * 1500] for row in rides(ROWS)]
    path = tmp_path_factory.mktemp("table") / "rides.csv"
    return write(path, rows, ["when", "km", "traffic", "wind", "zone", "card", TARGET, "remark"]).read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_waits_for_rows_stops_saves_and_says_how_to_go_on(
    number: signal.Signals, code: int, table: bytes, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # This one as a shell starts it; those below come by the cli, which takes a tenth of the time.
    run = (
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
    with started("run", *run, folder=tmp_path, streams=tmp_path_factory.mktemp("streams")) as going:
        going.feed(table)
        await_that((tmp_path / "my model").exists, going)
        assert going.stop(number) == code
        out, err = going.out(), going.err()
    saved = load_run(tmp_path / "my model")
    assert saved.position % 100 == 0
    assert out == ""
    assert err == (
        f"ellipack: stopped after {saved.position:,} rows and saved; to resume: "
        "ellipack run - --resume 'my model' --predictions p.csv --save-every 100\n"
    )
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + saved.position
    assert saved.output_position.size == (tmp_path / "p.csv").stat().st_size


def test_a_run_over_a_file_stops_between_batches_and_goes_on_to_the_same_end(cli: CliRunner, tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(ROWS))
    run = "rides.csv", "--target", TARGET, "--save-every", "100"
    resume = "--save", "m", "--resume", "m", "--predictions", "p.parquet"
    with cli.started("run", *run, *resume, folder=tmp_path) as going:
        await_that((tmp_path / "m").exists, going)
        assert going.stop(signal.SIGINT) == 130
        err = going.err()
    saved = load_run(tmp_path / "m")
    assert 0 < saved.position < ROWS
    assert f"stopped after {saved.position:,} rows and saved; to resume: " in err
    command = err.partition("to resume: ellipack ")[2].split()
    assert cli(*command, folder=tmp_path).code == 0
    assert cli("run", *run, "--save", "whole", "--predictions", "whole.parquet", folder=tmp_path).code == 0
    assert (tmp_path / "p.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_nothing_to_save_and_nowhere_to_save_it_are_said(table: bytes, cli: CliRunner, tmp_path: Path) -> None:
    with cli.started("run", "-", "--target", TARGET, "--save", "m", folder=tmp_path) as going:
        going.feed(b"when,km,duration\n")
        await_that(lambda: unread_in(going.stdin) == 0, going)
        assert going.stop(signal.SIGTERM) == 143
        assert going.err() == "ellipack: stopped before the first row; nothing was saved\n"
    assert not list(tmp_path.iterdir())
    run = "run", "-", "--target", TARGET, "--drop", "remark", "--predictions", "p.csv"
    with cli.started(*run, folder=tmp_path) as going:
        going.feed(table)
        await_that((tmp_path / "p.csv").exists, going)
        assert going.stop(signal.SIGINT) == 130
        err = going.err()
    assert err.startswith("ellipack: stopped after ")
    assert err.endswith("; nothing was saved: use --save MODEL to be able to resume\n")


def test_a_second_signal_ends_it_at_once(cli: CliRunner, tmp_path: Path) -> None:
    # It can't finish: predictions go to a pipe that nobody reads.
    write(tmp_path / "rides.csv", rides(ROWS))
    os.mkfifo(tmp_path / "pipe.csv")
    reader = os.open(tmp_path / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)  # less than the predictions of a batch
    with cli.started("run", "rides.csv", "--target", TARGET, "--predictions", "pipe.csv", folder=tmp_path) as going:
        await_that(lambda: unread_in(reader) > len("row,prediction,label\n"), going)
        os.kill(going.number, signal.SIGINT)
        assert going.end(1) is None  # it wants to finish the rows in hand
        assert going.stop(signal.SIGINT) == -signal.SIGINT
    os.close(reader)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_taken_down_once_and_handlers_come_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    stop = StopSignals()
    with stop.installed():
        assert not stop.received()
        signal.raise_signal(number)
        assert (stop.received(), stop.number) == (True, number)
        assert signal.getsignal(signal.SIGINT) is signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(number) is before


def test_what_was_ignored_stays_ignored() -> None:
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
