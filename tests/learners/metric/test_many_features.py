"""Bounds of the cost of a call of the core, and of the number of features."""

from dataclasses import replace
from threading import Barrier
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ellipack import MetricRegressor, river
from ellipack._core import CenterMemory, CoreParts, FeatureView, MetricCore
from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.metric import call_sizes, learner, phase_end, serialization
from ellipack.learners.metric.call_sizes import predictions_per_call, rounds_per_call
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.initial_state import MAX_FEATURES, LearnerSize, initial_state
from ellipack.learners.metric.metric_selection import ValidationSet
from ellipack.learners.metric.state import MetricState, replace_parts
from ellipack.validation import Floats, Ints
from tests.learners.metric.learners import bits, new_state

SIZE = LearnerSize(views=1, neighbors=8, max_centers=100)


class RecordingCore:
    """Records the number of rounds of each call of `learn`."""

    def __init__(self, core: MetricCore) -> None:
        self.core = core
        self.calls: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def learn(self, *arguments: Any) -> int:
        self.calls.append(self.core.learn(*arguments))
        return self.calls[-1]


@pytest.mark.parametrize(
    ("d", "neighbors", "rounds", "predictions"),
    [(2, 32, 64, 256), (400, 2, 64, 256), (1000, 2, 15, 256), (2, 512, 1, 1), (2, 200, 7, 7)],
)
def test_a_call_has_fewer_rows_if_they_cost_more(d: int, neighbors: int, rounds: int, predictions: int) -> None:
    core = new_state(d, neighbors=neighbors).core
    assert (rounds_per_call(core), predictions_per_call(core)) == (rounds, predictions)


def test_learning_is_split_into_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_sizes, "_MAX_ROUNDS", 2)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 50)), rng.normal(size=60)
    state, whole = new_state(50), new_state(50)
    learner.learn(state, X[:40], y[:40])
    core: Any = RecordingCore(state.core)
    state.phase = replace(state.phase, core=core, end=100)
    learner.learn(state, X[40:45], y[40:45])
    assert core.calls == [2, 2, 1]
    monkeypatch.undo()
    learner.learn(whole, X[:45], y[:45])
    state.phase = replace(state.phase, core=core.core, end=whole.phase.end)
    assert bits(state) == bits(whole)


def test_candidates_are_scored_on_fewer_centers_if_there_are_many_features(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def record(standard: Floats, *others: Any) -> ValidationSet:
        sizes.append(len(standard))
        return ValidationSet(standard, *others)

    monkeypatch.setattr(phase_end, "ValidationSet", record)
    monkeypatch.setattr(phase_end, "_MAX_POOL_ENTRIES", 50 * 30)
    rng = np.random.default_rng(0)
    state = new_state(50, config=MetricConfig(validation_points=8))
    learner.learn(state, rng.normal(size=(60, 50)), rng.normal(size=60))
    assert sizes == [8, 12, 18, 27, 30, 30]


def test_threads_that_project_centers_change_no_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phase_end, "_MIN_PRODUCTS_FOR_THREADS", 1)
    all_threads = Barrier(3)

    class RecordingCenters:
        def __init__(self, centers: CenterMemory) -> None:
            self.centers = centers

        def __getattr__(self, name: str) -> Any:
            return getattr(self.centers, name)

        def __len__(self) -> int:
            return len(self.centers)

        def project(self, *arguments: Any) -> Floats:
            all_threads.wait(timeout=60)
            return self.centers.project(*arguments)

    state = new_state(50)
    rng = np.random.default_rng(0)
    learner.learn(state, rng.normal(size=(40, 50)), rng.normal(size=40))
    parts, [view] = state.core.parts().plain, state.core.parts().plain.views
    recording: Any = SimpleNamespace(centers=RecordingCenters(parts.centers))
    end = phase_end._PhaseEnd(recording, state.phase.plain, state.core.settings, state.config, rng, 3, 10)
    places = np.arange(1, 40)
    projected = phase_end._project(end, view, places, view.directions)
    assert projected.tobytes() == parts.centers.project(view, places, view.directions).tobytes()


@pytest.mark.parametrize("kind", [MetricRegressor, river.MetricRegressor])
def test_there_are_fewer_centers_by_default_if_there_are_many_features(kind: Any) -> None:
    for d, expected in ((3, 100_000), (60, 100_000), (300, 20_000)):
        assert kind()._size(d).checked().max_centers == expected
    assert kind(50_000)._size(300).max_centers == 50_000
    assert MetricRegressor().fit(np.ones((1, 200)), np.ones(1)).max_centers_ == 30_000


def test_one_in_eight_of_the_scored_centers_is_a_validation_point(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def record(standard: Floats, labels: Floats, validation: Ints, neighbors: int) -> ValidationSet:
        counts.append((len(standard), len(validation)))
        return ValidationSet(standard, labels, validation, neighbors)

    monkeypatch.setattr(phase_end, "ValidationSet", record)
    monkeypatch.setattr(phase_end, "_MIN_VALIDATION_POINTS", 2)
    monkeypatch.setattr(phase_end, "_MAX_POOL_ENTRIES", 50 * 30)
    rng = np.random.default_rng(0)
    state = new_state(50, config=MetricConfig(validation_points=20))
    learner.learn(state, rng.normal(size=(60, 50)), rng.normal(size=60))
    assert counts == [(8, 2), (12, 2), (18, 2), (27, 3), (30, 3), (30, 3)]


def with_max_slopes(state: MetricState, count: int) -> None:
    """Let the only view keep at most so many slopes."""
    parts = state.core.parts()
    [view] = parts.plain.views
    arrays = view.knots, view.shift, view.scale, view.directions, view.gop
    plain = replace_parts(parts.plain, views=[FeatureView(*arrays, view.fit_dimension, count)])
    core = MetricCore(state.core.settings, CoreParts(plain, parts.past, parts.importance))
    state.phase = replace(state.phase, core=core)


def test_slopes_beyond_those_kept_are_summed() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 300)), rng.normal(size=90)
    slopes, sums = new_state(300), new_state(300)
    for state in (slopes, sums):
        learner.learn(state, X[:60], y[:60])
    with_max_slopes(slopes, 7)
    with_max_slopes(sums, 0)
    for count, rows in ((5, slice(60, 65)), (300, slice(65, 80))):
        for state in (slopes, sums):
            learner.learn(state, X[rows], y[rows])
        found, expected = (state.core.parts().plain.views[0].gop for state in (slopes, sums))
        assert found.shape == (count, 300)
        np.testing.assert_allclose(found if count == 300 else found.T @ found, expected, rtol=1e-12, atol=1e-12)


def test_slopes_are_saved() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(70, 100)), rng.normal(size=70)
    state = new_state(100)
    learner.learn(state, X[:45], y[:45])
    assert state.core.parts().plain.views[0].gop.shape == (5, 100)
    resumed = serialization.from_archive(serialization.to_archive(state), 100)
    for each in (state, resumed):
        learner.learn(each, X[45:], y[45:])
    assert bits(resumed) == bits(state)


@pytest.mark.parametrize("max_slopes", [5, 19, 100, 10**9])
def test_files_with_too_few_or_too_many_slopes_for_a_phase_are_refused(max_slopes: int) -> None:
    rng = np.random.default_rng(0)
    state = new_state(100)
    learner.learn(state, rng.normal(size=(45, 100)), rng.normal(size=45))
    saved = serialization.to_archive(state)
    assert saved.facts["plain"]["view0"]["max_slopes"] == 20
    saved.facts["plain"]["view0"]["max_slopes"] = max_slopes
    with pytest.raises(ModelFileError, match="max_slopes"):
        serialization.from_archive(saved, 100)


@pytest.mark.parametrize("d", [MAX_FEATURES + 1, 50_000, 10**9])
def test_too_many_features_are_refused(d: int) -> None:
    with pytest.raises(DomainError, match=f"at most {MAX_FEATURES} features, got {d} .*: drop columns, or hash them"):
        initial_state(d, SIZE, 0, MetricConfig())


def test_too_many_added_features_are_refused_and_change_nothing() -> None:
    state = new_state(2)
    learner.learn(state, [[0.0, 1.0]], [1.0])
    before = bits(state)
    with pytest.raises(DomainError, match=f"at most {MAX_FEATURES} features, got {MAX_FEATURES + 1}"):
        add_features(state, np.ones(MAX_FEATURES - 1))
    assert bits(state) == before
