"""Items that a thread reads ahead while each allocation fails in turn, of this thread or of the one that waits for it.

It runs with `allocation_faults.c` preloaded, whose path is the argument. Each failure happens in a forked child. It
prints how many children ended in which way, as JSON.
"""

import ctypes
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator

from ellipack.evaluation.prefetch import prefetch

TIMEOUT = 20
"""Seconds after which a child counts as hanging."""

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


def items() -> Iterator[int]:
    """Yield more items than are read ahead, then fail."""
    yield from range(4)
    raise EOFError


def read_all(failing: int) -> str:
    """Return how reading ends if an allocation fails."""
    got, ahead = [-1] * 4, prefetch(items())
    try:
        fail_allocation(failing)
        for place, item in enumerate(ahead):
            got[place] = item
    except EOFError:
        remaining = fail_allocation(0)
        assert got == [0, 1, 2, 3]
        return "EOFError without a failure" if remaining else "EOFError"
    return "no error"


def end_of_child(failing: int) -> str:
    """Return how reading ends in a forked child."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(TIMEOUT)
        try:
            how = read_all(failing)
        except Exception as error:
            how = type(error).__name__
        os.write(writing, how.encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as file:
        how = file.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return how if code == 0 else f"exit code {code}"


def main() -> None:
    """Let one allocation after the other fail, until none is left."""
    ends = Counter[str]()
    while not ends["EOFError without a failure"]:
        ends[end_of_child(ends.total() + 1)] += 1
    print(json.dumps(ends))


main()
