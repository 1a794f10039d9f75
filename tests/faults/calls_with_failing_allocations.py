"""Calls of learners in which an allocation fails: of the interpreter, of NumPy or of the compiled core.

It runs with `allocation_faults.c` preloaded. Its arguments are the path of that library, a folder, and for each learner
``NAME=STEP``: the number of allocations from one failure to the next. Each failure happens in a forked child, which
then checks learner and files. The results are printed as a line of JSON for each learner and call: how many children
ended in which way.
"""

import ctypes
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import ellipack
from ellipack import MetricConfig, MetricRegressor, PackingRegressor, TableRegressor
from ellipack.tabular import LevelOptions

LARGE = 10**9
SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
    "packing": PackingRegressor,
    "table": lambda: TableRegressor(learner=LEARNERS["metric"](), levels=LevelOptions(min_frequency=2)),
}
RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, size=(20, 2)), RNG.random(20)
OTHER = RNG.uniform(-0.5, 0.5, size=(20, 3))
TEXTS = pd.DataFrame({"a": X[:, 0], "b": RNG.choice(["x", "y"], 20), "c": [None, *RNG.random(19)]})

fail_allocation = ctypes.CDLL(sys.argv[1]).fail_allocation
fail_allocation.argtypes, fail_allocation.restype = [ctypes.c_long], ctypes.c_long


class Case(NamedTuple):
    """A call, and what has to hold after a failure in it.

    Attributes
    ----------
    prepare : callable
        Returns the learner, or another subject.
    call : callable
        The call on the subject, in which an allocation fails. It returns a learner, predictions or None.
    check : callable
        Raises an AssertionError unless the subject is as before the call, complete, or after a round.
    check_files : callable
        Does the same for files, if the child has been ended.
    """

    prepare: Callable[[], Any]
    call: Callable[[Any], Any]
    check: Callable[[Any], None]
    check_files: Callable[[], None] = lambda: None


def bits(learner: Any) -> tuple[Any, ...]:
    """Return all that a learner has learned."""
    if isinstance(learner, TableRegressor):
        with TemporaryDirectory() as folder:
            learner.save(Path(folder, "model"))
            return (Path(folder, "model").read_bytes(),)
    archive = learner.to_archive()
    arrays = tuple((name, array.tobytes()) for name, array in sorted(archive.arrays_by_full_name().items()))
    return getattr(learner, "n_features_in_", None), repr(archive.facts), arrays


def cases_of(make: Callable[[], Any], X: Any, path: Path) -> dict[str, Case]:
    """Return the calls by name, on the rows of X."""
    first, second = make().fit(X[:3], Y[:3]), make().fit(X[:7], Y[:7])
    other = make().fit(OTHER[:3], Y[:3])
    states, learner = [], make().fit(X[:6], Y[:6])
    started = deepcopy(learner)
    for t in range(6, 10):  # two phases of a metric end here
        states.append(bits(learner))
        learner.partial_fit(X[t : t + 1], Y[t : t + 1])
    states.append(bits(learner))

    def replace_file() -> Any:
        first.save(path)
        return second

    def check_file() -> None:
        assert bits(ellipack.load(path)) in (bits(first), bits(second))

    def check_saved(saved: Any) -> None:
        assert bits(saved) == bits(second)
        assert os.listdir(path.parent) == [path.name]
        check_file()
        saved.save(path)
        assert bits(ellipack.load(path)) == bits(second)

    def check_loadable(_: Any) -> None:
        second.save(path)
        assert bits(ellipack.load(path)) == bits(second)

    def check_refitted(learner: Any) -> None:
        assert bits(learner) in (bits(first), bits(other))
        assert bits(learner.fit(OTHER[:3], Y[:3])) == bits(other)

    def check_round(learner: Any) -> None:
        at = 6 + states.index(bits(learner))
        if at < 10:
            learner.partial_fit(X[at:10], Y[at:10])
        assert bits(learner) == states[-1]

    def check_unchanged(learner: Any) -> None:
        assert bits(learner) == bits(second)

    def check_wider(learner: Any) -> None:
        assert bits(learner) in (bits(second), bits(deepcopy(second).add_features([0.5])))

    cases = {
        "save": Case(replace_file, lambda each: each.save(path), check_saved, check_file),
        "load": Case(lambda: second.save(path), lambda _: ellipack.load(path), check_loadable),
        "fit": Case(lambda: deepcopy(first), lambda each: each.fit(OTHER[:3], Y[:3]), check_refitted),
        "partial_fit": Case(lambda: deepcopy(started), lambda each: each.partial_fit(X[6:10], Y[6:10]), check_round),
        "predict": Case(lambda: deepcopy(second), lambda each: each.predict(X[:5]), check_unchanged),
    }
    if not isinstance(second, TableRegressor):
        cases["add_features"] = Case(lambda: deepcopy(second), lambda each: each.add_features([0.5]), check_wider)
    return cases


def comparable(result: Any) -> Any:
    """Return the bits of a learner, or of predictions."""
    return result if result is None else result.tobytes() if isinstance(result, np.ndarray) else bits(result)


def call_with_failure(case: Case, subject: Any, failing: int) -> tuple[str, Any]:
    """Call with an allocation that fails; return how the call ended, and its result."""
    how, result = "completed", None
    fail_allocation(failing)
    try:
        result = case.call(subject)
        fail_allocation(0)  # the allocation that fails may be one of this call
    except Exception as error:
        how = type(error).__name__
    fail_allocation(0)
    return how, comparable(result)


def count_allocations(case: Case) -> int:
    """Return the number of allocations in a call that does not fail."""
    case.call(case.prepare())  # fills caches
    subject = case.prepare()
    fail_allocation(LARGE)
    case.call(subject)
    return int(LARGE - fail_allocation(0))


def run_child(case: Case, failing: int, expected: Any) -> None:
    """Write how a call with a failure ended to standard output, and end the process."""
    try:
        subject = case.prepare()
        how, result = call_with_failure(case, subject, failing)
        assert how != "completed" or result == expected, "the call completed with another result"
        case.check(subject)
        os.write(1, how.encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def forked(call: Callable[[], None]) -> tuple[int, str, str]:
    """Call a function in a forked child; return its exit code, standard output and standard error."""
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        for number, (_, end) in enumerate(pipes, start=1):
            os.dup2(end, number)
        call()
    for _, end in pipes:
        os.close(end)
    out, err = (read_all(start) for start, _ in pipes)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), out, err


def read_all(descriptor: int) -> str:
    """Return what a pipe holds, and close it."""
    with open(descriptor, errors="replace") as file:
        return file.read()


def sweep(case: Case, step: int) -> Counter[str]:
    """Let one allocation after the other fail; return how often calls ended in which way."""
    total, ends = count_allocations(case), Counter[str]()
    expected = comparable(case.call(case.prepare()))
    for failing in range(1, total + 1, step):
        code, how, message = forked(partial(run_child, case, failing, expected))
        if code < 0:  # nanobind ends the process where it gets no memory for arguments, and NumPy has bugs there
            case.check_files()
            how = "ended by nanobind" if "nanobind" in message else f"ended by signal {-code}"
        elif code != 0:
            raise AssertionError(f"allocation {failing} of {total}: exit code {code}\n{message}")
        ends[how] += 1
    return ends


def main() -> None:
    """Sweep all calls of the learners."""
    path = Path(sys.argv[2], "model")
    for argument in sys.argv[3:]:
        learner, step = argument.split("=")
        for call, case in cases_of(LEARNERS[learner], TEXTS if learner == "table" else X, path).items():
            print(json.dumps([learner, call, sweep(case, int(step))]), flush=True)
        path.unlink()


main()
