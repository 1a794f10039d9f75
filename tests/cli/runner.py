"""Runs the command in a process of its own, and returns its exit code, standard output and standard error.

`run_command` starts Python and imports everything, as a shell does, which takes a second or two. Most tests use a
`CliRunner`: a process that has imported everything and forks for each command.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

PROGRAM = [sys.executable, "-m", "ellipack"]
TIMEOUT = 120  # seconds
PLAIN_TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""Environment in which the output is the same on every machine."""

_SERVER = """
import gc, json, os, resource, signal, sys
import numpy as np
from ellipack import MetricRegressor, TableRegressor
from ellipack.cli import inspect, main, predict, run  # commands import these when they run

x = np.random.default_rng(0).normal(size=100)
table = TableRegressor(learner=MetricRegressor(n_jobs=1)).fit({"x": x}, x)  # warm up, without threads, since it forks
table.write_report(os.devnull)
gc.freeze()
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, name in enumerate(request["files"]):
            os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY), number)
        sys.stdin = open(0)
        if request["closed"] is not None:
            os.close(["stdin", "stdout", "stderr"].index(request["closed"]))
            setattr(sys, request["closed"], None)  # as Python does
        os.chdir(request["folder"])
        os.environ.update(request["environment"])
        signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
        if request["max_file_size"] is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["max_file_size"], resource.RLIM_INFINITY))
        sys.argv = ["ellipack", *request["arguments"]]
        main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class CommandResult(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def last_line(self) -> str:
        """Last line of standard error, which a line about the columns may precede."""
        lines = self.err.splitlines()
        assert all(line.startswith("ellipack: columns: ") for line in lines[:-1]), self.err
        return lines[-1]


def run_command(
    *arguments: str | Path, folder: Path, stdin: str = "", environment: Mapping[str, str] | None = None
) -> CommandResult:
    """Run the command in a new Python process."""
    result = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=folder,
        input=stdin,
        env={**os.environ, **PLAIN_TERMINAL, **(environment or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return CommandResult(result.returncode, result.stdout, result.stderr)


class RunningCommand(NamedTuple):
    """A command that is running.

    Attributes
    ----------
    number : int
        Process id.
    stdin : int
        File descriptor of its standard input.
    files : list of Path
        Files of its standard input, output and error.
    wait : callable
        Waits up to a number of seconds for the end; returns the exit code, or None.
    """

    number: int
    stdin: int
    files: list[Path]
    wait: Callable[[float], int | None]

    def feed(self, data: bytes) -> None:
        """Write to its standard input, which stays open."""
        while data:
            data = data[os.write(self.stdin, data) :]

    def is_running(self) -> bool:
        """Return whether it is still running."""
        return self.wait(0) is None

    def stop(self, number: signal.Signals) -> int | None:
        """Send it a signal, wait for its end and return the exit code."""
        os.kill(self.number, number)
        return self.wait(TIMEOUT)

    def out(self) -> str:
        """Return its standard output so far."""
        return self.files[1].read_text(encoding="utf-8")

    def err(self) -> str:
        """Return its standard error so far."""
        return self.files[2].read_text(encoding="utf-8")


@contextmanager
def standard_files(folder: Path) -> Iterator[tuple[int, list[Path]]]:
    """Create files for standard input (a pipe), output and error; yield a descriptor of the pipe and the paths."""
    files = [folder / name for name in ("pipe", "out", "err")]
    for file in files:
        file.unlink(missing_ok=True)
    os.mkfifo(files[0])
    for file in files[1:]:
        file.touch()
    stdin = os.open(files[0], os.O_RDWR)  # also for reading, or it would wait for a reader
    try:
        yield stdin, files
    finally:
        os.close(stdin)


@contextmanager
def start_command(*arguments: str, folder: Path, streams: Path) -> Iterator[RunningCommand]:
    """Start a command in a new Python process, with a pipe as standard input; kill it at the end."""
    # Background jobs of a shell ignore SIGINT, and so would the command.
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

        def wait(seconds: float) -> int | None:
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None

        with process:
            try:
                yield RunningCommand(process.pid, stdin, files, wait)
            finally:
                process.kill()


def kill(process: int) -> None:
    """Kill a process, which may just have ended."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


class CliRunner:
    """Runs commands in forks of a process that has imported everything."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._files = [folder / name for name in ("stdin", "stdout", "stderr")]
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PLAIN_TERMINAL, **(environment or {})},
            bufsize=0,  # so that `select` sees all unread output
        )

    def __call__(
        self,
        *arguments: str | Path,
        folder: Path,
        stdin: str | bytes = "",
        environment: Mapping[str, str] | None = None,
        max_file_size: int | None = None,
        closed: str | None = None,
    ) -> CommandResult:
        """Run a command in a folder.

        Files can't grow beyond `max_file_size`, as on a full disk. The standard stream called `closed` is closed.
        """
        for file in self._files:
            file.write_bytes(b"")
        self._files[0].write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        self._start_process(arguments, folder, environment or {}, max_file_size, closed=closed)
        code = self._read_number()
        return CommandResult(code, *(file.read_text(encoding="utf-8") for file in self._files[1:]))

    def redirected(
        self, *arguments: str | Path, folder: Path, stdin: Path, stdout: Path | None = None, stderr: Path | None = None
    ) -> CommandResult:
        """Run a command with a file as standard input, and with others as standard output and error, if given."""
        for file in self._files:
            file.write_bytes(b"")
        self._start_process(arguments, folder, {}, None, [stdin, stdout or self._files[1], stderr or self._files[2]])
        code = self._read_number()
        return CommandResult(code, *(file.read_text(encoding="utf-8") for file in self._files[1:]))

    def run_and_kill(self, *arguments: str | Path, folder: Path, wait: Callable[[Callable[[], bool]], None]) -> int:
        """Start a command, kill it when `wait` returns, and return the exit code."""
        child = self._start_process(arguments, folder, {}, None)
        wait(self._is_running)
        if self._is_running():
            kill(child)
        return self._read_number()

    @contextmanager
    def start(
        self,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        stdout: Path | None = None,
        stderr: Path | None = None,
    ) -> Iterator[RunningCommand]:
        """Start a command with a pipe as standard input; kill it at the end.

        Its standard output and error may be other files, such as a pipe or a terminal.
        """
        with standard_files(self._folder) as (stdin, (pipe, out, err)):
            files = [pipe, stdout or out, stderr or err]
            child = self._start_process(arguments, folder, environment or {}, None, files)
            codes: list[int] = []

            def wait(seconds: float) -> int | None:
                if not codes and not self._is_running(seconds):
                    codes.append(self._read_number())
                return codes[0] if codes else None

            try:
                yield RunningCommand(child, stdin, files, wait)
            finally:
                if wait(0) is None:
                    kill(child)
                    wait(TIMEOUT)

    def _is_running(self, seconds: float = 0) -> bool:
        """Return whether the last command is still running after `seconds`."""
        assert self._server.stdout is not None
        return not select.select([self._server.stdout], [], [], seconds)[0]

    def _start_process(
        self,
        arguments: Iterable[str | Path],
        folder: Path,
        environment: Mapping[str, str],
        max_file_size: int | None,
        files: list[Path] | None = None,
        closed: str | None = None,
    ) -> int:
        """Start a command and return its process id."""
        request = {
            "files": list(map(str, files or self._files)),
            "folder": str(folder),
            "environment": dict(environment),
            "max_file_size": max_file_size,
            "closed": closed,
            "arguments": list(map(str, arguments)),
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request).encode() + b"\n")
        return self._read_number()

    def _read_number(self) -> int:
        """Return the next number that the forking process prints."""
        assert self._server.stdout is not None
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """End the forking process."""
        self._server.communicate()
