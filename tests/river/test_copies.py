"""Copies, pickles and files of River models hold the learner and the pending predictions after the same round.

They are made while other threads learn and predict, and in signal handlers.
"""

import copy
import os
import pickle
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest

from ellipack import MetricConfig
from ellipack.errors import ReentrantCallError
from ellipack.river import MetricRegressor, PackingRegressor, load
from ellipack.river.pending import PendingPredictions
from tests.interrupts import InterruptAt

SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(16, neighbors=4, config=SMALL),
    "packing": PackingRegressor,
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())

Copier = Callable[[Any, Path], Any]
Row = tuple[dict[str, float], float]

LATE: Row = {"a": 3.5, "new": 1.0}, 1.0
"""A row whose label comes late, with a feature that the model does not know."""


def saved(model: Any, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def save_and_load(model: Any, folder: Path) -> Any:
    model.save(folder / "model")
    return load(folder / "model")


COPIERS: dict[str, Copier] = {
    "copy": lambda model, _: copy.copy(model),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "clone": lambda model, _: model.clone(include_attributes=True),
    "save": save_and_load,
}
copiers = pytest.mark.parametrize("copied", COPIERS.values(), ids=COPIERS.keys())


def row(t: int) -> Row:
    return {"a": float(t % 7), "b": float(t % 3), **({"c": 0.1 * t} if t > 20 else {})}, float(t % 5)


def waiting_for_a_label(make: Callable[[], Any]) -> Any:
    """Return a model that has predicted the late row twice. Its label belongs to the first prediction."""
    model = make()
    for t in range(12):
        model.learn_one(*row(t))
    for t in (12, 13):
        model.predict_interval_one(LATE[0])
        model.learn_one(*row(t))
    return model


def states_around_the_late_label(model: Any, folder: Path) -> tuple[bytes, bytes]:
    """Return the files of a model before and after it learns the late row, which a copy does."""
    after = save_and_load(model, folder)
    after.learn_one(*LATE)
    return saved(model, folder), saved(after, folder)


@learners
@copiers
def test_a_copy_is_made_between_two_rounds_though_a_thread_learns(
    copied: Copier, make: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = waiting_for_a_label(make)
    before, after = states_around_the_late_label(model, tmp_path)
    learner = Thread(target=model.learn_one, args=LATE)

    def learn_meanwhile(read: Callable[..., Any], pending: PendingPredictions, *arguments: int) -> Any:
        if pending is model._pending and learner.ident is None:  # the learner was copied before
            learner.start()
            learner.join(0.05)  # it may wait until the copy is made
        return read(pending, *arguments)

    with monkeypatch.context() as patch:
        for name in ("__getstate__", "to_archive"):
            read = getattr(PendingPredictions, name)
            patch.setattr(PendingPredictions, name, lambda *given, read=read: learn_meanwhile(read, *given))
        other = copied(model, tmp_path)
        learner.join()
    assert saved(other, tmp_path) in (before, after)
    with model._learn_lock.turn, model._pending._lock.turn:  # a copy has locks of its own
        if saved(other, tmp_path) == before:
            other.learn_one(*LATE)
        assert saved(other, tmp_path) == after
    assert saved(model, tmp_path) == after


@learners
@copiers
def test_copies_are_states_that_a_single_thread_passes_through(
    copied: Copier, make: Callable[[], Any], tmp_path: Path
) -> None:
    def predict_and_learn(model: Any, after_step: Callable[[], object]) -> None:
        for t in range(40):
            model.predict_interval_one(row(t)[0])
            after_step()
            if t >= 3:
                model.learn_one(*row(t - 3))  # labels come late
                after_step()

    model, single, finished = make(), make(), Event()
    states = {saved(model, tmp_path)}
    predict_and_learn(single, lambda: states.add(saved(single, tmp_path)))

    def copy_again_and_again() -> list[Any]:
        copies = []
        while not finished.is_set():
            copies.append(copied(model, tmp_path))
            sleep(1e-4)
        return copies

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            copies = pool.submit(copy_again_and_again)
            predict_and_learn(model, lambda: None)
            finished.set()
    finally:
        sys.setswitchinterval(before)
    assert {saved(each, tmp_path) for each in copies.result()} <= states
    assert saved(model, tmp_path) == saved(single, tmp_path)


class SignalAt(InterruptAt):
    """Trace function that calls a signal handler after a number of lines."""

    def __init__(self, line: int, handler: Callable[[], Any]) -> None:
        super().__init__(line, ("/ellipack/river/", "/ellipack/learners/row_learners"))
        self.handler = handler

    def interrupt(self) -> None:
        self.handler()


@pytest.mark.parametrize("name", ["deepcopy", "save"])
def test_a_signal_handler_can_copy_a_model_that_learns(name: str, tmp_path: Path) -> None:
    original = waiting_for_a_label(LEARNERS["metric"])
    states = states_around_the_late_label(original, tmp_path)
    copies, refusals = list[Any](), list[ReentrantCallError]()

    def copy_or_be_refused(model: Any) -> None:
        try:
            copies.append(COPIERS[name](model, tmp_path))
        except ReentrantCallError as error:  # the handler interrupts a change of the pending predictions
            refusals.append(error)

    calls = -1
    while calls < len(copies) + len(refusals):
        calls = len(copies) + len(refusals)
        model = copy.deepcopy(original)
        before = sys.gettrace()
        sys.settrace(SignalAt(calls, partial(copy_or_be_refused, model)))
        try:
            model.learn_one(*LATE)
        finally:
            sys.settrace(before)
        assert len(model._pending) == 1
    assert {saved(each, tmp_path) for each in copies} == {*states}
    assert len(refusals) < len(copies)


def test_a_signal_handler_does_not_wait_for_a_thread_that_waits_for_the_interrupted_prediction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = waiting_for_a_label(LEARNERS["metric"])
    append, refusals = PendingPredictions._append, list[object]()
    learner = Thread(target=model.learn_one, args=LATE, daemon=True)

    def interrupted_append(*arguments: Any) -> None:
        learner.start()
        while model._learn_lock.turn.acquire(blocking=False):  # until the other thread learns
            model._learn_lock.turn.release()
        for copied in COPIERS.values():
            with pytest.raises(ReentrantCallError) as refusal:
                copied(model, tmp_path)
            refusals.append(refusal)
        append(*arguments)

    monkeypatch.setattr(PendingPredictions, "_append", interrupted_append)
    predictor = Thread(target=model.predict_one, args=({"a": 2.0},), daemon=True)
    predictor.start()
    predictor.join(30)
    learner.join(30)
    assert not predictor.is_alive()
    assert not learner.is_alive()
    assert len(refusals) == len(COPIERS)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_a_thread_learns_can_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = waiting_for_a_label(LEARNERS["metric"])
    before, after = states_around_the_late_label(model, tmp_path)
    start, reached, go_on = PendingPredictions.start_learning, Event(), Event()

    def paused_start(*arguments: Any) -> Any:
        found = start(*arguments)
        reached.set()
        go_on.wait(30)
        return found

    monkeypatch.setattr(PendingPredictions, "start_learning", paused_start)
    learner = Thread(target=model.learn_one, args=LATE)
    learner.start()
    assert reached.wait(30)
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # ends it if it hangs
        copies = [copied(model, tmp_path) for copied in COPIERS.values()]
        os._exit(0 if {saved(each, tmp_path) for each in copies} == {before} else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go_on.set()
    learner.join()
    assert saved(model, tmp_path) == after
