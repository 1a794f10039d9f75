"""Every call of saving and loading fails in turn: afterwards the file is the old or the new one, complete."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.preloading import library

SWEEP = """
import errno, itertools, os, sys
import numpy as np
from ellipack.errors import ModelFileError
from ellipack.serialization import Archive, read, write

folder, mode, error = sys.argv[1], sys.argv[2], getattr(errno, sys.argv[3])
path = os.path.join(folder, "model")
old, new = (Archive({"clock": clock}, {"rows": np.full(5_000, float(clock))}) for clock in (1, 2))

def arm(at):
    os.environ["IO_FAULTS"] = f"{at} {error} {mode} {folder}"

def contents():
    del os.environ["IO_FAULTS"]
    return read(path)[1].facts["clock"]

for there in (True, False):
    for at in itertools.count(1):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        if there:
            write(path, "Kind", old)
        arm(at)
        failure = ""
        try:
            write(path, "Kind", new)
        except ModelFileError as raised:
            failure = str(raised)
        is_there = os.path.exists(path)
        found = contents() if is_there else None
        if not is_there:
            os.environ.pop("IO_FAULTS", None)
        assert found == (2 if not failure or "is written" in failure else 1 if there else None), (at, failure, found)
        left = [name for name in os.listdir(folder) if name != "model"]
        assert len(left) <= (mode == "always"), left  # the removal fails, too
        write(path, "Kind", new)
        assert os.listdir(folder) == ["model"]
        if not failure and at > 15:  # saving makes about ten calls, and can do without some of them
            break
    print("saving", at)

for at in itertools.count(1):
    arm(at)
    try:
        assert read(path)[1].arrays_by_full_name()["rows"][-1] == 2.0
        failed = False
    except ModelFileError:
        failed = True
    del os.environ["IO_FAULTS"]
    if not failed:
        break
assert at > 2
assert read(path)[1].facts["clock"] == 2
print("loading", at)
"""


@pytest.mark.parametrize("mode", ["once", "always"])
@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_a_failed_call_leaves_the_old_or_the_new_file(mode: str, error: str, tmp_path: Path) -> None:
    environment = {**os.environ, "LD_PRELOAD": library()}
    done = subprocess.run(
        [sys.executable, "-c", SWEEP, str(tmp_path), mode, error],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["saving", "saving", "loading"]
