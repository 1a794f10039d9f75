"""Long predictions: signals are handled between short calls, and all rows are predicted from the same state."""

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    KernelDifferences,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    MetricRegressor,
    PackingClassifier,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
    neighbors,
    parallel,
)
from ellipack.learners.metric import call_sizes
from ellipack.learners.short_calls import predict_in_short_calls, row_slices
from ellipack.neighbors import NeighborIndex

RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-0.5, 0.5, size=(40, 2)), RNG.random(40)
QUERIES = RNG.uniform(-0.5, 0.5, size=(3000, 2))

LEARNERS: dict[str, Callable[[], Any]] = {
    "metric": lambda: MetricRegressor(n_jobs=1),
    "metric without past": lambda: MetricRegressor(past=False, n_jobs=2),
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(5))),
    "rescaled": lambda: RescaledRegressor(PackingRegressor()),
    "locally adaptive": LocallyAdaptiveRegressor,
    "intrinsic dimension": IntrinsicDimensionRegressor,
}
PREDICTIONS: dict[str, Callable[[Any], Any]] = {
    "predict": lambda learner: learner.predict(X),
    "predict_interval": lambda learner: np.stack(learner.predict_interval(X, coverage=0.8)),
}
NEXT: dict[str, Callable[[Any], Any]] = {
    "predict_next": lambda learner: learner.predict_next(X, labels=np.where(Y > 0.5, Y, np.nan)),
    "its intervals": lambda learner: np.stack(learner.predict_next(X, coverage=0.8)[1]),
    "partial_dependence": lambda learner: learner.partial_dependence(1).mean,
}


@pytest.fixture(autouse=True)
def without_garbage_collection() -> Iterator[None]:
    """Collect no garbage: hypothesis measures collections in a callback, and an interrupt in there is lost."""
    gc.disable()
    yield
    gc.enable()


def shorten_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut calls to three rows."""
    monkeypatch.setattr(call_sizes, "_MAX_PREDICTIONS", 3)
    monkeypatch.setattr(parallel, "_MAX_ROWS_PER_CALL", 3)


def cases() -> Iterator[Any]:
    for name, make in LEARNERS.items():
        calls = {**PREDICTIONS, **NEXT} if name.startswith("metric") else PREDICTIONS
        for kind, predict in calls.items():
            yield pytest.param(make, predict, id=f"{name}-{kind}")


@pytest.mark.parametrize(("make", "predict"), list(cases()))
def test_short_calls_predict_the_same_bits(
    make: Callable[[], Any], predict: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = make()
    learner.progressive(X, Y, coverage=0.8)
    expected = predict(learner)
    shorten_calls(monkeypatch)
    assert predict(learner).tobytes() == expected.tobytes()


def test_a_classifier_predicts_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = PackingClassifier().fit(X, X[:, 0] < Y)
    expected = learner.predict_proba(X)
    shorten_calls(monkeypatch)
    assert learner.predict_proba(X).tobytes() == expected.tobytes()


def test_a_follower_continues_over_short_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = MetricRegressor().fit(X, Y)
    expected = learner.predict_next(X, labels=Y)
    shorten_calls(monkeypatch)
    follower = learner.follow()
    found = [follower.predict_next(X[part], labels=Y[part]) for part in (slice(0, 7), slice(7, 9), slice(9, 40))]
    assert np.concatenate(found).tobytes() == expected.tobytes()


class InterruptedCore:
    """Core that sends a signal to its own process in a call.

    Later calls are slow, so that the main thread has time to handle the signal while other threads search.
    """

    def __init__(self, core: Any, at: int, calls: list[int]) -> None:
        self.core, self.at, self.calls = core, at, calls
        self.numbers = count(1)

    def __len__(self) -> int:
        return len(self.core)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.core, name)
        if name == "copy":
            return lambda: InterruptedCore(found(), self.at, self.calls)
        if name not in ("predict", "predict_next", "nearest", "k_nearest", "within", "insert"):
            return found

        def call(*arguments: Any) -> Any:
            number = next(self.numbers)
            self.calls.append(len(arguments[0]))
            result = found(*arguments)
            if number == self.at:
                os.kill(os.getpid(), signal.SIGINT)
            elif number > self.at:
                time.sleep(0.001)
            return result

        return call


def interrupt(learner: Any, at: int) -> list[int]:
    """Let the core of a learner send a signal; return the list of its calls."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore it
    calls: list[int] = []
    state = learner.state_
    if isinstance(learner, MetricRegressor):
        state.phase = replace(state.phase, core=InterruptedCore(state.core, at, calls))
        return calls
    while not hasattr(state, "learn_lock") or hasattr(state, "inner") or hasattr(state, "packing"):
        state = state.inner if hasattr(state, "inner") else state.packing
    state.parts = state.parts[0], InterruptedCore(state.parts[1], at, calls)
    return calls


@pytest.mark.parametrize(("make", "predict"), list(cases()))
def test_signals_are_handled_between_calls(
    make: Callable[[], Any], predict: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_calls(monkeypatch)
    learner = make()
    learner.progressive(X, Y, coverage=0.8)
    calls = interrupt(learner, 2)
    with pytest.raises(KeyboardInterrupt):
        predict(learner)
    assert len(calls) == 2


def test_an_interrupted_follower_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_calls(monkeypatch)
    learner = MetricRegressor().fit(X, Y)
    expected = learner.predict_next(X, labels=Y)
    calls = interrupt(learner, 4)
    follower = learner.follow()
    first = follower.predict_next(X[:6], labels=Y[:6])
    with pytest.raises(KeyboardInterrupt):
        follower.predict_next(X[6:], labels=Y[6:])
    assert len(calls) == 4
    rest = follower.predict_next(X[6:], labels=Y[6:])
    assert np.concatenate([first, rest]).tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    "search",
    [
        lambda index, n_jobs: index.nearest(QUERIES, n_jobs=n_jobs),
        lambda index, n_jobs: index.k_nearest(QUERIES, 3, n_jobs=n_jobs),
        lambda index, n_jobs: index.within(QUERIES, 0.2, n_jobs=n_jobs),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_search_heeds_signals(search: Callable[..., Any], n_jobs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    index: Any = NeighborIndex.build(X)
    expected = search(index, 1)
    shorten_calls(monkeypatch)
    assert all((a == b).all() for a, b in zip(search(index, n_jobs), expected, strict=True))
    calls: list[int] = []
    index._tree = InterruptedCore(index._tree, 2, calls)
    with pytest.raises(KeyboardInterrupt):
        search(index, n_jobs)
    assert max(calls) <= 3
    assert len(calls) < 1000  # of all queries


def test_an_interrupted_insertion_leaves_the_first_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbors, "_INSERTED_PER_CALL", 3)
    index: Any = NeighborIndex.build(X)
    tree, index._tree = index._tree, InterruptedCore(index._tree, 2, [])
    with pytest.raises(KeyboardInterrupt):
        index.insert(QUERIES[:10])
    index._tree = tree
    assert index.points().tolist() == [*X.tolist(), *QUERIES[:6].tolist()]
    index.insert(QUERIES[6:10])
    assert index.points().tolist() == [*X.tolist(), *QUERIES[:10].tolist()]


@pytest.mark.parametrize("estimator", [LocalSlopes(5), KernelDifferences(mass_scale=0.0)])
def test_gradients_are_estimated_in_short_calls(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = estimator.gradients(X, Y)
    sizes: list[int] = []
    monkeypatch.setattr(parallel, "_MAX_WORK_PER_CALL", 1.0)
    split = parallel.for_row_slices

    def recorded(work: Callable[[slice], object], *arguments: Any) -> None:
        def work_and_record(part: slice) -> None:
            sizes.append(part.stop - part.start)
            work(part)

        split(work_and_record, *arguments)

    monkeypatch.setattr(f"{type(estimator).__module__}.for_row_slices", recorded)
    assert estimator.gradients(X, Y).tobytes() == expected.tobytes()
    assert sizes == [1] * 40


class CountingCore:
    """Core whose predictions are its clock, and that learns while it predicts."""

    def __init__(self, learns_at: int, clock: int = 7) -> None:
        self.clock, self.learns_at, self.calls = clock, learns_at, 0

    def copy(self) -> "CountingCore":
        return CountingCore(-1, self.clock)

    def predict(self, out: list[int], part: slice) -> None:
        out[part] = [self.clock] * (part.stop - part.start)
        self.calls += 1
        if self.calls == self.learns_at:
            self.clock += 1


@pytest.mark.parametrize("learns_at", [-1, 1, 2, 3])
def test_all_rows_are_predicted_from_the_same_state(learns_at: int) -> None:
    core, out = CountingCore(learns_at), [0] * 8
    predict_in_short_calls(core, lambda same, part: same.predict(out, part), 8, 3)
    assert out == [7 if learns_at == -1 else 8] * 8
    assert core.calls == (3 if learns_at == -1 else learns_at)


def test_a_short_prediction_is_one_call() -> None:
    core, out = CountingCore(1), [0] * 8
    predict_in_short_calls(core, lambda same, part: same.predict(out, part), 8, 8)
    assert (core.calls, out) == (1, [7] * 8)


def test_slices_cover_all_rows() -> None:
    assert row_slices(0, 4) == []
    assert [len(range(9)[part]) for part in row_slices(9, 4)] == [4, 4, 1]
