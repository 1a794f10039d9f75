"""Threads that learn, copy, pickle or fork at the same time."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pytest

import ellipack
from ellipack import (
    GradientOuterProduct,
    KeyedRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
    river,
)
from ellipack.errors import ReentrantCallError
from ellipack.learners.intervals import RowPredictions, empty_predictions
from ellipack.validation import Floats

SMALL = MetricConfig(growth=3.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(64, neighbors=8, config=SMALL),
    "keyed": lambda: KeyedRegressor(
        0,
        learner=MetricRegressor(16, neighbors=4, past=False, n_jobs=1, config=SMALL),
        pooled=MetricRegressor(16, neighbors=4, n_jobs=1, config=SMALL),
        max_learners=2,
    ),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8), anchors=20)),
    "rescaled": lambda: RescaledRegressor(PhasedRegressor()),
    "classifier": PackingClassifier,
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())
regressors = pytest.mark.parametrize(
    "make", [make for name, make in LEARNERS.items() if name != "classifier"], ids=list(LEARNERS)[:-1]
)
THREADS, ROWS = 4, 45


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def rows_of(thread: int) -> tuple[Floats, Floats]:
    """Return different rows for each thread. Their norms grow, so that ranges grow, too."""
    rng = np.random.default_rng(thread)
    X = rng.uniform(-1, 1, size=(ROWS, 3)) * np.linspace(0.01, 0.5, ROWS)[:, None]
    X[:, 0] = np.round(X[:, 0], 1)  # few keys
    return X, (X[:, 0] > 0).astype(np.float64)


def learn_in_threads(learner: Any) -> None:
    """Learn in threads that start at the same time, in small batches."""
    started = Barrier(THREADS)

    def learn(thread: int) -> None:
        X, y = rows_of(thread)
        started.wait()
        for first in range(0, ROWS, 7):
            learner.partial_fit(X[first : first + 7], y[first : first + 7])

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(learn, thread) for thread in range(THREADS)]:
            done.result()


def learned_rows(learner: Any) -> int | None:
    """Return the number of rounds, where the state counts them."""
    state = learner.state_
    return getattr(getattr(state, "inner", state), "clock", None)


@learners
def test_every_row_of_every_thread_is_learned_once(make: Callable[[], Any], tmp_path: Path) -> None:
    for _ in range(3):  # the threads compete for the first row, too
        learner = make()
        learn_in_threads(learner)
        assert learned_rows(learner) in (None, THREADS * ROWS)
        if isinstance(learner, PhasedRegressor):
            everything = np.sort(np.concatenate([rows_of(thread)[0][:, 0] for thread in range(THREADS)]))
            np.testing.assert_array_equal(np.sort(learner.state_.rows[:, 0]), everything)
        learner.save(tmp_path / "model")
        probes = rows_of(9)[0]
        assert ellipack.load(tmp_path / "model").predict(probes).tolist() == learner.predict(probes).tolist()


def learn_late(learner: Any, X: Floats, y: Floats) -> None:
    learner.learn_late(X, y, learner.predict_each(X))


def learn_into(learner: Any, X: Floats, y: Floats) -> None:
    learner.learn_into(X, y, empty_predictions(len(y), with_intervals=True))


def learn_on_workers(learner: Any, X: Floats, y: Floats) -> None:
    """Learn on the workers of an executor, where the learner can."""
    if isinstance(learner, KeyedRegressor):
        with ThreadPoolExecutor(1) as executor:
            learner.progressive_on(executor, X, y, partitions=2)
    else:
        learner.progressive(X, y, coverage=0.9)


def partial_fit(learner: Any, X: Floats, y: Floats) -> None:
    learner.partial_fit(X, y)


WAYS = (partial_fit, learn_late, learn_into, learn_on_workers)


@regressors
@pytest.mark.parametrize("ways", [*((way, way) for way in WAYS), WAYS], ids=[*(way.__name__ for way in WAYS), "all"])
def test_every_row_is_learned_once_whichever_methods_threads_call(
    make: Callable[[], Any], ways: tuple[Callable[[Any, Floats, Floats], None], ...]
) -> None:
    for _ in range(3):
        learner, started = make(), Barrier(len(ways))

        def learn(thread: int) -> None:
            X, y = rows_of(thread)
            started.wait()  # noqa: B023
            for first in range(0, ROWS, 9):
                ways[thread](learner, X[first : first + 9], y[first : first + 9])  # noqa: B023

        with ThreadPoolExecutor(len(ways)) as pool:
            for done in [pool.submit(learn, thread) for thread in range(len(ways))]:
                done.result()
        assert learner.n_rounds == len(ways) * ROWS


class PausedPredictions:
    """Predictions whose reader waits for another thread, or for a tenth of a second if that thread waits for it."""

    def __init__(self, predictions: RowPredictions) -> None:
        self.predictions, self.are_read, self.continues = predictions, Event(), Event()

    def __getattr__(self, name: str) -> Any:
        self.are_read.set()
        self.continues.wait(0.1)
        return getattr(self.predictions, name)


@regressors
@pytest.mark.parametrize("is_fitted", [False, True])
def test_a_fit_while_another_thread_learns_is_not_undone(make: Callable[[], Any], is_fitted: bool) -> None:
    X, y = rows_of(0)
    learner = make().fit(X, y) if is_fitted else make()
    predictions = PausedPredictions(learner.predict_each(X[:5]))

    def fit() -> None:
        predictions.are_read.wait()
        learner.fit(np.column_stack([X, y / 10]), y)
        predictions.continues.set()

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(fit), pool.submit(learner.learn_late, X[:5], y[:5], predictions)]:
            done.result()
    assert (learner.n_features_in_, learner.n_rounds) == (4, ROWS)


@learners
@pytest.mark.parametrize("copy", [deepcopy, lambda each: pickle.loads(pickle.dumps(each))], ids=["copy", "pickle"])
def test_copies_are_taken_between_two_rounds(make: Callable[[], Any], copy: Callable[[Any], Any]) -> None:
    X, y = rows_of(0)
    probes, single, states = rows_of(9)[0][::10], make(), set()
    for t in range(ROWS):
        states.add(single.partial_fit(X[t : t + 1], y[t : t + 1]).predict(probes).tobytes())
    learner, finished = make().partial_fit(X[:1], y[:1]), Event()

    def copy_again_and_again() -> list[Any]:
        copies = [copy(learner)]
        while not finished.is_set():
            copies.append(copy(learner))
        return copies

    with ThreadPoolExecutor(2) as pool:
        copying = [pool.submit(copy_again_and_again) for _ in range(2)]
        for first in range(1, ROWS, 13):
            learner.partial_fit(X[first : first + 13], y[first : first + 13])
        finished.set()
        copies = [each for done in copying for each in done.result()]
    assert {each.predict(probes).tobytes() for each in copies} <= states
    copies[0].partial_fit(X, y)  # a copy is free


@pytest.mark.parametrize("make", [river.MetricRegressor, river.PackingRegressor, river.PhasedRegressor])
def test_rivers_models_learn_every_row_of_every_thread(make: Callable[[], Any], tmp_path: Path) -> None:
    model, started = make(), Barrier(THREADS)

    def learn(thread: int) -> None:
        X, y = rows_of(thread)
        started.wait()
        for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
            model.learn_one({"a": row[0], f"of {thread}": row[1], f"of {thread} from {t // 20}": row[2]}, label)
            model.predict_one({"a": 0.1})

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(learn, thread) for thread in range(THREADS)]:
            done.result()
    state = model._learner.state
    assert getattr(state, "inner", state).clock == THREADS * ROWS
    assert len(model.feature_names) == 1 + 4 * THREADS
    model.save(tmp_path / "model")
    assert river.load(tmp_path / "model").predict_one({"a": 0.1}) == model.predict_one({"a": 0.1})


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@learners
def test_a_signal_handler_cannot_change_a_learner_that_learns(make: Callable[[], Any]) -> None:
    X, y = rows_of(0)
    learner, refused = make().partial_fit(X, y), []

    def learn_more(*_: object) -> None:
        try:
            learner.partial_fit(X[:1], y[:1])
        except ReentrantCallError as error:
            refused.append(str(error))

    before = signal.signal(signal.SIGALRM, learn_more)
    signal.setitimer(signal.ITIMER_REAL, 1e-3, 1e-3)
    try:
        while not refused:
            learner.partial_fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "while it learns" in refused[0]


FORKS = """
import os, signal, sys, tempfile, threading, warnings
import numpy as np
from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, load
from ellipack import MetricRegressor, PackingRegressor, PhasedRegressor

warnings.simplefilter("ignore", DeprecationWarning)  # Python warns that children of threads may hang
sys.setswitchinterval(1e-6)
rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(3000, 3))
y = (X[:, 0] > 0).astype(float)
small = MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
slopes = GradientOuterProduct(LocalSlopes(8), anchors=20)  # so that the end of a phase is quick
for make in (
    lambda: MetricRegressor(200, neighbors=8, config=small), PackingRegressor, lambda: PhasedRegressor(gop=slopes)
):
    learner, finished = make().fit(X[:50], y[:50]), threading.Event()

    def learn():
        while not finished.is_set():
            learner.partial_fit(X[:500], y[:500])

    def predict():
        while not finished.is_set():
            learner.predict(X[:100])

    threads = [threading.Thread(target=work, daemon=True) for work in (learn, learn, predict)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # ends a child that hangs
            learner.predict(X[:5])
            learner.partial_fit(X[:30], y[:30])
            with tempfile.TemporaryDirectory() as folder:
                learner.save(os.path.join(folder, "model"))
                same = load(os.path.join(folder, "model")).predict(X[:5]).tolist() == learner.predict(X[:5]).tolist()
            os._exit(0 if same else 3)
        status = os.waitpid(child, 0)[1]
        assert status == 0, f"the child ended with status {status}"
    finished.set()
    for thread in threads:
        thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_forked_while_threads_learn_can_predict_learn_and_save() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
