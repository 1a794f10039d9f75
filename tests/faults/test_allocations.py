"""Each allocation in a round of the compiled core fails in turn; the round is learned completely or not at all."""

import os
import subprocess
import sys
from pathlib import Path

from tests.faults.preloading import library

SCRIPT = "tests.faults.learn_with_failing_allocations"


def test_a_round_without_memory_changes_nothing_and_can_be_repeated() -> None:
    faults = library("allocation_faults.cpp")
    done = subprocess.run(
        [sys.executable, "-m", SCRIPT, faults],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "LD_PRELOAD": faults},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 300  # failures
