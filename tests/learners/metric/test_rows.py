import numpy as np
import pytest

from ellipack.learners.metric import learner
from ellipack.learners.metric.feature_growth import add_features
from ellipack.learners.metric.rows import MetricRows
from tests.learners.metric.learners import bits, fresh, smooth


@pytest.mark.parametrize(("views", "max_centers"), [(1, 1000), (2, 1000), (1, 24)])
def test_one_row_at_a_time_has_the_bits_of_a_batch(views: int, max_centers: int) -> None:
    X, y = smooth(300, 4)
    batch = fresh(3, views, 8, max_centers)
    predicting, silent = (MetricRows(fresh(3, views, 8, max_centers)) for _ in range(2))
    for part, d in ((slice(0, 150), 3), (slice(150, 300), 4)):
        expected = learner.learn(batch, np.ascontiguousarray(X[part, :d]), y[part])
        predictions = []
        for row, label in zip(X[part, :d].tolist(), y[part].tolist(), strict=True):
            predictions.append(predicting.predict(row))
            predicting.learn(row, label)
            silent.learn(row, label)
        assert predictions == expected.tolist()
        assert bits(predicting.state) == bits(silent.state) == bits(batch)
        if d == 3:
            add_features(batch, np.array([2.0]))
            predicting.add_features(np.array([2.0]))
            silent.add_features(np.array([2.0]))
    probe = np.random.default_rng(1).normal(size=(20, 4))
    assert predicting.predict_rows(probe).tolist() == learner.predict(batch, probe).tolist()
    predicting.learn_rows(X[:9], y[:9])
    learner.learn(batch, X[:9], y[:9])
    assert bits(predicting.state) == bits(batch)


def test_a_prediction_of_another_row_or_round_is_not_reused() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    plain, busy = (MetricRows(fresh(2, 1, 8, 100)) for _ in range(2))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        busy.predict(row)
        busy.predict(X[(7 * t) % 60].tolist())
        busy.learn(row, label)
        plain.learn(row, label)
        assert busy.predict(row) == plain.predict(row) == learner.predict(plain.state, [row])[0]


def test_contents_are_taken_over() -> None:
    X, y = smooth(100)
    rows, other = MetricRows(fresh(3)), MetricRows(fresh(3))
    rows.learn_rows(X[:80], y[:80])
    other.restore_state(rows.to_archive(), 3)
    for row, label in zip(X[80:].tolist(), y[80:].tolist(), strict=True):
        assert rows.predict(row) == other.predict(row)
        rows.learn(row, label)
        other.learn(row, label)
    assert bits(rows.state) == bits(other.state)
