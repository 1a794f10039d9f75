"""While one thread learns, others predict and save; they observe only states between two rounds."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.validation import Floats
from tests.entry_points.learners import stream
from tests.fuzz.strategies import n_examples

ROWS = n_examples(400)
PREDICTORS = 4
PROBES = stream(9, seed=9)[0]
SMALL = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=16, pool=64)

LEARNERS: dict[str, Callable[[], Any]] = {
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8), anchors=30)),
    "metric": lambda: MetricRegressor(neighbors=8, config=SMALL),
    "metric, full": lambda: MetricRegressor(96, neighbors=8, views=2, config=SMALL),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def predictions_of(learner: Any) -> bytes:
    predictions: Floats = learner.predict(PROBES)
    return predictions.tobytes()


def all_states(learner: Any, X: Floats, y: Floats) -> list[bytes]:
    """Learn rows one by one; return the predictions for the probes after each."""
    return [predictions_of(learner.partial_fit(x[None], [label])) for x, label in zip(X, y, strict=True)]


@learners
def test_threads_observe_only_states_between_rounds(make: Callable[[], Any], tmp_path: Path) -> None:
    X, y = stream(ROWS, seed=4)
    states = all_states(make(), X, y)
    learner, done_learning, started = make().fit(X[:1], y[:1]), Event(), Barrier(PREDICTORS + 2)

    def predict() -> list[bytes]:
        made = [predictions_of(learner)]
        started.wait()
        while not done_learning.is_set():
            made.append(predictions_of(learner))
        return [*made, predictions_of(learner)]

    def save(path: Path) -> list[bytes]:
        started.wait()
        found = []
        while not done_learning.is_set():
            learner.save(path)
            found.append(predictions_of(ellipack.load(path)))
        return found

    with ThreadPoolExecutor(PREDICTORS + 1) as pool:
        predicting = [pool.submit(predict) for _ in range(PREDICTORS)]
        saving = pool.submit(save, tmp_path / "model")
        started.wait()
        try:
            for start in range(1, ROWS, 97):
                learner.partial_fit(X[start : start + 97], y[start : start + 97])
        finally:
            done_learning.set()
        observed = [each.result() for each in predicting]
        saved = saving.result()
    known = set(states)
    for observations in [*observed, saved]:
        assert set(observations) <= known
    for observations in observed:
        assert (observations[0], observations[-1]) == (states[0], states[-1])
        # A thread never observes an earlier state after a later one.
        at = -1
        for each in observations:
            at = next(t for t in count(max(0, at)) if states[t] == each)


def test_concurrent_saves_to_one_file_leave_a_complete_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    short, long = (PackingRegressor().fit(*stream(n)) for n in (3, 3000))
    known = {predictions_of(short), predictions_of(long)}

    def save(learner: Any) -> None:
        for _ in range(20):
            learner.save(path)
            assert predictions_of(ellipack.load(path)) in known

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(save, learner) for learner in (short, long, short, long)]:
            done.result()
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


@learners
def test_an_error_in_one_thread_does_not_affect_others(make: Callable[[], Any]) -> None:
    X, y = stream(60)
    learner = make().fit(X, y)
    expected, bad = predictions_of(learner), np.where(np.eye(60, 3) > 0, np.nan, X)

    def learn_invalid_rows() -> None:
        for _ in range(20):
            with pytest.raises(ellipack.errors.NonFiniteError):
                learner.partial_fit(bad, y)

    with ThreadPoolExecutor(3) as pool:
        refusing = pool.submit(learn_invalid_rows)
        predicting = [pool.submit(lambda: {predictions_of(learner) for _ in range(20)}) for _ in range(2)]
        refusing.result()
        assert [each.result() for each in predicting] == [{expected}, {expected}]
