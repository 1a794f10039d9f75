"""Trees of the repository: what to compare with, a base checked out for a while, and a process that measures a tree."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MEASURES = Path(__file__).with_name("measures.py")

_MAIN = ("origin/main", "main")
_LAST = 2_000  # characters of what a process that fell over had to say


class GuardError(Exception):
    """Something is wrong with the trees, not with what they measure."""


def git(root: Path, *arguments: str) -> str:
    """Return what git says, without hooks; that it failed is a `GuardError`."""
    # Git tells hooks by the environment which repository they belong to: these must not tell us.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GuardError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def default_base(root: Path) -> str:
    """Return what the work in this tree began from.

    That is where it left origin/main, or main where there is no such; and on main itself the last commit if something
    under src was changed since, else the one before it.
    """
    head = git(root, "rev-parse", "HEAD")
    for main in _MAIN:
        try:
            began = git(root, "merge-base", "HEAD", main)
        except GuardError:
            continue
        if began != head:
            return began
    return "HEAD" if git(root, "status", "--porcelain", "--", "src") else "HEAD~1"


@contextmanager
def checked_out(root: Path, revision: str) -> Iterator[Path]:
    """Check a revision out into a folder of its own, and remove it whatever happens."""
    commit = git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="ellipack-base-") as folder:
        tree = Path(folder) / "tree"
        try:
            git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
            yield tree
        finally:
            if tree.exists():
                git(root, "worktree", "remove", "--force", str(tree))


def installed(tree: Path, folder: Path) -> Path:
    """Return the folder to import a tree's library from, which is built first if it has a compiled core."""
    if not (tree / "CMakeLists.txt").exists():
        return tree / "src"
    library = folder / "library"
    if not library.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        where = ["--target", str(library), f"--config-settings=build-dir={folder / 'build'}"]
        command = [sys.executable, "-m", "pip", "install", *options, *where, str(tree)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise GuardError(f"{tree} can't be built: {done.stderr[-_LAST:].strip()}")
    return library


# The library is the one on PYTHONPATH: an editable installation would come first.
_RUN = """
import runpy, sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class Worker:
    """A process that measures the library in one folder; what the process leaves behind goes to another."""

    def __init__(self, library: Path, scratch: Path, script: Path = MEASURES) -> None:
        environment = {**os.environ, "PYTHONPATH": str(library)}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(script)],
            cwd=scratch,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
        )

    def ask(self, name: str, size: float = 1.0) -> dict[str, Any]:
        """Return the answer to a question; a process that gives none is a `GuardError`."""
        asking, answering = self._process.stdin, self._process.stdout
        assert asking is not None
        assert answering is not None
        try:
            asking.write(json.dumps({"name": name, "size": size}) + "\n")
            asking.flush()
            line = answering.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._said.seek(0)
            raise GuardError(f"no answer about {name!r}: {self._said.read()[-_LAST:].strip()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *why: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._said.close()
