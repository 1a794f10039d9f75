"""Allocations fail in turn; afterwards learners and files are as before or complete, and learners continue.

By default, a sample of the allocations fails; with the environment variable ``ELLIPACK_FAULTS``, all do.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

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


def test_a_round_of_the_papers_learners_without_memory_changes_nothing_and_can_be_repeated() -> None:
    failures = dict(map(json.loads, run_script("packings_with_failing_allocations")))
    assert list(failures) == ["packing", "tree", "classifier", "intrinsic dimension"]
    assert min(failures.values()) > 300, failures


def test_arrays_of_the_compiled_core_without_memory_are_errors() -> None:
    (line,) = run_script("arrays_with_failing_allocations", environment={"PYTHONMALLOC": "malloc"})
    results = json.loads(line)
    assert results.pop("float64 without a failure") == 1
    # Never "object". ctypes raises an ArgumentError where the script itself gets no memory.
    assert set(results) <= {"MemoryError", "SystemError", "ArgumentError", "ended by a signal"}, results
    assert results["MemoryError"] > 5, results


CALLS = ["save", "load", "fit", "partial_fit", "predict", "add_features"]
CALLS_OF = {"metric": CALLS, "packing": CALLS, "table": CALLS[:-1]}
STEPS = {"metric": 997, "packing": 97, "table": 1997}
"""Number of allocations from one failure to the next."""


def test_calls_without_memory_change_nothing_or_are_complete(tmp_path: Path) -> None:
    # Small objects are allocated one by one, and always in the same order.
    environment = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    steps = [f"{learner}={1 if ALL_POINTS else step}" for learner, step in STEPS.items()]
    lines = run_script("calls_with_failing_allocations", str(tmp_path), *steps, environment=environment)
    ends = {(learner, call): Counter(ways) for learner, call, ways in map(json.loads, lines)}
    assert list(ends) == [(learner, call) for learner, calls in CALLS_OF.items() for call in calls]
    for learner, calls in CALLS_OF.items():
        total = sum((ends[learner, call] for call in calls), Counter[str]())
        assert total["MemoryError"] > 0.5 * total.total(), (learner, total)
        crashes = sum(number for how, number in total.items() if how.startswith("ended by signal"))
        # NumPy and nanobind do not expect all failures. Arrow ends the process in most of its calls.
        assert learner == "table" or crashes <= max(2, 0.02 * total.total()), (learner, total)


def test_reading_ahead_without_memory_ends() -> None:
    (line,) = run_script("prefetch_with_failing_allocations", environment={"PYTHONMALLOC": "malloc"})
    ends = json.loads(line)
    assert ends.pop("EOFError without a failure") == 1
    # ctypes raises an ArgumentError where the script itself gets no memory.
    assert set(ends) <= {"EOFError", "MemoryError", "RuntimeError", "SystemError", "ArgumentError"}, ends
    assert ends["MemoryError"] > 20, ends


RUN_STEPS = {"new": 2_999, "resumed, Parquet": 4_999}
ALL_RUN_STEPS = {"importing": 9_001, "new": 1, "new, Parquet": 1, "resumed": 1, "resumed, Parquet": 1}
"""All allocations of runs, and a sample of those of a process that imports the modules: each of them takes seconds."""


def test_a_run_without_memory_can_be_completed(tmp_path: Path) -> None:
    environment = {
        "PYTHONMALLOC": "malloc",
        "PYTHONHASHSEED": "0",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OPENBLAS_NUM_THREADS": "1",  # a forked child does not have the threads of its parent
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # forks take less time with large pages
    }
    steps = ALL_RUN_STEPS if ALL_POINTS else RUN_STEPS
    arguments = [f"{name}={step}" for name, step in steps.items()]
    lines = run_script("run_with_failing_allocations", str(tmp_path), *arguments, environment=environment)
    results = {name: result for name, *result in map(json.loads, lines)}
    assert list(results) == list(steps)
    for name, (total, ends, states, problems) in results.items():
        assert not problems, "\n".join(problems)
        assert total > 50_000, name
        assert ends["exit code 1"] > 0, (name, ends)
        assert states > 1, name
