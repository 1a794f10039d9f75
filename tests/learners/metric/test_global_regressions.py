from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ellipack._core import FeatureView, LeastSquares, MetricParts
from ellipack.learners.metric import global_regressions, learner
from ellipack.validation import Floats
from tests.learners.metric.learners import new_state
from tests.reference import aggregation
from tests.strategies import seeds


def reference_fit(standard: Floats, counts: Floats, label_sums: Floats) -> aggregation.LeastSquares:
    features = np.column_stack([standard, np.ones(len(standard))])
    prior = np.diag([*np.ones(standard.shape[1]), 1e-6])
    return aggregation.LeastSquares(features.T @ np.diag(counts) @ features + prior, features.T @ label_sums)


@given(st.integers(1, 12), st.integers(1, 12), seeds)
def test_both_fits_equal_the_reference_ridge_regression(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    standard, counts = rng.normal(size=(n, d)), rng.integers(1, 4, size=n).astype(float)
    label_sums = counts * (5.0 + rng.normal(size=n))
    expected = reference_fit(standard, counts, label_sums)
    for fit in (global_regressions._fit_few_rows, global_regressions._fit_many_rows):
        fitted = fit(standard, counts, label_sums)
        np.testing.assert_allclose(fitted.coefficients, expected.coefficients, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(fitted.inverse, np.linalg.inv(expected.gram), rtol=1e-6, atol=1e-6)
        assert np.array_equal(fitted.inverse, fitted.inverse.T)


def test_fit_of_few_rows_is_symmetric_to_the_bit_with_many_features() -> None:
    rng = np.random.default_rng(0)
    standard, counts = rng.normal(size=(11, 301)), rng.integers(1, 4, size=11).astype(float)
    inverse = global_regressions._fit_few_rows(standard, counts, counts * rng.normal(size=11)).inverse
    assert np.array_equal(inverse, inverse.T)
    expected = np.linalg.inv(reference_fit(standard, counts, counts).gram)
    np.testing.assert_allclose(inverse, expected, rtol=1e-6, atol=1e-6)


def test_fit_of_few_rows_is_accurate_for_labels_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    standard, labels = rng.normal(size=(4, 9)), 1e9 + rng.normal(size=4)
    fitted = global_regressions._fit_few_rows(standard, np.ones(4), labels)
    predicted = standard @ fitted.coefficients[:-1] + fitted.coefficients[-1]
    # The prior of the constant pulls it by 1e-6 of 1e9 over the number of rows.
    assert np.abs(predicted - labels).max() < 1e-6 * 1e9
    near_zero = global_regressions._fit_few_rows(standard, np.ones(4), labels - 1e9)
    pull = 1e9 * global_regressions._fit_few_rows(standard, np.ones(4), np.ones(4)).coefficients
    np.testing.assert_allclose(fitted.coefficients, near_zero.coefficients + pull, rtol=1e-12, atol=1e-6)


@given(st.integers(1, 6), seeds)
def test_a_converted_regression_predicts_the_same(d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)

    def view() -> FeatureView:
        shift, scale = rng.normal(size=d), 10.0 ** rng.uniform(-1, 1, size=d)
        return FeatureView(np.zeros((0, d)), shift, scale, np.eye(d), np.zeros((d, d)), d)

    old, new, X = view(), view(), rng.normal(size=(30, d))
    regression = LeastSquares(np.eye(d + 1), np.zeros(d + 1))

    def features(of: FeatureView, rows: Floats) -> Floats:
        return np.column_stack([of.standardize(rows), np.ones(len(rows))])

    for x in features(old, X):
        regression.update(x, rng.normal())
    converted = deepcopy(regression)
    global_regressions._convert(converted, old, new)
    before, after = features(old, X), features(new, X)
    np.testing.assert_allclose(after @ converted.coefficients, before @ regression.coefficients, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(after @ converted.inverse @ after.T, before @ regression.inverse @ before.T, atol=1e-8)
    assert np.array_equal(converted.inverse, converted.inverse.T)


@pytest.mark.parametrize(("d", "refits"), [(3, True), (500, False)])
def test_regressions_with_many_features_are_refitted_only_while_cheap(
    d: int, refits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted, fit = [], global_regressions._refit

    def counted(parts: MetricParts, new: FeatureView) -> LeastSquares:
        fitted.append(len(parts.centers))
        return fit(parts, new)

    monkeypatch.setattr(global_regressions, "_refit", counted)
    monkeypatch.setattr(global_regressions, "_MAX_REFIT_WORK", 1e6)
    rng = np.random.default_rng(0)
    state = new_state(d, 1, 8)
    X = rng.normal(size=(20, d))
    learner.learn(state, X, X[:, 0])
    ends = [phase.end for phase in state.phase.summaries]
    assert ends == [4, 8, 12, 18]
    assert len(fitted) == (len(ends) if refits else 1)
