"""Runs of the command in which an allocation fails, and which the same command then completes.

It runs with `allocation_faults.c` preloaded. Its arguments are the path of that library, the number of failures, and a
folder that contains a table. The failures are spread over all allocations of a run. It prints how often runs ended with
which exit code.
"""

import ctypes
import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ellipack.cli import inspect, main, predict, run  # noqa: F401  # commands import these when they run
from tests.cli.tables import TARGET

OUTPUTS = ["--save", "m", "--resume", "m", "--predictions", "p.csv"]
ARGUMENTS = ["ellipack", "run", "rides.csv", "-t", TARGET, "--save-every", "20", *OUTPUTS]
LARGE = 10**9

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


def run_child(folder: Path, failing: int) -> None:
    """Run the command with an allocation that fails; 0: none fails."""
    os.chdir(folder)
    os.dup2(os.open("../out", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
    os.dup2(os.open("../err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    sys.argv = ARGUMENTS
    fail_allocation(failing)
    main()


def count_allocations(folder: Path) -> None:
    """Run the command, and write the number of its allocations."""
    leave = os._exit

    def write_count(code: int) -> None:
        (folder.parent / "count").write_text(str(LARGE - fail_allocation(0)))
        leave(code)

    os._exit = write_count  # type: ignore[assignment]
    run_child(folder, LARGE)


def exit_code(child: Callable[[], None]) -> int:
    """Return the exit code of a forked child."""
    number = os.fork()
    if number == 0:
        child()
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fresh(folder: Path, table: Path) -> Path:
    """Return a folder that contains only the table."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(table, folder)
    return folder


def sweep(failures: int, base: Path) -> None:
    """Run with one failure after the other, and complete each run."""
    table, folder = base / "rides.csv", base / "folder"
    assert exit_code(lambda: count_allocations(fresh(folder, table))) == 0
    total, expected = int((base / "count").read_text()), files_in(folder)
    codes = Counter[int]()
    for number in range(failures):
        failing = 1 + (number * total + total // 2) // failures
        code = exit_code(partial(run_child, fresh(folder, table), failing))
        message = (base / "err").read_text(errors="replace")
        place = f"allocation {failing} of {total}: exit code {code}, {message}"
        assert code in (0, 1, 3, 4) or code < 0, place
        assert not message.rstrip().endswith("MemoryError"), place  # a traceback
        again = exit_code(lambda: run_child(folder, 0))
        assert again == 0, f"{place}; then {(base / 'err').read_text(errors='replace')}"
        assert files_in(folder) == expected, place
        codes[code] += 1
    print(json.dumps([total, codes]))


sweep(int(sys.argv[2]), Path(sys.argv[3]))
