"""Allocations fail in turn; afterwards learners and files are as before or complete, and learners continue.

By default, a sample of the allocations fails; with the environment variable ``ELLIPACK_FAULTS``, all do.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.tables import rides, write
from tests.faults.preloading import ALL_POINTS, library

FOLDER = Path(__file__).parents[2]


def run_script(name: str, *arguments: str, environment: dict[str, str] | None = None) -> list[str]:
    """Run a script of this package whose allocations can fail; return the lines that it prints."""
    faults = library("allocation_faults.c")
    done = subprocess.run(
        [sys.executable, "-m", f"tests.faults.{name}", faults, *arguments],
        cwd=FOLDER,
        env={**os.environ, "LD_PRELOAD": faults, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_round_without_memory_changes_nothing_and_can_be_repeated() -> None:
    (failures,) = run_script("learn_with_failing_allocations")
    assert int(failures) > 300


@pytest.mark.parametrize(("learner", "step"), [("metric", 997), ("packing", 97), ("table", 1997)])
def test_calls_without_memory_change_nothing_or_are_complete(learner: str, step: int, tmp_path: Path) -> None:
    # Small objects are allocated one by one, and always in the same order.
    environment = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    lines = run_script(
        "calls_with_failing_allocations",
        str(1 if ALL_POINTS else step),
        str(tmp_path),
        learner,
        "1",
        environment=environment,
    )
    ends = dict(map(json.loads, lines))
    calls = ["save", "load", "fit", "partial_fit", "predict", "add_features"]
    assert list(ends) == (calls[:-1] if learner == "table" else calls)
    total = sum(map(Counter, ends.values()), Counter[str]())
    crashes = sum(number for how, number in total.items() if how.startswith("ended by signal"))
    if learner == "table":  # Arrow ends the process in most of its calls
        assert total["MemoryError"] > 0.5 * total.total(), total
    else:
        assert total["MemoryError"] > 0.7 * total.total(), total
        assert crashes <= max(2, 0.02 * total.total()), total  # NumPy and nanobind do not expect all failures


def test_a_run_without_memory_can_be_completed(tmp_path: Path) -> None:
    write(tmp_path / "rides.csv", rides(60))
    environment = {"PYTHONMALLOC": "malloc", "ARROW_DEFAULT_MEMORY_POOL": "system"}
    failures = 500 if ALL_POINTS else 3
    (line,) = run_script("run_with_failing_allocations", str(failures), str(tmp_path), environment=environment)
    total, codes = json.loads(line)
    assert total > 100_000
    assert set(codes) != {"0"}, codes
