"""The command, run as a process of its own: its exit code, standard output and standard error.

`command` starts Python and imports everything, as a shell would. That takes a second or two, so most tests go by a
`Door`: a process that has imported everything and forks for each command, which so is a process of its own as well.
"""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

PROGRAM = [sys.executable, "-m", "ellipack"]
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""What the environment must have for a text to be the same everywhere."""

_SERVER = """
import gc, json, os, resource, signal, sys
import numpy as np
from ellipack import MetricRegressor
from ellipack.cli import inspecting, main, predicting, reporting, running  # which commands import when they run

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
        if asked["most_bytes"] is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (asked["most_bytes"], resource.RLIM_INFINITY))
        sys.argv = ["ellipack", *asked["arguments"]]
        main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Done(NamedTuple):
    """What a command that has ended has left behind."""

    code: int
    out: str
    err: str


def command(
    *arguments: str | Path, folder: Path, stdin: str = "", environment: Mapping[str, str] | None = None
) -> Done:
    """Run the command as a shell would."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=folder,
        input=stdin,
        env={**os.environ, **PLAIN, **(environment or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return Done(done.returncode, done.stdout, done.stderr)


class Door:
    """Runs commands that start at once."""

    def __init__(self, folder: Path) -> None:
        self._files = [folder / name for name in ("stdin", "stdout", "stderr")]
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **PLAIN},
            bufsize=0,  # so that what has not been read is there to be seen
        )

    def __call__(
        self,
        *arguments: str | Path,
        folder: Path,
        stdin: str | bytes = "",
        environment: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
    ) -> Done:
        """Run a command in a folder; no file may get longer than `most_bytes`, as on a disk that is full."""
        for file in self._files:
            file.write_bytes(b"")
        self._files[0].write_bytes(stdin.encode() if isinstance(stdin, str) else stdin)
        self._ask(arguments, folder, environment or {}, most_bytes)
        code = self._answer()
        return Done(code, *(file.read_text(encoding="utf-8") for file in self._files[1:]))

    def killed(self, *arguments: str | Path, folder: Path, wait: Callable[[Callable[[], bool]], None]) -> int:
        """Start a command, kill it when `wait` returns, and return how it ended; `wait` can ask if it runs still."""
        child = self._ask(arguments, folder, {}, None)
        wait(self._runs)
        if self._runs():
            os.kill(child, signal.SIGKILL)
        return self._answer()

    def _runs(self) -> bool:
        """Return whether the command that was started last has not ended."""
        assert self._server.stdout is not None
        return not select.select([self._server.stdout], [], [], 0)[0]

    def _ask(
        self, arguments: Iterable[str | Path], folder: Path, environment: Mapping[str, str], most_bytes: int | None
    ) -> int:
        """Have a command started, and return the number of its process."""
        asked = {
            "files": list(map(str, self._files)),
            "folder": str(folder),
            "environment": dict(environment),
            "most_bytes": most_bytes,
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
