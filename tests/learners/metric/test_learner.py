import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from ellipack._core import MetricCore
from ellipack.errors import DomainError, NonFiniteError, ShapeError
from ellipack.learners.aggregation import regret_bound
from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.predictions import predict
from ellipack.learners.metric.state import COUNT, MetricState
from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats
from tests.learners.metric.learners import bits, new_state, smooth_stream, trained
from tests.strategies import cuts, seeds

SMALL = MetricConfig(validation_points=8, pool=16)
ROWS = 40


def streams(kind: str, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, 3))
    y = {
        "smooth": np.sin(2 * X[:, 0]) + 0.3 * X[:, 1],
        "noise": rng.normal(size=n),
        "jumps": np.where(rng.random(n) < 0.05, 1e3, 1.0) * rng.normal(size=n),
        "turns": np.where(np.arange(n) % 40 < 20, 1.0, -1.0) * X[:, 0],
    }[kind]
    return X, y


class RegretTracker:
    """Sums over phases of the regrets of an aggregation and of their bounds."""

    def __init__(self, experts: int) -> None:
        self.experts = experts
        self.regret, self.bound = np.zeros(experts), np.zeros(experts)
        self.restart(np.full(experts, 1 / experts))

    def restart(self, priors: Floats) -> None:
        self.priors, self.squares, self.scale, self.first, self.rounds = priors, np.zeros(self.experts), 0.0, 0.0, 0

    def record(self, predictions: Floats, prediction: float, label: float) -> None:
        r = 2 * (prediction - label) * (prediction - predictions)
        larger = max(self.scale, float(np.abs(r).max()))
        if self.scale > 0:
            self.squares += (r * self.scale / larger) ** 2
        self.scale, self.first, self.rounds = larger, self.first or larger, self.rounds + 1
        self.regret += (prediction - label) ** 2 - (predictions - label) ** 2

    def close(self) -> None:
        if self.scale > 0:
            self.bound += [
                regret_bound(
                    prior=float(self.priors[k]), squares=float(self.squares[k]), experts=self.experts,
                    rounds=self.rounds, scale=self.scale, first_scale=self.first,
                )
                for k in range(self.experts)
            ]  # fmt: skip


@settings(max_examples=12)
@given(st.sampled_from(["smooth", "noise", "jumps", "turns", "adversary"]), st.integers(1, 2), seeds)
def test_regret_bound_holds_for_the_learner(kind: str, views: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = streams("noise" if kind == "adversary" else kind, 150, rng)
    state = new_state(3, views)
    experts, top = RegretTracker(len(expert_names(views))), RegretTracker(2)
    losses, expert_losses = 0.0, np.zeros(experts.experts)
    for t in range(len(X)):
        predictions, pair = state.core.expert_predictions(X[t].tolist())
        prediction = state.core.predict_one(X[t].tolist())
        if kind == "adversary":
            y[t] = 1.0 if prediction < 0.5 else 0.0
        end, counted = state.phase.end, state.core.parts().plain.label_statistics[COUNT]
        learner.learn(state, X[t : t + 1], y[t : t + 1])
        parts = state.core.parts().plain
        if t > 0 and parts.label_statistics[COUNT] > counted:  # else the label was an outlier
            experts.record(predictions, pair[0], y[t])
            top.record(np.array(pair), prediction, y[t])
            losses += (prediction - y[t]) ** 2
            expert_losses += (predictions - y[t]) ** 2
        if state.phase.end != end or t == len(X) - 1:
            for tracker, aggregation in ((experts, parts.aggregation.experts), (top, parts.aggregation.top)):
                tracker.close()
                tracker.restart(np.exp(aggregation.log_priors))
    assert np.all(experts.regret <= experts.bound)
    assert np.all(losses - expert_losses <= experts.bound + top.bound[0])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: np.zeros((60, 3)),
        lambda rng: np.repeat(rng.normal(size=(6, 3)), 10, axis=0),
        lambda rng: 1 + 1e-13 * rng.normal(size=(60, 3)),
        lambda rng: np.column_stack([rng.normal(size=60), np.zeros(60), np.full(60, 7.0)]),
        lambda rng: rng.normal(size=(60, 1)),
        lambda rng: rng.normal(size=(60, 3)) * [1e-12, 1.0, 1e12],
        lambda rng: np.where(rng.random((60, 3)) < 0.05, 1e100, rng.normal(size=(60, 3))),
    ],
    ids=["equal", "repeated", "nearly equal", "constant features", "one feature", "units apart", "outliers"],
)
@pytest.mark.parametrize("labels", ["varied", "constant"])
def test_predictions_are_finite_and_near_the_range_of_the_labels(
    make: Callable[[np.random.Generator], Floats], size: float, labels: str
) -> None:
    rng = np.random.default_rng(0)
    X = make(rng)
    y = size * (rng.normal(size=60) if labels == "varied" else np.ones(60))
    for views in (1, 2):
        state = new_state(X.shape[1], views)
        predictions = learner.learn(state, X, y)
        for t in range(1, 60):
            low, high = y[:t].min(), y[:t].max()
            slack = 0.05 * (high - low) + 1e-12 * abs(high)
            assert low - slack <= predictions[t] <= high + slack
        assert np.isfinite(predict(state, X)).all()


@pytest.mark.parametrize("neighbors", [2, 64, 65, 80])
def test_learner_works_with_any_number_of_neighbors(neighbors: int) -> None:
    X, y = smooth_stream(200)
    state = new_state(3, 2, neighbors)
    predictions = learner.learn(state, X, y)
    assert np.std(predictions[100:] - y[100:]) < 0.6 * np.std(y)


def test_learner_works_with_many_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500))
    state = new_state(500)
    assert np.isfinite(learner.learn(state, X, X[:, 3] + 0.1 * rng.normal(size=60))).all()
    assert state.phase.plain.metrics[0].dimension == 500


def test_predictions_are_sensible_from_the_second_row_on() -> None:
    state = new_state(2)
    assert predict(state, [[1.0, 2.0]]).tolist() == [0.0]
    predictions = learner.learn(state, [[1.0, 2.0], [5.0, 1.0], [1.0, 2.0]], [7.0, 7.0, 9.0])
    assert predictions.tolist() == [0.0, 7.0, 7.0]


@settings(max_examples=15)
@given(st.integers(1, 2), st.sampled_from([24, 1000]), st.data(), seeds)
def test_results_do_not_depend_on_batches(views: int, max_centers: int, data: st.DataObject, seed: int) -> None:
    X, y = smooth_stream(150, seed=seed)
    whole, cut = new_state(3, views, 8, max_centers), new_state(3, views, 8, max_centers)
    expected = learner.learn(whole, X, y)
    parts = data.draw(cuts(len(X)))
    predictions = np.concatenate([learner.learn(cut, X[part], y[part]) for part in parts])
    assert predictions.tobytes() == expected.tobytes()
    assert bits(cut) == bits(whole)
    one_by_one = new_state(3, views, 8, max_centers)
    for t in range(len(X)):
        assert predict(one_by_one, X[t : t + 1])[0] == expected[t]
        assert learner.learn(one_by_one, X[t : t + 1], y[t : t + 1])[0] == expected[t]
    assert bits(one_by_one) == bits(whole)


def transferred(state: MetricState, way: str) -> MetricState:
    """Return a state, or a copy made by deepcopy, pickle or an archive."""
    if way == "pickled":
        unpickled: MetricState = pickle.loads(pickle.dumps(state))
        return unpickled
    if way == "saved" and state.clock > 0:
        return serialization.from_archive(serialization.to_archive(state), 2)
    if way == "rebuilt":
        state.phase = replace(state.phase, core=MetricCore(state.core.settings, state.core.parts()))
    return copy.deepcopy(state) if way == "copied" else state


# Events before a round: rows to predict (if empty, the next row), and what happens to the state then.
events = st.tuples(
    st.lists(st.integers(0, ROWS - 1), max_size=3),
    st.sampled_from(["kept"] * 5 + ["copied", "pickled", "saved", "rebuilt"]),
)


@settings(max_examples=25)
@given(seeds, st.lists(st.lists(events, max_size=2), min_size=1, max_size=ROWS))
def test_predictions_and_copies_between_rounds_do_not_change_results(
    seed: int, before_rounds: list[list[tuple[list[int], str]]]
) -> None:
    rng = np.random.default_rng(seed)
    # Few values, so that rows repeat, and both zeros.
    X, y = rng.choice([-1.0, -0.0, 0.0, 0.3], size=(ROWS, 2)), rng.normal(size=ROWS)
    silent, busy = new_state(2, 1, 4, 24, SMALL), new_state(2, 1, 4, 24, SMALL)
    for t, before in enumerate(before_rounds):
        row, label = X[t : t + 1], y[t : t + 1]
        for which, way in before:
            rows = X[which] if which else row
            apart = copy.deepcopy(silent)  # without earlier predictions
            assert predict(busy, rows).tolist() == [predict(apart, x[None])[0] for x in rows]
            busy = transferred(busy, way)
        assert learner.learn(busy, row, label).tolist() == learner.learn(silent, row, label).tolist()
    assert bits(busy) == bits(silent)


def test_zero_and_negative_zero_are_different_rows() -> None:
    states = [new_state(2), new_state(2)]
    for state in states:
        learner.learn(state, [[1.0, 2.0], [2.0, 1.0]], [1.0, 2.0])
    predict(states[0], [[0.0, 1.0]])
    for state in states:
        learner.learn(state, [[-0.0, 1.0]], [3.0])
        assert np.signbit(state.core.parts().plain.centers.rows[2, 0])
    assert bits(states[0]) == bits(states[1])


def test_predicting_threads_do_not_change_what_another_thread_learns() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    alone, shared = new_state(2, 1, 4, 24, SMALL), new_state(2, 1, 4, 24, SMALL)
    going = threading.Event()
    going.set()

    def predict_part(part: Floats) -> None:
        while going.is_set():
            predict(shared, part)

    threads = [threading.Thread(target=predict_part, args=(X[k : k + 3],)) for k in range(3)]
    for thread in threads:
        thread.start()
    try:
        for t in range(len(X)):
            predict(shared, X[t : t + 1])
            assert learner.learn(shared, X[t : t + 1], y[t : t + 1]) == learner.learn(alone, X[t : t + 1], y[t : t + 1])
    finally:
        going.clear()
        for thread in threads:
            thread.join()
    assert bits(shared) == bits(alone)


def test_results_do_not_depend_on_number_of_threads() -> None:
    X, y = smooth_stream(300)
    one, several = new_state(3, 2), new_state(3, 2)
    assert learner.learn(one, X, y).tobytes() == learner.learn(several, X, y, n_jobs=3).tobytes()
    assert bits(one) == bits(several)
    probe = np.random.default_rng(1).normal(size=(50, 3))
    assert predict(one, probe, n_jobs=3).tobytes() == predict(one, probe).tobytes()


def test_metric_finds_the_true_subspace() -> None:
    stream = LowRankStream(d=10, rank=2, random_state=1)
    X, y = stream.draw(4000)
    state = new_state(10, neighbors=32, max_centers=10_000, config=MetricConfig())
    learner.learn(state, X, y)
    # All features have nearly the same scale, so that standardization hardly changes the true directions.
    angle = np.degrees(subspace_angles(state.phase.plain.metrics[0].eigenvectors[:, :2], stream.subspace).max())
    assert angle < 8


def test_experts_with_forgetting_adapt_to_a_change() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    y[1500:] *= -1
    state = new_state(3, neighbors=32, max_centers=5000)
    predictions = learner.learn(state, X, y)
    weights = state.core.parts().plain.aggregation.experts.weights()
    assert (
        sum(w for name, w in zip(expert_names(1), weights, strict=True) if "forgetting" in name or "space-time" in name)
        > 0.9
    )
    # Half of all centers have the opposite sign: without forgetting, the error is 0.43 of the standard deviation.
    assert np.std(predictions[2000:] - y[2000:]) < 0.2 * np.std(y)


def test_prediction_of_noise_is_close_to_the_mean() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.normal(size=2000)
    predictions = learner.learn(new_state(5, max_centers=5000, config=MetricConfig()), X, y)
    mean = np.cumsum(np.append(0, y))[:-1] / np.maximum(1, np.arange(2000))
    assert np.mean((predictions - y)[1000:] ** 2) < 1.04 * np.mean((mean - y)[1000:] ** 2)


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ([[1.0]], [1e100], DomainError, r"y must be at most 1e\+60 in size, got 1e\+100"),
        ([[1e200]], [1.0], DomainError, r"X must be at most 1e\+140 in size, got 1e\+200"),
        ([[1.0], [np.nan]], [1.0, 2.0], NonFiniteError, "X must be finite, got NaN at row 1, column 0"),
        ([[1.0], [2.0]], [1.0, np.inf], NonFiniteError, "y must be finite, got inf at row 1"),
        ([[1.0, 2.0]], [1.0], ShapeError, "X must have 1 columns, got 2"),
        ([[1.0], [2.0]], [1.0], ShapeError, "y must hold one label per row: 2 rows, got 1 labels"),
    ],
)
def test_invalid_input_changes_nothing(X: Floats, y: Floats, error: type[Exception], message: str) -> None:
    state = trained(np.array([[1.0], [2.0], [4.0], [0.0], [3.0]]), np.arange(5.0))
    before = bits(state)
    with pytest.raises(error, match=message):
        learner.learn(state, X, y)
    assert bits(state) == before


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"growth": 1.0}, "growth must be from 1.05 to 10, got 1"),
        ({"powers": (0.5, -1.0)}, "powers must be from 0 to 2, got -1"),
        ({"ridges": (0.0,)}, "ridges must be from 1e-12 to 1, got 0"),
        ({"validation_points": 4}, "validation_points must be an integer >= 8, got 4"),
        ({"validation_points": 100, "pool": 50}, "pool must be an integer >= 100, got 50"),
        ({"label_margin": np.nan}, "label_margin must be from 0 to 1, got nan"),
        ({"stack_prior": 0.0}, "stack_prior must be from 1e-06 to 1e[+]06, got 0"),
    ],
)
def test_config_checks_its_values(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        MetricConfig(**parameters)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 2])
def test_rounds_beyond_the_end_of_the_phase_are_refused(rows: int) -> None:
    X, y = smooth_stream(30 + rows)
    state = new_state(3)
    learner.learn(state, X[:30], y[:30])
    state.phase = replace(state.phase, end=30)
    before = bits(state)
    message = "the phase must end with round 30, got round 31"
    with pytest.raises(RuntimeError, match=message):
        learner.learn(state, X[30:], y[30:])
    with pytest.raises(RuntimeError, match=message):
        learner.learn_one(state, learner.Round(X[30].tolist(), float(y[30])))
    assert bits(state) == before
