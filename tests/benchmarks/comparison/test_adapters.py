"""Nobody looks ahead, and batch models are retrained when they should be."""

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from river.linear_model import LinearRegression
from sklearn.linear_model import SGDRegressor

from benchmarks.comparison.adapters import (
    FIRST,
    Incremental,
    LastLabel,
    MeanLabel,
    Ours,
    Player,
    Retrained,
    River,
    Running,
)
from benchmarks.comparison.models import LEARNERS, TREES, WINDOW, river_amf, river_knn
from benchmarks.comparison.runner import play
from ellipack import PackingRegressor, RescaledRegressor
from ellipack.validation import Floats


class Counting:
    """A batch model that predicts how many rows it was trained on."""

    def fit(self, X: Floats, y: Floats) -> Self:
        assert len(X) == len(y)
        self.rows = len(y)
        return self

    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), float(self.rows))


class MeanOfAll(Counting):
    """A batch model that predicts the mean label."""

    def fit(self, X: Floats, y: Floats) -> Self:
        self.mean = float(y.mean())
        return self

    def predict(self, X: Floats) -> Floats:
        return np.full(len(X), self.mean)


CHEAP: dict[str, Callable[[], Player]] = {
    "ours": lambda: Ours(RescaledRegressor(PackingRegressor())),
    "incremental": lambda: Incremental(SGDRegressor()),
    "river": lambda: River(LinearRegression()),
    "retrained": lambda: Retrained(MeanOfAll),
    "mean": MeanLabel,
    "last": LastLabel,
}


def rows(seed: int, n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + rng.normal(size=n)


@pytest.mark.parametrize("name", CHEAP)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000), part=st.floats(0, 1))
def test_no_prediction_depends_on_labels_not_seen(name: str, seed: int, part: float) -> None:
    X, y = rows(seed, FIRST + 14)
    since = int(part * (len(y) - 1))
    other = y.copy()
    other[since:] += 100.0
    before, _ = play(CHEAP[name](), X, y)
    after, _ = play(CHEAP[name](), X, other)
    np.testing.assert_array_equal(before[: since + 1], after[: since + 1])


@pytest.mark.parametrize("name", CHEAP)
def test_all_learn_and_can_be_sized(name: str) -> None:
    X, y = rows(0, FIRST + 2)
    player, other = CHEAP[name](), CHEAP[name]()
    predictions, _ = play(player, X, y)
    shifted, _ = play(other, X, y + 100.0)
    assert predictions[-1] != shifted[-1]
    assert player.saved() > 0


def test_a_batch_model_is_trained_on_everything_whenever_there_is_enough_more() -> None:
    X, y = rows(0, 200)
    predictions, _ = play(Retrained(Counting), X, y)
    np.testing.assert_allclose(predictions[:FIRST], [0.0, *(np.cumsum(y) / np.arange(1, 201))[: FIRST - 1]])
    trained = predictions[FIRST:].astype(int)
    assert trained[0] == FIRST
    starts = np.flatnonzero(np.diff(trained, prepend=0)) + FIRST
    np.testing.assert_array_equal(predictions[starts], starts)  # on all rows before, and none after
    np.testing.assert_array_equal(starts[1:], np.ceil(1.15 * starts[:-1]))


def test_rows_in_one_call_are_predicted_as_one_by_one() -> None:
    X, y = rows(3, 150)
    together, _ = play(Retrained(MeanOfAll), X, y)
    singly = Retrained(MeanOfAll)
    one_by_one = [singly.play(X[t : t + 1], y[t : t + 1])[0] for t in range(len(y))]
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30), st.integers(0, 30))
def test_the_mean_is_that_of_the_labels_before_in_any_parts(labels: list[int], cut: int) -> None:
    y = np.array(labels, dtype=np.float64)
    player = MeanLabel()
    played = [player.play(part[:, None], part) for part in (y[:cut], y[cut:])]
    expected = [0.0, *(sum(labels[:t]) / t for t in range(1, len(labels)))]
    np.testing.assert_array_equal(np.concatenate(played), expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_running_units_are_those_of_the_rows_so_far(values: list[float]) -> None:
    running: Any = Running()
    for value in values:
        running.add(np.array([value]))
    column = np.array(values)
    deviation = column.std() if running._squares > 0 else 1.0
    np.testing.assert_allclose(
        running.scaled(column) * deviation, column - column.mean(), rtol=1e-6, atol=1e-6 * (1 + np.abs(column).max())
    )
    np.testing.assert_allclose(running.original(running.scaled(column)), column, atol=1e-9 * (1 + np.abs(column).max()))


def test_every_learner_says_what_it_is() -> None:
    for learner in LEARNERS.values():
        assert learner.kind in ("ours", "paper", "streaming", "batch", "trivial")
        assert learner.settings


@pytest.mark.parametrize("search", ["plain", "graph"])
def test_knn_keeps_the_latest_rows_whatever_its_search(search: Literal["plain", "graph"]) -> None:
    model = river_knn(search)
    for label in [0.0] * 10 + [1.0] * WINDOW:
        model.learn_one({"x": label}, label)
    assert model.predict_one({"x": 0.0}) == 1.0


def test_forests_of_the_same_seed_are_the_same() -> None:
    X, y = rows(0, 60)
    one, same, other = (play(River(river_amf(seed)), X, y)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    assert river_amf(1).n_estimators == TREES
