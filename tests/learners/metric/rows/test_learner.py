import numpy as np
import pytest

from ellipack.learners.metric import engine, state
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.rows.learner import MetricRows
from ellipack.learners.metric.state import MetricState, Size
from ellipack.learners.metric.widening import widen
from ellipack.packing.index import Index


def bits(learner: MetricState) -> list[bytes]:
    machine, size = learner.machine, learner.n_centers
    arrays = [machine.memory.rows[:size], machine.memory.label_sums[:size], machine.packing.coordinates]
    arrays += [*machine.ridge, *machine.mixture, *machine.stack, *machine.top, machine.labels, machine.features]
    arrays += [array for view in machine.views for array in (view.directions, Index(view.points).points(), view.gop)]
    return [np.ascontiguousarray(array).tobytes() for array in arrays]


@pytest.mark.parametrize(("views", "most"), [(1, 1000), (2, 1000), (1, 24)])
def test_a_row_at_a_time_has_the_bits_of_a_batch(views: int, most: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) * [1.0, 10.0, 0.1, 1.0]
    X[::7] = X[3]  # some fall on a centre
    y = np.sin(X[:, 0]) + X[:, 3]
    learners = [state.init(3, Size(views, 8, most), 0, MetricConfig(judged=16, pool=64)) for _ in range(3)]
    batch, (asking, silent) = learners[0], (MetricRows(each) for each in learners[1:])
    made = []
    for part, d in ((slice(0, 150), 3), (slice(150, 300), 4)):
        expected = engine.learn(batch, X[part, :d].copy(), y[part])
        for row, label in zip(X[part, :d].tolist(), y[part].tolist(), strict=True):
            made.append(asking.predict(row))
            asking.learn(row, label)
            silent.learn(row, label)
        assert made[part] == expected.tolist()
        assert bits(asking.state) == bits(silent.state) == bits(batch)
        if d == 3:
            widen(batch, np.array([2.0]))
            asking.widen(np.array([2.0]))
            silent.widen(np.array([2.0]))
    probe = rng.normal(size=(20, 4))
    assert asking.predict_rows(probe).tolist() == engine.predict(batch, probe).tolist()


def test_what_was_predicted_for_another_row_or_round_is_not_used() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    plain, misled = (MetricRows(state.init(2, Size(1, 8, 100), 0, MetricConfig(judged=8, pool=16))) for _ in range(2))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        misled.predict(row)
        misled.predict(X[(7 * t) % 60].tolist())
        misled.learn(row, label)
        plain.learn(row, label)
        assert misled.predict(row) == plain.predict(row)
        if t:
            assert misled.predict(row) == engine.predict(plain.state, [row])[0]
