"""Time and memory of code under test."""

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

STATUS_FILE = Path("/proc/self/status")
"""Linux only: the memory of this process."""

_CLEAR_FILE = Path("/proc/self/clear_refs")


def best_of(
    repeats: int, *functions: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the least seconds that each function took; the functions take turns.

    Other work on the machine can only add time, hence the least. It adds to all functions alike, hence the turns.
    """
    least = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = clock()
            function()
            least[i] = min(least[i], clock() - start)
    return least


def memory_bytes(field: Literal["VmRSS", "VmHWM"]) -> int:
    """Return the resident memory of this process now (VmRSS) or at its peak (VmHWM).

    `getrusage` is the fallback. It returns the peak only, and on Linux includes the peak of the parent process.
    """
    if STATUS_FILE.exists():
        for line in STATUS_FILE.read_text().splitlines():
            if line.startswith(f"{field}:"):
                return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak_memory() -> bool:
    """Set the peak memory of this process to its current memory; return whether the system supports it."""
    try:
        _CLEAR_FILE.write_text("5")
    except OSError:
        return False
    return True
