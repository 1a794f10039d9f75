"""The command, run as a process of its own: its exit code, standard output and standard error.

`command` starts Python and imports everything, as a shell would. That takes a second or two, so most tests go by a
`Door`: a process that has imported everything and forks for each command, which so is a process of its own as well.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PROGRAM = [sys.executable, "-m", "ellipack"]
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
"""What the environment must have for a text to be the same everywhere."""

_SERVER = """
import gc, json, os, resource, signal, sys
import numpy as np
from ellipack import MetricRegressor
from ellipack.cli import main

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
            text=True,
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
        asked = {
            "files": list(map(str, self._files)),
            "folder": str(folder),
            "environment": dict(environment or {}),
            "most_bytes": most_bytes,
            "arguments": list(map(str, arguments)),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return Done(code, *(file.read_text(encoding="utf-8") for file in self._files[1:]))

    def close(self) -> None:
        """End the process that forks."""
        self._server.communicate()
