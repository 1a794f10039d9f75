"""Learns a stream while allocations of the cores of the paper's learners fail, and checks the state after each failure.

Each allocation of a round fails in turn. It runs with `allocation_faults.c` preloaded, whose path is the first
argument. It prints the number of failures of each core.
"""

import ctypes
import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ellipack._core import IntrinsicDimensionCore, PackingClassifierCore, PackingCore, PackingTreeCore
from tests.strategies import ball

ROWS, D = 200, 3
RNG = np.random.default_rng(0)
X, Y = ball(RNG, ROWS, D), RNG.random(ROWS)
CLASSES = RNG.integers(0, 3, ROWS)
STARTS = np.zeros(D - 1, dtype=np.int64)
CORES: dict[str, Callable[[], Any]] = {
    "packing": lambda: PackingCore(D, STARTS),
    "tree": lambda: PackingTreeCore(np.array([64.0, 4096.0]), np.array([3, 3]), STARTS),  # a root with many children
    "classifier": lambda: PackingClassifierCore(D, STARTS, 3, False),
    "intrinsic dimension": lambda: IntrinsicDimensionCore(D, 1),
}

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


def bits(core: Any) -> bytes:
    """Return the complete state of a core, its calibration included."""
    return pickle.dumps(core)


def learn(core: Any, row: Any, label: Any, failing: int) -> bool:
    """Learn a round in which an allocation fails; return whether none did."""
    more = (False,) if isinstance(core, PackingCore) else ()
    fail_allocation(failing)
    try:
        core.learn(row, label, *more)
    except MemoryError:
        return False
    finally:
        fail_allocation(0)
    return True


def sweep(core: Any, row: Any, label: Any, after: bytes) -> int:
    """Learn a round after each of its allocations has failed; return the number of failures."""
    before, failures = bits(core), 0
    while not learn(core, row, label, failures + 1):
        failures += 1
        found = bits(core)
        if found == after:  # the result could not be returned
            return failures
        assert found == before, f"failure {failures} changed the state"
    return failures


def main() -> None:
    """Sweep a round of each core after the other."""
    for name, make in CORES.items():
        labels: Any = CLASSES if name == "classifier" else Y
        core, expected, total = make(), make(), 0
        for t in range(ROWS):
            row, label = X[t : t + 1], labels[t : t + 1]
            learn(expected, row, label, 0)
            total += sweep(core, row, label, bits(expected))
            assert bits(core) == bits(expected), f"{name}: round {t + 1} has other bits after failures"
            assert core.predict(row).tobytes() == expected.predict(row).tobytes()
        print(json.dumps([name, total]))


main()
