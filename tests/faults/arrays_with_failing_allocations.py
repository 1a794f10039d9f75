"""Arrays that the compiled core returns while each allocation fails in turn.

It runs with `allocation_faults.c` preloaded, whose path is the argument. Each failure happens in a forked child. It
prints how many children got which error or type of array, as JSON.
"""

import ctypes
import json
import os
import sys
from collections import Counter

from tests.learners.metric.learners import new_state

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long

expert_weights = new_state(3).core.expert_weights


def result_of_child(failing: int) -> str:
    """Return the type of the array in a forked child in which an allocation fails, or the error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        fail_allocation(failing)
        try:
            array = expert_weights()
            result = f"{array.dtype}{' without a failure' * (fail_allocation(0) > 0)}"
        except Exception as error:
            result = type(error).__name__
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        result = file.read()
    return result if os.waitpid(child, 0)[1] == 0 else "ended by a signal"


def main() -> None:
    """Let each allocation fail, and the one after the last."""
    results = Counter[str]()
    while results["float64 without a failure"] == 0:
        results[result_of_child(results.total() + 1)] += 1
    print(json.dumps(results))


main()
