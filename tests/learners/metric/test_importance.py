"""Importance of columns, measured by the rise in squared error."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from ellipack import MetricRegressor, load
from ellipack._core import FeatureGroup
from ellipack.errors import ModelFileError
from ellipack.learners.metric import column_groups, serialization
from ellipack.learners.metric.column_groups import ALL, COLUMN, FEATURES, TIME, initial_importance, regroup
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.importance_estimates import RiseEstimate, split_time, to_shares
from ellipack.river import MetricRegressor as RiverMetricRegressor
from ellipack.validation import Floats
from tests.reference.column_importance import (
    MAX_PAIRED,
    MAX_ROWS,
    PRIOR_MEASUREMENTS,
    SOURCE_PART,
    Group,
    LiteralImportance,
    random_bits,
)
from tests.reference.metric_learner import ReferenceMetricLearner

FEW_CANDIDATES = MetricConfig(powers=(0.5,), ridges=(0.01,))


def linear(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a stream whose variance shares are 9 : 4 : 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 3 * X[:, 0] + 2 * X[:, 1] + 0.5 * rng.normal(size=n)


def curved(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a stream with a product, a square, and labels that some surrogates leave far behind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2 * X[:, 0] * X[:, 1] + X[:, 2] ** 2 + 0.5 * rng.normal(size=n)


def wide(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a stream with products of features, and more features than the products of which surrogates use."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, MAX_PAIRED + 1))
    return X, 2 * X[:, 0] * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)


def flagged(n: int, seed: int = 0) -> tuple[Floats, Floats]:
    """Return a stream with a rare flag and a constant, which mostly have the same value in two rows."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.random(n) < 0.1, np.ones(n)])
    return X, X[:, 0] + 3 * X[:, 1] + 0.5 * rng.normal(size=n)


@pytest.mark.parametrize(("stream", "rows"), [(linear, 700), (curved, 700), (wide, 300), (flagged, 700)])
def test_measurements_are_those_of_the_literal_version(
    stream: Callable[[int], tuple[Floats, Floats]], rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with the past, which the literal version has not, there are groups of all features, of a lower priority.
    monkeypatch.setattr(column_groups, "_has_past", lambda _: True)
    X, y = stream(rows)
    d = X.shape[1]
    parameters: dict[str, Any] = {"neighbors": 12, "random_state": 3, "config": FEW_CANDIDATES}
    learner = MetricRegressor(past=False, **parameters).fit(X, y)
    measured = learner.state_.core.parts().importance
    assert measured is not None
    groups = [Group([k], 1.0) for k in range(d)]
    groups += [Group([], 0.2), Group(list(range(d)), 0.2), Group(list(range(d)), 0.2)]
    reference = ReferenceMetricLearner(d, choices=learner.history().choices, **parameters)
    literal = LiteralImportance(groups, reference, seed=3)
    for row, label in zip(X, y, strict=True):
        literal.learn(row, float(label))
    assert [group.count for group in measured.groups] == [len(group.total.measured) for group in literal.groups]
    sample, gradients, _ = measured.sample
    np.testing.assert_array_equal(sample, literal.rows)
    np.testing.assert_allclose(gradients, literal.gradients, rtol=1e-6, atol=1e-6)
    for group, expected in zip(measured.groups, literal.groups, strict=True):
        recent = expected.recent.estimate(expected.total, PRIOR_MEASUREMENTS)
        assert group.estimate[:2] == pytest.approx(expected.total.estimate(expected.total), rel=1e-6, abs=1e-9)
        assert group.recent_estimate[:2] == pytest.approx(recent, rel=1e-6, abs=1e-9)
        assert group.estimate[2] == pytest.approx(expected.total.count(), rel=1e-6)
        assert group.recent_estimate[2] == pytest.approx(expected.recent.count(), rel=1e-6)


def test_replacements_come_from_a_uniform_sample_of_the_rows() -> None:
    X = np.random.default_rng(0).uniform(size=(1500, 1))
    measured = MetricRegressor(past=False, random_state=3).fit(X, X[:, 0]).state_.core.parts().importance
    assert measured is not None
    expected = X[1 : MAX_ROWS + 1, 0].copy()  # the first row has no prediction
    for clock in range(MAX_ROWS + 1, len(X)):
        if (place := random_bits(3, clock, 1) % clock) < MAX_ROWS:
            expected[place] = X[clock, 0]
    np.testing.assert_array_equal(measured.sample[0][:, 0], expected)


@pytest.mark.parametrize("rounds", [700, 5000])
def test_the_variance_counts_earlier_rows_by_how_often_they_are_sources(rounds: int) -> None:
    t = np.arange(1, rounds + 1)
    # Rounds before t with the same source: that of round s is kept in round t with probability s / t.
    same = np.where(t <= MAX_ROWS, 1.0, (MAX_ROWS + (t**2 - MAX_ROWS**2) / (2 * MAX_ROWS)) / t)
    sums = np.zeros((2, FeatureGroup.sum_count))
    measured, controls, sums[0, -2:] = sums[0, :44].reshape(2, 22), sums[0, 44:-2], (rounds, 1.0)
    measured[:, :2], controls[:2] = 10, rounds
    measured[:, [7, 17, 21]], controls[6] = 10, rounds  # products: the rise is the first control, of variance 1
    group = FeatureGroup(np.zeros(1, dtype=np.int64), False, 1.0, 10, 0.0, (0.0, 0.0), (0.0, 0.0), sums)
    expected = 1 / rounds + SOURCE_PART * 2 * same.sum() / rounds**2
    assert group.estimate[1] == pytest.approx(expected, rel=0.01)


def test_measurements_do_not_change_predictions() -> None:
    X, y = linear(400)
    y = y + np.cumsum(np.random.default_rng(1).normal(size=400))  # the past is of use
    silent = MetricRegressor(config=MetricConfig(importance=False))
    np.testing.assert_array_equal(MetricRegressor().progressive(X, y), silent.progressive(X, y))
    assert silent.importances_ is None
    assert not hasattr(silent, "feature_importances_")


@pytest.mark.parametrize("past", [False, True])
def test_the_same_bits_by_row_in_batches_and_after_a_resume(past: bool, tmp_path: Path) -> None:
    X, y = linear(500)
    y = y + np.cumsum(np.random.default_rng(1).normal(size=500))
    whole, parts = MetricRegressor(past=past).fit(X, y), MetricRegressor(past=past)
    for start in range(0, 500, 37):
        parts.partial_fit(X[start : start + 37], y[start : start + 37])
        parts.save(tmp_path / "model")
        parts = load(tmp_path / "model")
    river = RiverMetricRegressor(past=past)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        river.predict_one(dict(enumerate(row)))
        river.learn_one(dict(enumerate(row)), label)
    np.testing.assert_array_equal(parts.feature_importances_, whole.feature_importances_)
    np.testing.assert_array_equal(parts.feature_importances_std_, whole.feature_importances_std_)
    known = ~np.isnan(whole.feature_importances_std_)
    assert list(river.feature_importances.values()) == whole.feature_importances_[known].tolist()
    assert MetricRegressor(past=past, random_state=1).fit(X, y).importances_ != whole.importances_


def test_shares_are_close_to_those_of_the_variance() -> None:
    learner = MetricRegressor().fit(*linear(2000))
    np.testing.assert_allclose(learner.feature_importances_, [9 / 13, 4 / 13, 0], atol=0.05)
    assert (learner.feature_importances_std_ < 0.04).all()
    measured = learner.importances_
    assert measured is not None
    assert [each.columns for each in measured.drivers] == [("0",), ("1",)]


def test_it_is_too_early_to_say_before_all_features_are_measured() -> None:
    learner = MetricRegressor().fit(*linear(40))
    assert learner.feature_importances_.tolist() == [0, 0, 0]
    assert np.isnan(learner.feature_importances_std_).all()
    assert learner.importances_ is not None
    assert not any(each.is_known or each.is_driver for each in learner.importances_.columns)


def test_a_constant_column_has_no_importance_without_a_measurement() -> None:
    learner = MetricRegressor().fit(*flagged(300))
    assert learner.importances_ is not None
    constant = next(each for each in learner.importances_.columns if each.columns == ("2",))
    assert constant.is_known
    assert (constant.count, constant.rise, constant.rise_std) == (0, 0.0, 0.0)
    early = MetricRegressor().fit(*flagged(90)).importances_
    assert early is not None
    assert not next(each for each in early.columns if each.columns == ("2",)).is_known


def test_constant_columns_take_no_measurements_from_others() -> None:
    X, y = linear(500)
    with_constants = np.column_stack([X, np.ones((500, 3))])
    alone, beside = (MetricRegressor().fit(rows, y).importances_ for rows in (X, with_constants))
    assert alone is not None
    assert beside is not None
    assert sum(each.count for each in beside.columns) > 0.8 * sum(each.count for each in alone.columns)


def test_features_of_a_column_are_measured_together_and_correlated_columns_as_well() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 1200))
    X = np.column_stack([a, 0.95 * a + 0.3 * b, b, c])
    learner = MetricRegressor().set_columns(["a", "near a", "bc", "bc"]).fit(X, a + b + c)
    measured = learner.importances_
    assert measured is not None
    assert {each.columns for each in measured.groups} == {("a", "near a"), ("bc",)}
    assert sum(each.share for each in measured.groups) == pytest.approx(1)
    assert measured.columns[0].columns == ("bc",)
    assert learner.feature_importances_[2] == learner.feature_importances_[3]


def test_copies_share_one_importance_whatever_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    a, b, c, d = rng.normal(size=(4, 1200))
    X, y = np.column_stack([a, a + 0.1 * b, a + 0.1 * c, d]), 4 * a + 2 * d
    shares = []
    for seed in range(3):
        rows = np.random.default_rng(seed).permutation(1200)
        learner = MetricRegressor().fit(X[rows], y[rows])
        assert learner.importances_ is not None
        assert [each.columns for each in learner.importances_.drivers] == [("0", "1", "2"), ("3",)]
        assert learner.feature_importances_.sum() == pytest.approx(1)
        shares.append(learner.feature_importances_)
    assert np.ptp(shares, axis=0)[:3].max() < 0.05


def test_row_numbers_are_time_and_not_features() -> None:
    rng = np.random.default_rng(0)
    a, noise = rng.normal(size=(2, 1500))
    level = np.zeros(1500)
    for t in range(1, 1500):
        level[t] = 0.99 * level[t - 1] + noise[t]
    learner = MetricRegressor().fit(np.column_stack([a, np.arange(1500.0)]), a + level)
    measured = learner.importances_
    assert measured is not None
    assert measured.time_columns == ("1",)
    assert learner.feature_importances_[1] == 0
    assert [each.columns for each in measured.columns] == [("0",)]
    assert measured.split is not None
    assert measured.split.time > measured.split.features > 0


def test_time_is_told_from_features_only_if_there_is_time() -> None:
    X, y = linear(300)
    timeless = MetricRegressor(past=False).fit(X, y)
    assert {key.kind for key in timeless.state_.phase.layout.keys} == {COLUMN}
    assert timeless.importances_ is not None
    assert timeless.importances_.split is None
    with_row_number = MetricRegressor(past=False).fit(np.column_stack([X, np.arange(300.0)]), y)
    for learner in (with_row_number, MetricRegressor().fit(X, y)):
        assert {key.kind for key in learner.state_.phase.layout.keys} == {COLUMN, TIME, FEATURES, ALL}
    assert with_row_number.importances_ is not None
    assert with_row_number.importances_.split is not None


def test_the_past_of_the_label_is_time() -> None:
    noise, X = np.random.default_rng(0).normal(size=(2, 600))
    measured = MetricRegressor().fit(X[:, None], np.cumsum(noise)).importances_
    assert measured is not None
    assert measured.split is not None
    assert measured.split.time > 0.9


def test_what_grows_with_few_exceptions_is_time() -> None:
    rng = np.random.default_rng(0)
    a, steps = rng.normal(size=(2, 700))
    growing = np.exp(np.cumsum(0.005 + 0.002 * steps))  # which a line fits badly
    learner = MetricRegressor().fit(np.column_stack([a, growing]), a + growing)
    assert learner.importances_ is not None
    assert learner.importances_.time_columns == ("1",)


def test_a_late_feature_has_no_weight_and_no_share_until_it_is_judged() -> None:
    X, y = linear(400)
    learner = MetricRegressor().fit(X, y)
    rank = learner.effective_rank_
    learner.add_features([1.0])
    assert learner.effective_rank_ == rank
    assert learner.metric_.feature_weights[-1] < 1e-6
    assert learner.feature_importances_[-1] == 0
    assert math.isnan(learner.feature_importances_std_[-1])


def test_a_late_feature_is_measured_soon() -> None:
    X, y = linear(1100)
    learner = MetricRegressor().fit(X[:600], y[:600])
    learner.add_features([1.0])
    learner.partial_fit(np.column_stack([X, np.random.default_rng(1).normal(size=1100)])[600:], y[600:])
    assert learner.importances_ is not None
    late = next(each for each in learner.importances_.columns if each.columns == ("3",))
    assert late.count >= 6
    assert late.share < 0.05


def test_shares_add_up_to_one_and_unknown_estimates_have_none() -> None:
    shares = to_shares([RiseEstimate(3.0, 0.3), RiseEstimate(1.0, 0.1), RiseEstimate(math.nan, math.nan)])
    assert shares.values[:2].tolist() == [0.75, 0.25]
    assert np.isnan(shares.values[2])
    # The derivatives of 3 / 4 are (1 - 3 / 4) / 4 and -(3 / 4) / 4.
    assert shares.stds[0] == pytest.approx(np.hypot(0.3 / 16, 0.1 * 3 / 16))


def test_without_a_rise_all_shares_are_zero_and_uncertain() -> None:
    shares = to_shares([RiseEstimate(-0.2, 0.3), RiseEstimate(0.0, 0.1), RiseEstimate(math.nan, math.nan)])
    np.testing.assert_array_equal(shares.values, [0.0, 0.0, math.nan])
    np.testing.assert_allclose(shares.stds, [0.75, 0.25, math.nan])
    assert to_shares([RiseEstimate(0.0, 0.0)]).values.tolist() == [0.0]


@pytest.mark.parametrize(
    ("time", "features", "everything", "split"),
    [
        (6.0, 4.0, 10.0, (0.6, 0.4, 0.0)),
        (6.0, 3.0, 10.0, (0.6, 0.3, 0.1)),  # either would do for a tenth
        (7.0, 4.0, 10.0, (0.65, 0.35, 0.0)),  # a tenth needs both, and each gets half of it
    ],
)
def test_time_and_features_add_up_to_one(
    time: float, features: float, everything: float, split: tuple[float, float, float]
) -> None:
    found = split_time(RiseEstimate(time, 0.1), RiseEstimate(features, 0.1), RiseEstimate(everything, 0.1))
    assert found is not None
    assert found[:3] == pytest.approx(split)
    assert split_time(RiseEstimate(time, 0.1), RiseEstimate(features, 0.1), RiseEstimate(1.0, 0.9)) is None
    unclear = split_time(RiseEstimate(time, 0.1), RiseEstimate(features, 0.1), RiseEstimate(9.0, 5.0))
    assert unclear is not None  # what each explains is clear
    assert unclear.time == pytest.approx(time / (time + features))
    assert split_time(RiseEstimate(time, 9.0), RiseEstimate(features, 9.0), RiseEstimate(9.0, 5.0)) is None
    assert split_time(RiseEstimate(math.nan, math.nan), RiseEstimate(features, 0.1), RiseEstimate(9.0, 0.1)) is None


def test_groups_that_numpy_could_not_read_are_an_error() -> None:
    """Without memory, NumPy takes the array of a group for an object."""
    importance, layout = initial_importance((0, 1), 0, 0)
    unreadable = [SimpleNamespace(features=np.array(object())) for _ in importance.groups]
    with pytest.raises(TypeError):
        regroup(cast("Any", SimpleNamespace(groups=unreadable)), layout, layout)


@pytest.mark.parametrize("columns", [[], [0], [0, 0], [0, 2]])
def test_files_with_impossible_groups_of_correlated_columns_are_refused(columns: list[int]) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), np.zeros(300), np.arange(300.0)])
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=300)
    learner = MetricRegressor(past=False).fit(X, X[:, 0])
    saved = serialization.to_archive(learner.state_)
    facts = saved.facts["importance"]
    assert facts["group_columns"][facts["kinds"].index("together")] == [0, 1]
    serialization.from_archive(saved, 3)
    facts["group_columns"][facts["kinds"].index("together")] = columns
    with pytest.raises(ModelFileError, match="importance/group"):
        serialization.from_archive(saved, 3)


@pytest.mark.parametrize("rows", [300, 500, 1000])
def test_useless_columns_of_a_stream_without_noise_have_no_share(rows: int) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=rows), rng.integers(0, 2, rows), rng.integers(20, 90, rows)])
        shares = MetricRegressor(random_state=seed).fit(X, 3 * X[:, 0] + 5 * X[:, 1]).feature_importances_
        assert shares[2] < 0.002
