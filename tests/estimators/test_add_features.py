"""`add_features` of every learner."""

from collections.abc import Callable
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError
from ellipack.validation import Floats
from tests.strategies import ball, cuts, seeds

Regressor = PackingRegressor | PhasedRegressor | MetricRegressor

QUICK = MetricConfig(growth=2.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)
LEARNERS: dict[str, Callable[[], Regressor]] = {
    "euclidean": PackingRegressor,
    "diagonal": lambda: PackingRegressor([0.1, 1.0, 1.0]),
    "matrix": lambda: PackingRegressor([[1.0, 0.2, 0.0], [0.2, 0.5, 0.1], [0.0, 0.1, 0.3]]),
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10))),
    "practical": lambda: MetricRegressor(config=QUICK),
    "practical, two views": lambda: MetricRegressor(views=2, neighbors=8, config=QUICK),
}
learners = pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS.keys())


def stream(n: int = 80, d: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    X = ball(np.random.default_rng(seed), n, d)
    return X, 0.5 + 0.4 * np.sin(4 * X[:, 0])


@cache
def _fitted(make: Callable[[], Regressor]) -> Regressor:
    return make().fit(*stream())


def fitted(make: Callable[[], Regressor]) -> Regressor:
    """Return a learner after 80 rows."""
    return deepcopy(_fitted(make))


def with_zero_columns(X: Floats, count: int = 2) -> Floats:
    return np.hstack([X, np.zeros((len(X), count))])


@learners
@settings(max_examples=15)
@given(seeds, st.integers(1, 70))
def test_rows_with_zeros_in_new_features_are_predicted_as_before(
    make: Callable[[], Regressor], seed: int, n: int
) -> None:
    X, y = stream(80, seed=seed)
    learner = make().fit(X[:n], y[:n])
    expected = learner.predict(X)
    assert learner.add_features([1.0, 100.0]) is learner
    np.testing.assert_allclose(learner.predict(with_zero_columns(X)), expected, rtol=1e-12)
    assert learner.n_features_in_ == learner.metric_.dimension == 5


@learners
@settings(max_examples=8)
@given(st.data())
def test_single_rows_and_batches_give_the_same_bits_afterwards(
    make: Callable[[], Regressor], data: st.DataObject
) -> None:
    more, labels = stream(40, d=5, seed=1)
    whole, parts = (fitted(make).add_features([0.3, 0.3]) for _ in range(2))
    expected = whole.progressive(more, labels)
    slices = data.draw(cuts(40) | st.just([slice(t, t + 1) for t in range(40)]))
    made = np.concatenate([parts.progressive(more[part], labels[part]) for part in slices])
    assert made.tobytes() == expected.tobytes()


@learners
def test_history_keeps_its_values_and_gets_the_new_width(make: Callable[[], Regressor]) -> None:
    learner = fitted(make)
    if isinstance(learner, PackingRegressor):
        np.testing.assert_allclose(learner.add_features([1.0]).centers_[:, 3], 0.0)
        return
    before = learner.history()
    past = learner.add_features([1.0]).partial_fit(*stream(d=4, seed=1)).history()
    np.testing.assert_array_equal(past.effective_rank[:4], before.effective_rank[:4])
    np.testing.assert_array_equal(past.n_centers[:4], before.n_centers[:4])


def test_finished_phases_keep_their_values() -> None:
    learner = PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10))).fit(*stream())
    before, ended = learner.history(), 62
    past = learner.add_features([1.0]).partial_fit(*stream(d=4, seed=1)).history()
    assert {len(phase.gop) for phase in learner.phases_} == {4}
    np.testing.assert_array_equal(past.radius[:ended], before.radius[:ended])


@learners
@pytest.mark.parametrize(
    ("scales", "error", "message"),
    [
        ([1.0, 0.0], DomainError, "scales must be > 0, got 0 at 1"),
        ([-2.0], DomainError, "scales must be > 0, got -2 at 0"),
        ([np.nan], NonFiniteError, "scales must be finite, got NaN at row 0"),
        ([], ShapeError, r"scales must be one-dimensional and not empty, got shape \(0,\)"),
        ([[1.0]], ShapeError, r"scales must be one-dimensional and not empty, got shape \(1, 1\)"),
        (["1"], InputError, "scales must hold real numbers"),
    ],
)
def test_invalid_scales_are_refused_and_change_nothing(
    make: Callable[[], Regressor], scales: object, error: type[Exception], message: str
) -> None:
    learner = fitted(make)
    with pytest.raises(error, match=message):
        learner.add_features(scales)  # type: ignore[arg-type]
    assert learner.n_features_in_ == 3
    assert len(learner.predict(stream()[0])) == 80


@learners
def test_add_features_before_fit_is_refused(make: Callable[[], Regressor]) -> None:
    with pytest.raises(NotFittedError):
        make().add_features([1.0])


def test_feature_names_are_removed() -> None:
    X, y = stream()
    learner = PackingRegressor().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y).add_features([1.0])
    assert not hasattr(learner, "feature_names_in_")
    assert len(learner.predict(with_zero_columns(X, 1))) == 80
