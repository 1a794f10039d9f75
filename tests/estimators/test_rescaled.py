"""The paper's learners on any features and labels; `test_contract` holds them to the contract of all learners."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ellipack import GradientOuterProduct, LocalSlopes, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack import RescaledRegressor as Rescaled
from ellipack.errors import DomainError, EllipackError, InputError, NonFiniteError
from tests.entry_points.learners import bits
from tests.estimators.factories import RESCALED
from tests.estimators.factories import unscaled_stream as stream


@pytest.mark.parametrize("make", RESCALED.values(), ids=RESCALED.keys())
def test_a_row_outside_of_the_ranges_with_an_invalid_label_changes_nothing(make: Callable[[], Rescaled]) -> None:
    learner = make().fit(*stream())
    before = bits(learner)
    for method in (learner.partial_fit, learner.progressive):
        with pytest.raises(NonFiniteError, match="y must be finite, got NaN at row 0"):
            method([[1e9, 0, 0]], [np.nan])
    assert bits(learner) == before


def test_invalid_parameters_are_refused_and_change_nothing() -> None:
    X, y = stream()
    for wrapped in (MetricRegressor(), PackingRegressor, None):
        with pytest.raises(InputError, match=r"regressor must be one of PackingRegressor, PhasedRegressor, .*, got "):
            Rescaled(wrapped).fit(X, y)  # type: ignore[arg-type]
    learner = Rescaled(PhasedRegressor()).fit(X, y)
    before = bits(learner)
    with pytest.raises(DomainError, match="alpha must be > 0, got -1"):
        learner.set_params(regressor__alpha=-1.0).partial_fit(100 * X, y)
    learner.set_params(regressor__alpha=0.5)
    assert bits(learner) == before
    with pytest.raises(EllipackError, match="X must have 2 columns, got 3"):
        Rescaled(PackingRegressor([1.0, 1.0])).fit(X, y)


@pytest.mark.parametrize("make", RESCALED.values(), ids=RESCALED.keys())
@pytest.mark.parametrize("size", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("kind", ["varied", "constant", "labels constant", "jumps"])
def test_any_finite_values_are_accepted(make: Callable[[], Rescaled], size: float, kind: str) -> None:
    rng = np.random.default_rng(0)
    X, y = size * rng.normal(size=(40, 3)), size * rng.normal(size=40)
    if kind == "constant":
        X[:] = size
    elif kind == "labels constant":
        y[:] = -size
    elif kind == "jumps":
        X[::7], y[::5] = 1.7e308, -1.7e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = make().progressive(X, y)
    assert np.isfinite(made).all()
    assert np.all((made >= min(0.0, y.min())) & (made <= max(0.0, y.max())))


def test_attributes_are_those_of_the_inner_regressor() -> None:
    X, y = stream(200)
    learner = Rescaled(PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10)))).fit(X, y)
    inner = learner.regressor_
    assert isinstance(inner, PhasedRegressor)
    assert [phase.number for phase in inner.phases_] == [1, 2, 3, 4, 5, 6]
    assert learner.metric_ is inner.metric_
    assert (learner.n_centers_, learner.effective_rank_, learner.radius_) == (
        inner.n_centers_,
        inner.effective_rank_,
        inner.radius_,
    )
    assert 0 < learner.radius_ <= 1
    assert 1 <= learner.effective_rank_ <= 3


def test_features_in_any_units_are_learned() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 2)) * [1e5, 1e-5]
    y = 1e6 * np.sin(X[:, 0] / 4e4) + 1e6 * X[:, 1] / 1e-5
    made = Rescaled(PackingRegressor()).progressive(X, y)
    assert np.std((made - y)[1500:]) < 0.3 * np.std(y)


def test_add_features_keeps_the_fitted_state() -> None:
    X, y = stream(300)
    late = 1e4 * np.random.default_rng(1).normal(size=300)
    learner = Rescaled(PackingRegressor()).fit(X, y)
    expected = learner.predict(X)
    learner.add_features([123.0])
    np.testing.assert_allclose(learner.predict(np.column_stack([X, np.zeros(300)])), expected, rtol=1e-12)
    assert learner.n_features_in_ == learner.metric_.dimension == 4
    assert np.isfinite(learner.progressive(np.column_stack([X, late]), y + late)).all()


def test_pipeline() -> None:
    X, y = stream(300)
    assert make_pipeline(StandardScaler(), Rescaled(PackingRegressor())).fit(X, y).predict(X[:5]).shape == (5,)
