"""The command, run as a process of its own: its exit code, standard output and standard error.

`command` starts Python and imports everything, as a shell would. That takes a second or two, so most tests use a
`CliRunner`: a process that has imported everything and forks for each command.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PROGRAM = [sys.executable, "-m", "ellipack"]
TIMEOUT = 120  # seconds, after which something hangs
PLAIN_TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""What the environment must have for a text to be the same everywhere."""

_SERVER = """
import gc, json, os, resource, signal, sys
import numpy as np
from ellipack import MetricRegressor
from ellipack.cli import inspect, main, predict, run  # which commands import when they run

X = np.random.default_rng(0).normal(size=(100, 3))
MetricRegressor(n_jobs=1).progressive(X, X[:, 0])  # so that kernels are at hand; on no other thread, for it forks
gc.freeze()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, (name, flags) in enumerate(zip(asked["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY))):
            os.dup2(os.open(name, flags), number)
        sys.stdin = open(0)
        os.chdir(asked["folder"])
        os.environ.update(asked["environment"])
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background has it ignored
        if asked["max_file_size"] is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["max_file_size"], resource.RLIM_INFINITY))
        sys.argv = ["ellipack", *asked["arguments"]]
        main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class CommandResult(NamedTuple):
    """What a command that has ended has left behind."""

    code: int
    out: str
    err: str


def command(
    *arguments: str | Path, folder: Path, stdin: str = "", environment: Mapping[str, str] | None = None
) -> CommandResult:
    """Run the command as a shell would."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=folder,
        input=stdin,
        env={**os.environ, **PLAIN_TERMINAL, **(environment or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


class RunningCommand(NamedTuple):
    """A command that goes on: the number of its process, its standard files, and what waits for its end.

    The latter takes seconds, and returns the exit code or, if it has not ended by then, None.
    """

    number: int
    stdin: int
    files: list[Path]
    end: Callable[[float], int | None]

    def feed(self, data: bytes) -> None:
        """Write to its standard input, and leave that open."""
        while data:
            data = data[os.write(self.stdin, data) :]

    def runs(self) -> bool:
        """Return whether it has not ended."""
        return self.end(0) is None

    def stop(self, number: signal.Signals) -> int | None:
        """Send it a signal, wait for its end and return how it ended."""
        os.kill(self.number, number)
        return self.end(TIMEOUT)

    def out(self) -> str:
        """Return what it has printed."""
        return self.files[1].read_text(encoding="utf-8")

    def err(self) -> str:
        """Return what it has complained of."""
        return self.files[2].read_text(encoding="utf-8")


@contextmanager
def standard_files(folder: Path) -> Iterator[tuple[int, list[Path]]]:
    """Make files for a command's standard streams, the first of them a pipe; yield that one's end, and their names."""
    files = [folder / name for name in ("pipe", "out", "err")]
    for file in files:
        file.unlink(missing_ok=True)
    os.mkfifo(files[0])
    for file in files[1:]:
        file.touch()
    stdin = os.open(files[0], os.O_RDWR)  # to read as well, or it would wait for a reader
    try:
        yield stdin, files
    finally:
        os.close(stdin)


@contextmanager
def started(*arguments: str, folder: Path, streams: Path) -> Iterator[RunningCommand]:
    """Start a command as a shell would, its standard input a pipe that stays open; in the end it is killed."""
    # A job in the background of a shell has it ignored, and so would have the command.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with standard_files(streams) as (stdin, files), files[1].open("wb") as out, files[2].open("wb") as err:
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=folder,
            env={**os.environ, **PLAIN_TERMINAL},
            stdin=stdin,
            stdout=out,
            stderr=err,
        )
        signal.signal(signal.SIGINT, before)

        def end(seconds: float) -> int | None:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None

        with process:
            try:
                yield RunningCommand(process.pid, stdin, files, end)
            finally:
                process.kill()


class CliRunner:
    """Runs commands that start at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = [folder / name for name in ("stdin", "stdout", "stderr")]
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PLAIN_TERMINAL},
            bufsize=0,  # so that what has not been read is there to be seen
        )

    def __call__(
        self,
        *arguments: str | Path,
        folder: Path,
        stdin: str | bytes = "",
        environment: Mapping[str, str] | None = None,
        max_file_size: int | None = None,
    ) -> CommandResult:
        """Run a command in a folder; no file may get longer than `max_file_size`, as on a disk that is full."""
        for file in self._files:
            file.write_bytes(b"")
        self._files[0].write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        self._ask(arguments, folder, environment or {}, max_file_size)
        code = self._answer()
        return CommandResult(code, *(file.read_text(encoding="utf-8") for file in self._files[1:]))

    def killed(self, *arguments: str | Path, folder: Path, wait: Callable[[Callable[[], bool]], None]) -> int:
        """Start a command, kill it when `wait` returns, and return how it ended; `wait` can ask if it runs still."""
        child = self._ask(arguments, folder, {}, None)
        wait(self._runs)
        if self._runs():
            os.kill(child, signal.SIGKILL)
        return self._answer()

    @contextmanager
    def started(self, *arguments: str, folder: Path) -> Iterator[RunningCommand]:
        """Start a command, its standard input a pipe that stays open; in the end it is killed."""
        with standard_files(self._folder) as (stdin, files):
            child = self._ask(arguments, folder, {}, None, files)
            codes: list[int] = []

            def end(seconds: float) -> int | None:
                if not codes and not self._runs(seconds):
                    codes.append(self._answer())
                return codes[0] if codes else None

            try:
                yield RunningCommand(child, stdin, files, end)
            finally:
                if end(0) is None:
                    os.kill(child, signal.SIGKILL)
                    end(TIMEOUT)

    def _runs(self, seconds: float = 0) -> bool:
        """Return whether the command that was started last has not ended, even after so many seconds."""
        assert self._server.stdout is not None
        return not select.select([self._server.stdout], [], [], seconds)[0]

    def _ask(
        self,
        arguments: Iterable[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        max_file_size: int | None,
        files: list[Path] | None = None,
    ) -> int:
        """Have a command started, and return the number of its process."""
        asked = {
            "files": list(map(str, files or self._files)),
            "folder": str(folder),
            "environment": dict(environment),
            "max_file_size": max_file_size,
            "arguments": list(map(str, arguments)),
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(asked).encode() + b"\n")
        return self._answer()

    def _answer(self) -> int:
        """Return the next number that the process which forks prints, once it does."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()
