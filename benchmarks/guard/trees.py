"""Trees of the repository: the default base, a temporary checkout, and a process that measures a tree."""

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
_LAST_CHARACTERS = 2_000  # of the error output of a failed process


class GuardError(Exception):
    """A tree cannot be checked out, built or measured."""


def git(root: Path, *arguments: str) -> str:
    """Run git without hooks and return its output; raise `GuardError` if it fails."""
    # Inside a hook, git sets variables that point to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-c", f"core.hooksPath={os.devnull}", *arguments]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise GuardError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
    return done.stdout.strip()


def default_base(root: Path) -> str:
    """Return the revision to compare with.

    This is where the branch left origin/main or main. On main itself it is the last commit if something under src has
    changed since, else the commit before.
    """
    head = git(root, "rev-parse", "HEAD")
    for main in _MAIN:
        try:
            base = git(root, "merge-base", "HEAD", main)
        except GuardError:
            continue
        if base != head:
            return base
    return "HEAD" if git(root, "status", "--porcelain", "--", "src") else "HEAD~1"


@contextmanager
def checked_out(root: Path, revision: str) -> Iterator[Path]:
    """Check out a revision into a temporary folder, and remove it in any case."""
    commit = git(root, "rev-parse", "--verify", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="ellipack-base-") as folder:
        tree = Path(folder) / "tree"
        try:
            git(root, "worktree", "add", "--quiet", "--detach", str(tree), commit)
            yield tree
        finally:
            if tree.exists():
                git(root, "worktree", "remove", "--force", str(tree))


def build_library(tree: Path, folder: Path) -> Path:
    """Return the folder to import the library of a tree from; build it first if it has a compiled core."""
    if not (tree / "CMakeLists.txt").exists():
        return tree / "src"
    library = folder / "library"
    if not library.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        where = ["--target", str(library), f"--config-settings=build-dir={folder / 'build'}"]
        command = [sys.executable, "-m", "pip", "install", *options, *where, str(tree)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise GuardError(f"{tree} cannot be built: {done.stderr[-_LAST_CHARACTERS:].strip()}")
    return library


# Import the library on PYTHONPATH, although an editable installation comes first.
_RUN = """
import runpy, sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
runpy.run_path(sys.argv[1], run_name="__main__")
"""


class Worker:
    """A process that measures the library in one folder; its working directory is another."""

    def __init__(self, library: Path, scratch: Path, script: Path = MEASURES) -> None:
        environment = {**os.environ, "PYTHONPATH": str(library)}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-c", _RUN, str(script)],
            cwd=scratch,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def measure(self, name: str, size: float = 1.0) -> dict[str, Any]:
        """Return the answer about a measure; raise `GuardError` if the process has died."""
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        try:
            requests.write(json.dumps({"name": name, "size": size}) + "\n")
            requests.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            self._process.wait()
            self._errors.seek(0)
            raise GuardError(f"no answer about {name!r}: {self._errors.read()[-_LAST_CHARACTERS:].strip()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
