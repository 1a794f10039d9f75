"""Comparison of `MetricRegressor` with a slow, literal reference over whole streams."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from ellipack import MetricConfig, MetricRegressor
from ellipack.learners.intervals import Intervals
from tests.reference.conformal import COVERAGES
from tests.reference.feature_views import Floats
from tests.reference.metric_learner import ReferenceMetricLearner
from tests.reference.past import ReferencePastLearner

CLOSE = 1e-8
"""Tolerance relative to the range of the labels; absolute for weights and metrics."""

DECISIVE = 1e-4
"""Smallest gap in log error after the last finalist. With a smaller gap, finalists may depend on the precision."""

Stream = tuple[Floats, Floats]


def smooth(rng: np.random.Generator, n: int, d: int) -> Stream:
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, -1] ** 2 + 0.05 * rng.normal(size=n)


def smooth_and_far_from_zero(rng: np.random.Generator, n: int, d: int) -> Stream:
    X, y = smooth(rng, n, d)
    return X + 100, y + 1e6


def drift(rng: np.random.Generator, n: int, d: int) -> Stream:
    """The features move, and so does the function."""
    X, time = rng.normal(size=(n, d)), np.linspace(0, 3, n)
    return X + time[:, None], X[:, 0] * np.cos(time) + X[:, -1] * np.sin(time) + time


def noise(rng: np.random.Generator, n: int, d: int) -> Stream:
    return rng.normal(size=(n, d)), rng.normal(size=n)


def duplicates(rng: np.random.Generator, n: int, d: int) -> Stream:
    """Half of the rows repeat one of twenty places, with other labels."""
    X, _ = smooth(rng, n, d)
    repeated, places = rng.random(n) < 0.5, rng.normal(size=(20, d))
    X[repeated] = places[rng.integers(20, size=repeated.sum())]
    return X, np.sin(X[:, 0]) + X[:, -1] + 0.2 * rng.normal(size=n)


def grid(rng: np.random.Generator, n: int, d: int) -> Stream:
    """Whole numbers, so that neighbors on both sides are often as near as each other."""
    X = rng.integers(-15, 60, size=(n, d)).astype(float)
    return X, np.sin(X[:, 0] / 5) + 0.1 * rng.normal(size=n)


def discrete_and_constant(rng: np.random.Generator, n: int, d: int) -> Stream:
    """A binary feature, one that is constant but for rounding, one that starts to vary late, and others."""
    X, _ = smooth(rng, n, d)
    X[:, 0], X[:, 1] = rng.integers(2, size=n), 7.3 * (1 + 1e-15 * rng.normal(size=n))
    X[:50, 2] = -2.0
    return X, X[:, 0] * np.sin(X[:, 2]) + X[:, -1]


def units_apart(rng: np.random.Generator, n: int, d: int) -> Stream:
    X, y = smooth(rng, n, d)
    return X * 10.0 ** np.linspace(-6, 5, d), y


def constant_then_huge(rng: np.random.Generator, n: int, d: int) -> Stream:
    """The features are 0 until round 60, and then millions of the units that they have until the phase ends."""
    X, y = smooth(rng, n, d)
    huge = 4e6 * X
    huge[:60] = 0
    return huge, y


def outliers(rng: np.random.Generator, n: int, d: int) -> Stream:
    X, y = smooth(rng, n, d)
    X[rng.random((n, d)) < 0.02] *= 1e3
    y[rng.random(n) < 0.02] *= 1e3
    X[0], y[4] = 40.0, 3.0
    return X, y


def louder(rng: np.random.Generator, n: int, d: int) -> Stream:
    """The labels vary a thousand times as much from round 50 on."""
    X, y = smooth(rng, n, d)
    y[:50] /= 1000
    return X, y


def silent_first(rng: np.random.Generator, n: int, d: int) -> Stream:
    """All labels are 0 until round 40."""
    X, y = smooth(rng, n, d)
    y[:40] = 0
    return X, y + np.where(np.arange(n) < 40, 0.0, X[:, 1])


FEW_CANDIDATES = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,))
"""Settings with 8 candidates for the metric instead of 26."""


@dataclass
class Case:
    """A stream, and the parameters of the learners. The default of `config` is `FEW_CANDIDATES`."""

    make: Callable[[np.random.Generator, int, int], Stream]
    d: int
    n: int = 140
    parameters: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    close: float = CLOSE

    def __post_init__(self) -> None:
        self.parameters.setdefault("config", FEW_CANDIDATES)

    def __str__(self) -> str:
        settings = [f"{name}={value}" for name, value in self.parameters.items() if name != "config"]
        return "-".join([self.make.__name__, f"d={self.d}", f"n={self.n}", *settings, f"seed={self.seed}"])


OTHER = MetricConfig(
    growth=1.3,
    powers=(0.4, 0.6),
    ridges=(0.003, 0.03, 0.1),
    validation_points=24,
    pool=48,
    label_margin=0.2,
    stack_prior=5.0,
)

QUICK = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,), validation_points=24, pool=60)

CASES = [
    Case(smooth, 2, parameters={"config": MetricConfig()}, seed=4),
    Case(smooth, 1, parameters={"neighbors": 4}),
    Case(smooth, 3, 320, {"views": 2, "config": MetricConfig(growth=2.5)}, seed=2),
    Case(smooth, 3, 210, {"views": 2, "neighbors": 5, "max_centers": 70}, seed=1),
    Case(smooth, 2, 1060, {"config": MetricConfig(growth=2.0)}, seed=6),
    Case(smooth, 3, parameters={"config": OTHER, "views": 2}),
    Case(smooth, 3, 210, {"config": OTHER, "neighbors": 12, "max_centers": 96, "random_state": 7}),
    Case(smooth_and_far_from_zero, 2, 210, {"config": MetricConfig()}),
    Case(smooth_and_far_from_zero, 5, parameters={"neighbors": 8}),
    Case(drift, 5, parameters={"max_centers": 48}),
    Case(drift, 8, 320, {"max_centers": 48, "config": MetricConfig(growth=3.0)}),  # fills Algorithm 1's 64 centers
    Case(drift, 2, 210, {"neighbors": 8, "max_centers": 64, "config": MetricConfig()}),
    Case(drift, 3, parameters={"views": 2, "max_centers": 32}),
    Case(noise, 3, parameters={"views": 2, "neighbors": 6}, seed=1),
    Case(duplicates, 3),
    Case(duplicates, 3, 210, {"views": 2, "neighbors": 10}, seed=1),
    Case(duplicates, 3, parameters={"max_centers": 32, "neighbors": 7}),
    Case(grid, 1),
    Case(grid, 1, parameters={"views": 2, "neighbors": 9}),
    Case(grid, 1, parameters={"max_centers": 32, "neighbors": 6}),
    Case(discrete_and_constant, 5),
    Case(discrete_and_constant, 4, parameters={"views": 2, "config": MetricConfig()}),
    Case(units_apart, 5),
    Case(units_apart, 4, parameters={"views": 2}),
    Case(constant_then_huge, 1, close=1e-5),  # a recursive inverse that falls by 1e12 loses digits
    Case(outliers, 2, 210, seed=2),
    Case(outliers, 5, parameters={"views": 2}, seed=3),
    Case(outliers, 3, parameters={"max_centers": 32, "neighbors": 12}, seed=1),
    Case(louder, 2),
    Case(silent_first, 41, 460, {"config": MetricConfig(growth=10.0)}),
    Case(smooth, 60),
    Case(drift, 70, 100, {"views": 2, "max_centers": 64}),
]


def waves(rng: np.random.Generator, n: int, d: int) -> Stream:
    """The label depends on the features and on the two labels before."""
    X, y = rng.normal(size=(n, d)), np.zeros(n)
    for t in range(2, n):
        y[t] = 1.6 * y[t - 1] - 0.8 * y[t - 2] + np.sin(X[t, 0]) + 0.1 * rng.normal()
    return X, y


def levels(rng: np.random.Generator, n: int, d: int) -> Stream:
    """Five keys, in the last column, with levels of their own that move slowly."""
    X = rng.normal(size=(n, d))
    X[:, -1] = rng.integers(5, size=n)
    moving = 3 * rng.normal(size=5) + np.cumsum(0.1 * rng.normal(size=(n, 5)), axis=0)
    return X, moving[np.arange(n), X[:, -1].astype(int)] + X[:, 0]


FEW_KEYS = MetricConfig(max_keys=3, validation_points=24, pool=60)

PAST_CASES = [
    Case(waves, 2, 210, {"config": MetricConfig()}, seed=3),
    Case(waves, 3, 160, {"past": 1, "views": 2}, seed=2),
    Case(waves, 2, 200, {"past": 5, "max_centers": 64, "neighbors": 8}),
    Case(waves, 45, 90, {"neighbors": 8}),  # the past without the features
    Case(smooth, 2, 620, {"neighbors": 8, "config": QUICK}, seed=2),  # the past earns nothing, and is only tried
    Case(noise, 1, 430, {"neighbors": 4, "config": QUICK, "max_centers": 100}),
    Case(outliers, 2, 210, {"config": QUICK}),
    Case(levels, 3, 220, {"by": 2, "config": QUICK}),
    Case(levels, 2, 200, {"by": 1, "past": 1, "config": FEW_KEYS}),
    Case(silent_first, 2, 150, {"by": [0, 1]}, seed=1),
]


@pytest.mark.parametrize("case", PAST_CASES, ids=str)
def test_learner_with_the_past_follows_the_reference(case: Case) -> None:
    rng = np.random.default_rng([case.seed, case.d, case.n])
    X, y = case.make(rng, case.n, case.d)
    learner = MetricRegressor(n_jobs=1, **case.parameters)
    predictions, intervals = learner.progressive(X, y, coverage=COVERAGES)
    history = learner.history()
    parameters = dict(case.parameters)
    by, labels = parameters.pop("by", None), parameters.pop("past", 3)
    columns = [] if by is None else [by] if isinstance(by, int) else by
    keys = [hash(tuple(row[columns])) for row in X]
    most = 0 if by is None else parameters["config"].max_keys
    reference = ReferencePastLearner(case.d, labels, most, (history.choices, history.past_choices), **parameters)
    published = [reference.learn(*each) for each in zip(X, y, keys, strict=True)]
    tolerance = case.close * (reference.plain.labels.high - reference.plain.labels.low)
    np.testing.assert_allclose(predictions, [prediction for prediction, *_ in published], rtol=0, atol=tolerance)
    assert_same_intervals(intervals, [bounds for _, bounds, _ in published], tolerance)
    assert history.past_choices == [phase.choices for phase in reference.with_past.phases]
    both = [*reference.with_past.phases, *(reference.plain.phases if case.d > 1 else [])]
    assert min(phase.finalist_gap for phase in both) > DECISIVE, "draw another stream"
    without_past, with_past = reference.total_errors
    assert learner.past_gain_ == pytest.approx(1 - with_past / without_past)


def assert_same_intervals(intervals: Intervals, expected: list[list[float]], tolerance: float) -> None:
    ends = np.hstack(intervals)
    assert np.isinf(ends).all(axis=1).sum() == np.isinf(ends).any(axis=1).sum() == np.isinf(expected).any(axis=1).sum()
    np.testing.assert_allclose(ends, expected, rtol=1e-9, atol=100 * tolerance)  # scales add up many errors


def queries(X: Floats, rng: np.random.Generator) -> Floats:
    """Return rows that were learned, rows between, and rows far outside."""
    between = 0.7 * X[:6] + 0.3 * X[6:12]  # not halfway: rounding would decide which is nearer
    outside = X[12:16] + 30 * np.ptp(X, axis=0) * rng.choice([-1.0, 0.0, 1.0], size=(4, X.shape[1]))
    return np.vstack([X[-4:], between, outside])


@pytest.mark.parametrize("case", CASES, ids=str)
def test_learner_follows_the_reference(case: Case) -> None:
    rng = np.random.default_rng([case.seed, case.d, case.n])
    X, y = case.make(rng, case.n, case.d)
    learner = MetricRegressor(past=False, n_jobs=1, **case.parameters)
    predictions, intervals = learner.progressive(X, y, coverage=COVERAGES)
    history = learner.history()
    reference = ReferenceMetricLearner(case.d, choices=history.choices, **case.parameters)
    published = [reference.learn(row, label) for row, label in zip(X, y, strict=True)]

    # Labels that were outliers do not extend the range.
    tolerance = case.close * (reference.labels.high - reference.labels.low)
    np.testing.assert_allclose(predictions, [prediction for prediction, *_ in published], rtol=0, atol=tolerance)
    assert_same_intervals(intervals, [bounds for _, bounds, _ in published], tolerance)
    unseen = queries(X, rng)
    expected = [reference.publish(row)[1] for row in unseen]
    assert_same_intervals(learner.predict_interval(unseen, COVERAGES), expected, tolerance)
    np.testing.assert_allclose(
        learner.predict(unseen), [reference.predict(row) for row in unseen], rtol=0, atol=tolerance
    )

    phases = reference.phases
    assert len(phases) >= 8 or case.parameters["config"].growth > 1.5
    assert reference.evictions > 0 or case.n < case.parameters.get("max_centers", np.inf)
    assert history.choices == [phase.choices for phase in phases]
    assert case.d == 1 or min(phase.finalist_gap for phase in phases) > DECISIVE, "draw another stream"
    assert history.end.tolist() == [phase.end for phase in phases]
    assert history.n_centers.tolist() == [phase.n_centers for phase in phases]
    assert history.effective_rank.tolist() == [phase.effective_rank for phase in phases]
    np.testing.assert_allclose(history.eigenvalues, [phase.eigenvalues for phase in phases], rtol=case.close)
    np.testing.assert_allclose(history.expert_weights, [phase.expert_weights for phase in phases], atol=case.close)
    weights = [np.diag(phase.metric) / np.trace(phase.metric) for phase in phases]
    np.testing.assert_allclose(history.feature_weights, weights, atol=case.close)

    assert learner.n_centers_ == len(reference.centers)
    np.testing.assert_allclose(learner.expert_weights_, reference.aggregation.weights(), atol=case.close)
    np.testing.assert_allclose(learner.metric_.matrix, reference.metric, atol=case.close)
    scale = reference.views[0].scale
    in_own_units = learner.directions_.T * learner.eigenvalues_ @ learner.directions_
    np.testing.assert_allclose(in_own_units * np.outer(scale, scale), reference.metric, atol=case.close)
