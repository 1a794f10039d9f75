"""Parts of kernels that are compiled once for all of them, in the process that compiles them and in later ones."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture
def ask(tmp_path: Path) -> "Ask":
    (tmp_path / "parts.py").write_text(PARTS)
    return Ask(tmp_path)


class Ask:
    """Has a process of its own ask kernels, and returns what it says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *kernels: str) -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(self.folder / "cache")}
        run = [sys.executable, str(self.folder / "parts.py"), *kernels]
        return subprocess.run(run, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def test_kernels_of_a_process_share_parts_and_so_do_those_from_disk(ask: Ask) -> None:
    assert ask("one", "other") == "negative 3.0 compiled, negative 0.5 compiled, 1"
    assert ask("other", "one") == "negative 0.5 from disk, negative 3.0 from disk, 1"
    assert ask("other") == "negative 0.5 from disk, 1"


def test_kernels_from_disk_go_with_parts_that_are_compiled_anew(ask: Ask) -> None:
    assert ask("one") == "negative 3.0 compiled, 1"
    assert ask("one", "other") == "negative 3.0 from disk, negative 0.5 compiled, 2"
    assert ask("one", "other") == "negative 3.0 from disk, negative 0.5 from disk, 2"


def test_a_kernel_from_disk_has_the_parts_of_the_kernels_that_it_calls(ask: Ask) -> None:
    assert ask("other") == "negative 0.5 compiled, 1"
    assert ask("outer") == "negative 1.5 compiled, 1"
    assert ask("outer") == "negative 1.5 from disk, 1"
