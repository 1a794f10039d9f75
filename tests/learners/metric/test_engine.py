import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from ellipack.errors import DomainError
from ellipack.learners.aggregation import bernstein
from ellipack.learners.aggregation._kernels import weigh
from ellipack.learners.experts.names import expert_names
from ellipack.learners.metric import engine, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.desks import MetricDesk
from ellipack.learners.metric.machine import COUNT
from ellipack.learners.metric.state import MetricState, Size
from ellipack.stream import LowRankStream
from ellipack.validation import Floats
from tests.strategies import seeds

QUICK = MetricConfig(judged=16, pool=64)


def fresh(d: int, views: int = 1, neighbors: int = 16, most: int = 1000, config: MetricConfig = QUICK) -> MetricState:
    return state.init(d, Size(views, neighbors, most), 0, config)


def streams(kind: str, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    X = rng.normal(size=(n, 3))
    y = {
        "smooth": np.sin(2 * X[:, 0]) + 0.3 * X[:, 1],
        "noise": rng.normal(size=n),
        "jumps": np.where(rng.random(n) < 0.05, 1e3, 1.0) * rng.normal(size=n),
        "turns": np.where(np.arange(n) % 40 < 20, 1.0, -1.0) * X[:, 0],
    }[kind]
    return X, y


class Ledger:
    """Keeps what the theorem speaks of for one aggregation, phase by phase."""

    def __init__(self, experts: int) -> None:
        self.experts = experts
        self.regret, self.bound = np.zeros(experts), np.zeros(experts)
        self.restart(np.full(experts, 1 / experts))

    def restart(self, priors: Floats) -> None:
        self.priors, self.squares, self.scale, self.first, self.rounds = priors, np.zeros(self.experts), 0.0, 0.0, 0

    def record(self, predictions: Floats, mixture: float, label: float) -> None:
        r = 2 * (mixture - label) * (mixture - predictions)
        larger = max(self.scale, float(np.abs(r).max()))
        if self.scale > 0:
            self.squares += (r * self.scale / larger) ** 2
        self.scale, self.first, self.rounds = larger, self.first or larger, self.rounds + 1
        self.regret += (mixture - label) ** 2 - (predictions - label) ** 2

    def close(self) -> None:
        if self.scale > 0:
            self.bound += [
                bernstein.regret_bound(
                    prior=float(self.priors[k]), squares=float(self.squares[k]), experts=self.experts,
                    rounds=self.rounds, scale=self.scale, first_scale=self.first,
                )
                for k in range(self.experts)
            ]  # fmt: skip


@settings(max_examples=12)
@given(st.sampled_from(["smooth", "noise", "jumps", "turns", "adversary"]), st.integers(1, 2), seeds)
def test_the_guarantee_holds_for_the_learner_itself(kind: str, views: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = streams("noise" if kind == "adversary" else kind, 150, rng)
    learner = fresh(3, views)
    experts = len(learner.machine.mixture.gains)
    mixture, top = Ledger(experts), Ledger(2)
    losses, own = 0.0, np.zeros(experts)
    for t in range(len(X)):
        desk, made = MetricDesk(learner), np.empty(1)
        desk.predict(X[t : t + 1], made)
        room = desk.room
        if kind == "adversary":
            y[t] = 1.0 if made[0] < 0.5 else 0.0
        before, counted = learner.phase_end, learner.machine.labels[COUNT]
        engine.learn(learner, X[t : t + 1], y[t : t + 1])
        if t > 0 and learner.machine.labels[COUNT] > counted:  # else the label was wild
            mixture.record(room.mixing.predictions, float(room.mixing.pair[0]), y[t])
            top.record(room.mixing.pair, made[0], y[t])
            losses += (made[0] - y[t]) ** 2
            own += (room.mixing.predictions - y[t]) ** 2
        if learner.phase_end != before or t == len(X) - 1:
            for ledger, aggregation in ((mixture, learner.machine.mixture), (top, learner.machine.top)):
                ledger.close()
                ledger.restart(np.exp(aggregation.priors))
    assert np.all(mixture.regret <= mixture.bound)
    assert np.all(losses - own <= mixture.bound + top.bound[0])


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
    ids=["identical", "piles", "nearly identical", "constant features", "one feature", "units apart", "wild values"],
)
@pytest.mark.parametrize("labels", ["varied", "constant"])
def test_predictions_are_finite_and_within_the_widened_range(make: object, size: float, labels: str) -> None:
    assert callable(make)
    rng = np.random.default_rng(0)
    X = make(rng)
    y = size * (rng.normal(size=60) if labels == "varied" else np.ones(60))
    for views in (1, 2):
        learner = fresh(X.shape[1], views)
        made = engine.learn(learner, X, y)
        for t in range(1, 60):
            low, high = y[:t].min(), y[:t].max()
            slack = 0.05 * (high - low) + 1e-12 * abs(high)
            assert low - slack <= made[t] <= high + slack
        assert np.isfinite(engine.predict(learner, X)).all()


def test_many_features() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 500))
    y = X[:, 3] + 0.1 * rng.normal(size=60)
    learner = fresh(500)
    assert np.isfinite(engine.learn(learner, X, y)).all()
    assert learner.metrics[0].dimension == 500


def test_it_is_sensible_from_the_second_row_on() -> None:
    learner = fresh(2)
    assert engine.predict(learner, [[1.0, 2.0]]).tolist() == [0.0]
    made = engine.learn(learner, [[1.0, 2.0], [5.0, 1.0], [1.0, 2.0]], [7.0, 7.0, 9.0])
    assert made.tolist() == [0.0, 7.0, 7.0]


def test_memory_is_bounded_and_the_learner_goes_on() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
    learner = fresh(3, views=2, most=100)
    made = engine.learn(learner, X, y)
    machine = learner.machine
    assert learner.n_centers <= 100
    assert len(machine.memory.label_sums) <= 100
    # Those that are left are rows as they came, in their order, with their labels; the last of them too.
    rows, sums, counts, rounds = (column[: learner.n_centers] for column in machine.memory)
    came = rounds.astype(int) - 1
    assert (np.diff(came) > 0).all()
    assert came[-1] == 2999
    assert np.array_equal(rows, X[came])
    assert np.array_equal(sums, y[came])
    assert (counts == 1).all()
    trees = [machine.packing.points, *(view.points for view in machine.views)]
    assert sum(array.nbytes for tree in trees for array in tree) < 300_000
    assert machine.packing.size <= 64
    assert np.std(made[1500:] - y[1500:]) < 0.5 * np.std(y)


def test_a_hundred_thousand_centres_of_fifty_features_fit_well_under_a_gibibyte() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 50))
    learner = fresh(50, most=100_000)
    engine.learn(learner, X, X[:, 0])
    machine = learner.machine
    grown = [*machine.memory, *(a for view in machine.views for a in view.points)]
    # What grows with the centres, the room that it has to spare included, and a quarter more for Algorithm 1's own.
    bytes_a_center = 1.25 * sum(array.nbytes for array in grown) / learner.n_centers
    assert 100_000 * bytes_a_center < 2**30 / 3


def test_the_metric_finds_the_subspace() -> None:
    stream = LowRankStream(d=10, rank=2, random_state=1)
    X, y = stream.draw(4000)
    learner = fresh(10, neighbors=32, most=10_000, config=MetricConfig())
    engine.learn(learner, X, y)
    # In standard units: the true directions are scaled as the features are, all nearly alike here.
    angle = np.degrees(subspace_angles(learner.metrics[0].eigenvectors[:, :2], stream.subspace).max())
    assert angle < 8


def test_when_the_stream_turns_those_that_fade_take_over() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    y[1500:] *= -1
    learner = fresh(3, neighbors=32, most=5000)
    made = engine.learn(learner, X, y)
    weights = np.empty(len(expert_names(1)))
    weigh(learner.machine.mixture, weights)
    assert sum(w for name, w in zip(expert_names(1), weights, strict=True) if "fading" in name) > 0.9
    # Half of all centres say the opposite: without those that fade, the error is 0.43 of the deviation.
    assert np.std(made[2000:] - y[2000:]) < 0.2 * np.std(y)


def test_pure_noise_is_left_to_the_mean() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 5)), rng.normal(size=2000)
    made = engine.learn(fresh(5, most=5000, config=MetricConfig()), X, y)
    mean = np.cumsum(np.append(0, y))[:-1] / np.maximum(1, np.arange(2000))
    assert np.mean((made - y)[1000:] ** 2) < 1.04 * np.mean((mean - y)[1000:] ** 2)


def test_what_is_too_large_is_refused_and_changes_nothing() -> None:
    learner = fresh(1)
    engine.learn(learner, [[1.0], [2.0]], [1.0, 2.0])
    with pytest.raises(DomainError, match=r"y must be at most 1e\+60 in size, got 1e\+100"):
        engine.learn(learner, [[1.0]], [1e100])
    with pytest.raises(DomainError, match=r"X must be at most 1e\+140 in size, got 1e\+200"):
        engine.learn(learner, [[1e200]], [1.0])
    assert learner.clock == 2


def test_threads_change_no_bit_of_a_prediction() -> None:
    rng = np.random.default_rng(0)
    X, y = streams("smooth", 200, rng)
    learner = fresh(3)
    engine.learn(learner, X, y)
    probe = rng.normal(size=(50, 3))
    assert engine.predict(learner, probe, n_jobs=3).tobytes() == engine.predict(learner, probe).tobytes()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"growth": 1.0}, "growth must be from 1.05 to 10, got 1"),
        ({"powers": (0.5, -1.0)}, "powers must be from 0 to 2, got -1"),
        ({"ridges": (0.0,)}, "ridges must be from 1e-12 to 1, got 0"),
        ({"judged": 4}, "judged must be a whole number >= 8, got 4"),
        ({"judged": 100, "pool": 50}, "pool must be a whole number >= 100, got 50"),
        ({"widening": np.nan}, "widening must be from 0 to 1, got nan"),
        ({"stack_prior": 0.0}, "stack_prior must be from 1e-06 to 1e[+]06, got 0"),
    ],
)
def test_settings_are_checked_at_once(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(DomainError, match=message):
        MetricConfig(**parameters)  # type: ignore[arg-type]
