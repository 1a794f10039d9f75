from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import MetricCore
from ellipack.learners.metric import learner, phase_end, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import COUNT, MIN_PHASE_ROUNDS, OUTLIERS, SQUARES, project_rows
from ellipack.learners.row_learners import MetricRowLearner
from ellipack.theory.spectrum import rank_starts
from tests.learners.metric.learners import bits, new_state, smooth_stream, trained
from tests.strategies import seeds


def test_scales_are_frozen_within_a_phase_and_set_at_its_end() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [3.0, 0.1] + [5.0, -1.0]
    state = new_state(2, 2, 8, 100)
    ends = []
    for x in X:
        phases, before = len(state.phase.summaries), state.core.parts().plain.views[0].scale
        learner.learn(state, x[None], [x[0]])
        view = state.core.parts().plain.views[0]
        if len(state.phase.summaries) == phases:
            np.testing.assert_array_equal(view.scale, before)
        else:
            done = X[: state.clock]
            np.testing.assert_allclose(view.shift, done.mean(axis=0))
            np.testing.assert_allclose(view.scale, done.std(axis=0))
            ends.append(state.clock)
    assert ends == [phase.end for phase in state.phase.summaries] == [4, 8, 12, 18, 27, 40, 60]  # half as long again


@pytest.mark.parametrize("growth", [1.05, 2.0, 10.0])
def test_phases_grow_by_the_configured_factor(growth: float) -> None:
    X, y = smooth_stream(250)
    state = new_state(3, 1, 8, config=MetricConfig(growth=growth, validation_points=16, pool=64))
    learner.learn(state, X, y)
    ends = [0, *(phase.end for phase in state.phase.summaries), state.phase.end]
    for start, end in pairwise(ends):
        assert end == start + max(MIN_PHASE_ROUNDS, int((growth - 1) * start))
    assert [phase.number for phase in state.phase.summaries] == [*range(1, len(ends) - 1)]


@pytest.mark.parametrize("views", [1, 2])
def test_next_phase_projects_centers_again_and_keeps_their_data(views: int) -> None:
    X, y = smooth_stream(121)
    state = trained(X[:120], y[:120], views)
    before = state.core.parts().plain
    state.phase = phase_end.next_phase(state.phase, state.core.parts(), state.config, state.random_state)
    after = state.core.parts().plain
    for name in ("rows", "label_sums", "label_counts", "round_sums"):
        assert getattr(after.centers, name).tobytes() == getattr(before.centers, name).tobytes()
    assert after.clock == before.clock
    for view, metric, coordinates in zip(after.views, state.phase.plain.metrics, after.index.coordinates, strict=True):
        assert coordinates.tobytes() == project_rows(view, after.centers.rows).tobytes()
        assert view.directions.tobytes() == metric.directions.tobytes()
        assert not view.gop.any()
    assert after.packing.rank_starts.tolist() == rank_starts(state.phase.plain.metrics[0].eigenvalues).tolist()
    assert (after.packing.clock, len(after.packing.coordinates)) == (0, 0)
    assert after.packing.coordinate_scale == pytest.approx(np.linalg.norm(after.index.coordinates[0], axis=1).max())
    assert state.phase.summaries[-1].n_centers == len(before.centers)
    np.testing.assert_array_equal(state.phase.summaries[-1].expert_weights, before.aggregation.experts.weights())


def test_outliers_count_half_in_the_next_phase() -> None:
    X, y = smooth_stream(100)
    state = trained(X, y)
    X[0], y[0] = 1e9, 1e9
    learner.learn(state, X[:1], y[1:2])
    learner.learn(state, X[1:2], y[:1])
    before = state.core.parts().plain
    state.phase = phase_end.next_phase(state.phase, state.core.parts(), state.config, state.random_state)
    after = state.core.parts().plain
    assert before.label_statistics[OUTLIERS] >= 1
    assert after.label_statistics[OUTLIERS] == before.label_statistics[OUTLIERS] / 2
    np.testing.assert_array_equal(after.feature_statistics[OUTLIERS], before.feature_statistics[OUTLIERS] / 2)
    assert (before.feature_statistics[OUTLIERS] >= 1).all()


def test_stack_starts_when_labels_vary_and_restarts_when_variance_grows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(np.arange(400) < 20, 5.0, 5.0 + 1e-4 * rng.normal(size=400))
    y[200:] += rng.normal(size=200)
    state = new_state(2, 1, 8)

    def strength() -> float:
        return float(state.core.parts().plain.aggregation.stack.inverse.diagonal().max())

    learner.learn(state, X[:18], y[:18])
    assert strength() == 0.0
    learner.learn(state, X[18:190], y[18:190])
    started = strength()
    assert started > 1e4
    learner.learn(state, X[190:], y[190:])
    parts = state.core.parts().plain
    variance = parts.label_statistics[SQUARES] / parts.label_statistics[COUNT]
    assert 0 < strength() < 1e4 / (50 * variance) < started


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("what", ["next_phase", "evict_redundant_centers"])
def test_interrupt_in_last_round_of_a_phase_leaves_the_state_before_it(
    rows: int, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The learner is what it was after the last whole round; it saves, predicts and goes on."""
    X, y = smooth_stream(200)
    state, whole = new_state(3, 2, 8, 80), new_state(3, 2, 8, 80)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    done, interrupted = 0, 0
    while done < len(X):
        part = slice(done, done + rows)
        with monkeypatch.context() as patched:
            patched.setattr(learner, what, interrupt)
            try:
                learner.learn(state, X[part], y[part])
            except KeyboardInterrupt:
                interrupted += 1
        if state.clock > done:
            learner.learn(whole, X[done : state.clock], y[done : state.clock])
        assert bits(state) == bits(whole)
        done = state.clock
        if done < len(X):
            restored = serialization.from_archive(serialization.to_archive(state), 3) if done else state
            assert bits(restored) == bits(state)
            MetricRowLearner(state).learn(X[done].tolist(), y[done])
            learner.learn(whole, X[done : done + 1], y[done : done + 1])
            done += 1
    assert interrupted > 1
    assert bits(state) == bits(whole)


def test_interrupt_during_phase_end_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = smooth_stream(60)
    state = trained(X, y)
    phase = state.phase

    def interrupt(*_: object) -> MetricCore:
        raise KeyboardInterrupt

    monkeypatch.setattr(phase_end, "MetricCore", interrupt)
    with pytest.raises(KeyboardInterrupt):
        phase_end.next_phase(state.phase, state.core.parts(), state.config, state.random_state)
    assert state.phase is phase
    assert np.isfinite(predict(state, X)).all()


@settings(max_examples=10)
@given(st.sampled_from([1e-150, 1e-6, 1e6, 1e130]), st.integers(1, 2), seeds)
def test_error_hardly_depends_on_units_of_features(size: float, views: int, seed: int) -> None:
    X, y = smooth_stream(150, seed=seed)
    one, other = new_state(3, views, 8), new_state(3, views, 8)
    errors = np.std(learner.learn(one, X, y)[60:] - y[60:])
    scaled = np.std(learner.learn(other, X * size, y)[60:] - y[60:])
    assert np.isfinite(scaled)
    if 1e-10 < size < 1e10:
        assert scaled < 1.3 * errors + 0.05
