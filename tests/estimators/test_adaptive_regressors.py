"""Parameters and attributes of `LocallyAdaptiveRegressor` and `IntrinsicDimensionRegressor`."""

from typing import Any

import numpy as np
import pytest

from ellipack import IntrinsicDimensionRegressor, LocallyAdaptiveRegressor, RescaledRegressor
from ellipack.errors import DomainError
from tests.entry_points.learners import stream


@pytest.mark.parametrize(
    ("learner", "message"),
    [
        (LocallyAdaptiveRegressor(adapt="time"), "adapt must be one of lipschitz, dimension, got 'time'"),
        (LocallyAdaptiveRegressor(levels=0), "levels must be an integer from 1 to 50, got 0"),
        (LocallyAdaptiveRegressor(lipschitz=0.5), r"lipschitz must be from 1 to 1e\+15, got 0\.5"),
        (IntrinsicDimensionRegressor(labels="good"), "labels must be one of arbitrary, noisy, got 'good'"),
    ],
)
def test_invalid_parameters_are_refused(learner: Any, message: str) -> None:
    with pytest.raises(DomainError, match=message):
        learner.fit(*stream(10))
    assert not hasattr(learner, "state_")


def test_radii_of_a_tree_decrease_from_level_to_level() -> None:
    X, y = stream(300)
    for learner in (
        LocallyAdaptiveRegressor([1.0, 0.1, 0.01], levels=4, lipschitz=2.0),
        LocallyAdaptiveRegressor(adapt="dimension"),
    ):
        radii = learner.fit(X, y).radii_
        assert (np.diff(radii) < 0).all()
        assert learner.radius_ == radii[-1]
    lipschitz, rank = 2.0 ** np.arange(1, 5), 3
    steep = LocallyAdaptiveRegressor(levels=4, lipschitz=2.0).fit(X, y)
    assert steep.effective_rank_ == rank
    np.testing.assert_allclose(steep.radii_, (lipschitz * 300) ** (-1 / (1 + rank)))


def test_weights_of_the_levels_follow_the_function() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 1))
    flat = LocallyAdaptiveRegressor(levels=6).fit(X, rng.integers(0, 2, 3000)).level_weights_
    steep = LocallyAdaptiveRegressor(levels=6).fit(X, 0.5 + 0.5 * np.sin(60 * X[:, 0])).level_weights_
    assert len(flat) == len(steep) == 7
    assert flat.sum() == pytest.approx(1)
    assert flat[0] > 0.9  # noise: the mean of all labels is best
    assert steep[0] < 0.01
    assert (np.diff(steep[:5]) > 0).all()


def test_attributes_of_the_learner_of_the_dimension() -> None:
    X, y = stream(300)
    for labels, offset in (("arbitrary", 1), ("noisy", 2)):
        learner = IntrinsicDimensionRegressor(labels=labels).fit(X, y)
        assert learner.intrinsic_dimension_ == learner.effective_rank_ == learner.state_.core.intrinsic_dimension
        assert learner.radius_ == pytest.approx(300 ** (-1 / (offset + learner.intrinsic_dimension_)))
        assert learner.n_centers_ == len(learner.state_.arrays.label_sums)
        assert learner.metric_.eigenvalues.tolist() == [1.0] * 3


def test_a_tree_continues_with_new_features() -> None:
    X, y = stream(300)
    wide = np.pad(X, ((0, 0), (0, 1)))
    by_dimension = LocallyAdaptiveRegressor([1.0, 0.1, 0.01], adapt="dimension").fit(X, y)
    expected = by_dimension.predict(X)
    assert by_dimension.add_features([2.0]).predict(wide).tolist() == expected.tolist()
    by_constant = LocallyAdaptiveRegressor().fit(X, y)
    rank = by_constant.effective_rank_
    by_constant.add_features([2.0])  # the radii depend on the effective rank, which grows
    assert by_constant.effective_rank_ == rank + 1
    for learner in (by_constant, by_dimension):
        assert learner.partial_fit(wide, y).n_features_in_ == 4
        assert np.abs(learner.predict(wide) - y).mean() < np.abs(y.mean() - y).mean()


def test_new_features_do_not_change_what_the_learner_of_the_dimension_has_learned() -> None:
    X, y = stream(300)
    wide = np.pad(X, ((0, 0), (0, 1)))
    learner = IntrinsicDimensionRegressor([1.0, 0.1, 0.01]).fit(X, y)
    expected, dimension = learner.predict(X), learner.intrinsic_dimension_
    assert learner.add_features([2.0]).predict(wide).tolist() == expected.tolist()
    assert learner.intrinsic_dimension_ == dimension


@pytest.mark.parametrize("make", [LocallyAdaptiveRegressor, IntrinsicDimensionRegressor])
def test_rescaled_learners_show_the_attributes_of_the_learner(make: Any) -> None:
    X, y = stream(100)
    learner = RescaledRegressor(make()).fit(100 * X, 5 * y - 7)
    assert learner.n_centers_ == learner.regressor_.n_centers_ > 1
    assert learner.radius_ == learner.regressor_.radius_
    assert learner.effective_rank_ == learner.regressor_.effective_rank_
