"""Learns a stream while allocations of the compiled core fail, and checks the state after each failure.

In two of five rounds that do not end a phase, each allocation fails in turn; with the environment variable
``ELLIPACK_FAULTS``, in all of them. It runs with `allocation_faults.c` preloaded, whose path is the first argument. It
prints the number of failures.
"""

import ctypes
import sys

import numpy as np

from ellipack._core import MetricCore
from ellipack.learners.intervals import NO_BOUNDS
from ellipack.learners.metric import learner
from ellipack.learners.metric.learner import Round
from ellipack.learners.metric.state import MetricState
from tests.faults.preloading import ALL_POINTS
from tests.learners.metric.learners import Past, bits, new_state, smooth_stream

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


def learn(core: MetricCore, round_: Round, failing: int) -> bool:
    """Learn a round in which an allocation fails, and return whether it did."""
    row, key = np.array([round_.row]), np.array([round_.key], dtype=np.int64)
    label, prediction = np.array([round_.label]), np.empty(1)
    fail_allocation(failing)
    try:
        core.learn(row, key, label, prediction, NO_BOUNDS)
    except MemoryError:
        return True
    finally:
        fail_allocation(0)
    return False


def sweep(state: MetricState, round_: Round, *, with_workspace: bool) -> int:
    """Learn a round after each of its allocations has failed; return the number of failures."""
    before, failures = bits(state), 0
    while True:
        if with_workspace:
            state.core.predict_one(round_.row)  # a failure frees the workspace: this makes a new one
        if not learn(state.core, round_, failures + 1):
            return failures
        failures += 1
        assert bits(state) == before, f"failure {failures} in round {state.clock + 1} changed the state"


def main() -> None:
    """Sweep learners without the past, with the past of the stream, and with that of keys."""
    total = 0
    for past in (Past(), Past(3), Past(2, 2)):
        X, y = smooth_stream(70, d=3)
        y[60] = 1e9  # an outlier
        state, expected = new_state(3, past=past), new_state(3, past=past)
        for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            round_ = Round(row, label, t % 4 if past.max_keys else 0)
            shared = state.core.parts() if t % 5 == 0 else None  # so that the round copies what it changes
            if state.clock + 1 < state.phase.end and (ALL_POINTS or t % 5 < 2):
                total += sweep(state, round_, with_workspace=t % 30 != 1)
            else:
                learner.learn_one(state, round_)
            del shared
            learner.learn_one(expected, round_)
            assert bits(state) == bits(expected), f"round {t + 1} has other bits after failures"
    assert np.isfinite(state.core.predict_one(X[0].tolist()))
    print(total)


main()
