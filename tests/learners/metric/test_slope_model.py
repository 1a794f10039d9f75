"""Model of the slopes of the prediction."""

import numpy as np
import pytest

from ellipack import MetricRegressor
from ellipack._core import ImportanceParts
from ellipack.learners.metric.slope_model import with_new_features


def fitted(n: int, d: int = 2) -> tuple[MetricRegressor, ImportanceParts]:
    """Return a learner of rows in different units, and what it has measured."""
    X = np.random.default_rng(0).normal(size=(n, d)) * np.logspace(0, 2, d) + 1
    learner = MetricRegressor(past=False).fit(X, X[:, 0])
    importance = learner.state_.core.parts().importance
    assert importance is not None
    return learner, importance


def test_the_slopes_of_a_product_are_linear_in_the_other_feature() -> None:
    learner, found = fitted(150)
    rows, _, past = found.sample
    sample = rows, np.ascontiguousarray(2 * rows[:, ::-1]), past  # the slopes of 2 a b are 2 b and 2 a
    importance = ImportanceParts(
        found.seed, found.groups, found.seen, sample, found.errors, found.last_row, found.moves, found.slope_model
    )
    view = learner.state_.core.parts().plain.views[0]
    standard = view.standardize(rows)
    slopes = np.column_stack([standard, np.ones(len(rows))]) @ importance.with_slope_model(view).slope_model
    expected = sample[1] * view.scale
    assert np.abs(slopes - expected).max() < 0.25 * np.abs(expected).max()  # the penalty shrinks them
    np.testing.assert_allclose(slopes.mean(axis=0), expected.mean(axis=0))


@pytest.mark.parametrize("d", [1, 2, 9])
def test_the_model_is_a_ridge_regression_made_symmetric(d: int) -> None:
    learner, importance = fitted(150, d)
    rows, gradients, _ = importance.sample
    view = learner.state_.core.parts().plain.views[0]
    standard, slopes = view.standardize(rows), gradients * view.scale
    mean, mean_slope = standard.mean(axis=0), slopes.mean(axis=0)
    penalty = len(rows) ** 0.25 * np.eye(d)
    table, right = np.vstack([standard - mean, penalty]), np.vstack([slopes - mean_slope, np.zeros((d, d))])
    coefficients = np.linalg.lstsq(table, right, rcond=None)[0]
    coefficients = (coefficients + coefficients.T) / 2
    expected = np.vstack([coefficients, mean_slope - mean @ coefficients])
    np.testing.assert_allclose(importance.with_slope_model(view).slope_model, expected, rtol=1e-9, atol=1e-12)


def test_there_is_no_model_of_few_rows_or_of_very_many_features() -> None:
    assert fitted(64)[1].slope_model.shape == (0, 2)  # a phase ends after 60 rounds, the next one after 90
    assert fitted(91)[1].slope_model.shape == (3, 2)
    assert fitted(91, d=257)[1].slope_model.shape == (0, 257)


def test_new_features_have_no_slopes() -> None:
    learner, before = fitted(95)
    learner.add_features([1.0, 1.0])
    after = learner.state_.core.parts().importance
    assert after is not None
    assert after.slope_model.tolist() == with_new_features(before.slope_model, 2).tolist()
    assert after.slope_model[-1].tolist() == [*before.slope_model[-1].tolist(), 0.0, 0.0]
    assert not after.slope_model[2:4].any()
