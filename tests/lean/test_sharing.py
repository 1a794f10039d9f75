"""Parts of kernels that are compiled once for all of them, in the process that compiles them and in later ones."""

import os
import subprocess
import sys
from pathlib import Path

PARTS = """
import sys

import numpy as np

from ellipack._kernels import kernel, shared, subkernel
from ellipack.lean import sharing


@shared
def halved(values, at):
    if values[at] < 0.0:
        raise ValueError("negative")
    return values[at] / 2.0


@shared
def quartered(values, at):
    return halved(values, at) / 2.0


@subkernel
def sum_of(values):
    return halved(values, 0) + quartered(values, 1)


@kernel
def one(values):
    return sum_of(values)


@kernel
def other(values):
    return quartered(values, 0)


@kernel
def another(values):
    return halved(values, 0)


@kernel
def outer(values):
    return other(values) + 1.0


for kernel in sys.argv[1:]:
    ask = globals()[kernel]
    try:
        ask(np.array([-1.0, 0.0]))
    except ValueError as error:
        print(error, end=" ")
    print(ask(np.array([2.0, 8.0])), "from disk" if ask.stats.cache_hits else "compiled", end=", ")
print(sum("halved" in name for name in sharing._shared))
"""


def test_kernels_share_parts_and_have_them_with_them_on_disk(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(PARTS)

    def ask(*kernels: str) -> str:
        """Have a process of its own ask kernels; return what it says, and how often it has the part that all call."""
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        run = [sys.executable, str(tmp_path / "parts.py"), *kernels]
        return subprocess.run(run, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    assert ask("one", "other") == "negative 3.0 compiled, negative 0.5 compiled, 1"
    # A kernel that calls one from disk needs what that needs; one that calls the part has it compiled anew.
    assert ask("outer") == "negative 1.5 compiled, 1"
    assert ask("outer", "another") == "negative 1.5 from disk, negative 1.0 compiled, 2"
    assert ask("another", "one") == "negative 1.0 from disk, negative 3.0 from disk, 2"
