import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners import packing
from ellipack.learners.packing import PackingState
from ellipack.learners.rescaled import engine
from ellipack.learners.rescaled.engine import RescaledState
from ellipack.learners.rescaled.rows import PackingRows
from ellipack.metric import Metric
from ellipack.validation import Floats
from tests.strategies import metrics, seeds


def fresh(metric: Metric, keep: bool = True) -> PackingRows:
    return PackingRows(engine.init(packing.init(metric), metric.dimension), keep)


def bits(state: RescaledState[PackingState]) -> list[bytes]:
    arrays = [*map(np.array, state.inner.core.to_arrays()), state.box.low, state.box.high, state.box.label]
    return [array.tobytes() for array in arrays]


def made_up(seed: int, n: int, d: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.where(rng.random((n, 1)) < 0.02, 30.0, 1.0)
    X[rng.random(n) < 0.1] = X[0]
    return X, rng.normal(size=n)


@settings(max_examples=25)
@given(metrics(4), seeds, st.booleans())
def test_a_row_at_a_time_has_the_bits_of_a_batch(metric: Metric, seed: int, keep: bool) -> None:
    X, y = made_up(seed, 150, metric.dimension)
    batch, asking, silent = (fresh(metric, keep) for _ in range(3))
    batch.learn_rows(X, y)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        made = asking.predict(row)
        assert made == asking.predict_rows([row])[0]
        asking.learn(row, label)
        silent.learn(row, label)
    assert bits(asking.state) == bits(silent.state) == bits(batch.state)
    assert asking.state.inner.clock == 150


def test_what_was_found_for_another_row_or_round_is_not_used() -> None:
    X, y = made_up(0, 100, 2)
    plain, misled = fresh(Metric.identity(2)), fresh(Metric.identity(2))
    for t, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True)):
        misled.predict(row)
        misled.predict(X[(7 * t) % 100].tolist())
        misled.learn(row, label)
        plain.learn(row, label)
        assert misled.predict(row) == plain.predict(row) == plain.predict_rows([row])[0]


def test_room_for_centres_grows() -> None:
    rng = np.random.default_rng(0)
    rows = fresh(Metric.identity(1))
    for value in rng.uniform(-1, 1, size=4000).tolist():
        rows.learn([value], value)
    assert rows.state.inner.core.size > 64
    assert rows.predict([0.5]) == pytest.approx(0.5, abs=0.1)
