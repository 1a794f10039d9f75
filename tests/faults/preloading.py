"""Compile libraries that inject faults, and describe which call of a process fails."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

ALL_POINTS = bool(os.environ.get("ELLIPACK_FAULTS"))
"""Whether every call fails in turn, in all ways. By default, a sample does."""


@cache
def library(name: str = "io_faults.c") -> str:
    """Return the path of the compiled library; skip the test if it can't be compiled."""
    source = Path(__file__).with_name(name)
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("faults are injected on Linux with a C compiler")
    path = Path(mkdtemp()) / f"{source.stem}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", path, source, "-ldl"], check=True)
    return str(path)


def plan(at: int, error: int, mode: str, folder: Path) -> dict[str, str]:
    """Return the environment in which a call fails.

    Parameters
    ----------
    at : int
        Number of the call on a file in the folder, starting at 1.
    error : int
        Error number.
    mode : {"once", "always", "kill", "count"}
        Whether only this call fails, all later ones fail, too, the process is killed, or nothing fails.
    folder : Path
        Folder of the files.
    """
    return {"IO_FAULTS": f"{at} {error} {mode} {folder}"}


def sample(points: int, offset: int, step: int) -> list[int]:
    """Return the numbers of the calls that fail in turn: all, or every `step`-th one."""
    return list(range(1, points + 1)) if ALL_POINTS else list(range(1 + offset % step, points + 1, step))
