"""Calls of the cores while the process waits to fork."""

import subprocess
import sys

CALLS = """
import faulthandler, time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
import numpy as np
from ellipack import _core
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.initial_state import LearnerSize, initial_state

faulthandler.dump_traceback_later(60, exit=True)
rows, labels, classes = np.zeros((3, 2)), np.zeros(3), np.zeros(3, np.int64)
starts, keys, no_bounds = np.array([1]), np.zeros(0, np.int64), np.zeros((0, 0))
metric = initial_state(2, LearnerSize(1, 4, 16, past_labels=3), 0, MetricConfig()).core
packing = _core.PackingCore(2, starts)
classifier = _core.PackingClassifierCore(2, starts, 1, False)
tree = _core.PackingTreeCore(np.ones(1), starts, starts)
adaptive = _core.IntrinsicDimensionCore(2, 1)
index = _core.KdTree(2)
calls = [
    partial(metric.learn, rows, keys, labels, np.zeros(3), no_bounds), partial(metric.learn_one, [0.0, 0.0], 0.0),
    partial(metric.predict, rows, np.zeros(3), no_bounds), partial(metric.predict_one, [0.0, 0.0]),
    partial(metric.predict_next_one, [0.0, 0.0]), partial(metric.predict_next_interval_one, [0.0, 0.0]),
    partial(metric.predict_next, rows, keys, labels, None, np.zeros(3), no_bounds, False),
    partial(metric.expert_predictions, [0.0, 0.0]), partial(metric.accepts_rows, rows),
    partial(metric.accepts_rounds, rows, labels), metric.__len__,
    partial(metric.round_on_copy, [0.0, 0.0], 0.0), partial(metric.round_before_refit, [0.0, 0.0], 0.0),
    partial(packing.learn, rows, labels, True), partial(packing.predict, rows),
    partial(classifier.learn, rows, classes), partial(classifier.predict, rows),
    partial(tree.learn, rows, labels), partial(tree.predict, rows),
    partial(adaptive.learn, rows, labels), partial(adaptive.predict, rows),
    partial(index.insert, rows), partial(index.nearest, rows), partial(index.k_nearest, rows, 1),
    partial(index.within, rows, 1.0), partial(index.nearest_later_in_leaf, np.zeros((3, 2))), index.__len__,
    partial(index.leaf_positions, 0), partial(index.near_leaves, np.zeros(2), 1.0),
    partial(index.near_in_leaf, 0, np.zeros(2), 1.0), lambda: _core.local_slopes(index, labels, rows, 2, 1.0),
]
called = {(call.func.__self__, call.func.__name__) for call in calls if isinstance(call, partial)}
for core in (metric, packing, classifier, tree, adaptive, index):
    if core is not index:  # it can't be pickled
        make, arguments = core.__reduce__()
        calls += [partial(make, *arguments), core.__reduce__]
    for name in dir(core):
        if not name.startswith("_") and name != "build":  # it makes a new tree, which no thread shares
            calls.append(partial(getattr, core, name))
            if f"{name}(self) ->" in str(getattr(type(core), name).__doc__):  # has no other arguments
                calls.append(getattr(core, name))
            elif callable(getattr(core, name)):
                assert (core, name) in called, f"{type(core).__name__}.{name} must be among the calls"
with ThreadPoolExecutor(1) as pool:
    for call in calls:
        _core.close_fork_gate()
        result = pool.submit(call)
        time.sleep(2e-3)  # never ends if the call waits at the gate with the interpreter's lock
        _core.open_fork_gate()
        result.result()
print(len(calls))
"""


def test_no_call_waits_for_a_fork_with_the_interpreters_lock() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100
