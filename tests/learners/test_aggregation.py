from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._core import BernsteinAggregation, LeastSquares
from ellipack.errors import DomainError
from ellipack.learners.aggregation import regret_bound, restart_aggregation, uniform_aggregation
from ellipack.validation import Floats
from tests.strategies import seeds

KINDS = ["noise", "one good expert", "adversary", "bursts"]


@dataclass
class AggregationRun:
    losses: Floats  # of the aggregation, round by round
    expert_losses: Floats  # a column for each expert
    first_scale: float
    aggregation: BernsteinAggregation


def run_aggregation(
    aggregation: BernsteinAggregation, rounds: int, seed: int, kind: str, size: float
) -> AggregationRun:
    """Play rounds on a stream of some kind."""
    experts = len(aggregation.gains)
    rng = np.random.default_rng(seed)
    run = AggregationRun(np.zeros(rounds), np.zeros((rounds, experts)), 0.0, aggregation)
    for t in range(rounds):
        predictions = rng.normal(size=experts) * size
        if kind == "one good expert":
            predictions[experts // 2] = np.sin(t / 5) * size
        prediction = float(aggregation.weights() @ predictions)
        label = {
            "noise": rng.normal() * size,
            "one good expert": np.sin(t / 5) * size,
            # Away from the prediction, and so worst for the experts that have the most weight.
            "adversary": size if prediction < size / 2 else 0.0,
            "bursts": size * 10.0 ** rng.integers(0, 9) if t % 17 == 0 else 0.0,
        }[kind]
        run.losses[t], run.expert_losses[t] = (prediction - label) ** 2, (predictions - label) ** 2
        aggregation.update(predictions, prediction, label)
        run.first_scale = run.first_scale or aggregation.scale
    return run


def bound(run: AggregationRun, k: int) -> float:
    return regret_bound(
        prior=float(np.exp(run.aggregation.log_priors[k])),
        squares=float(run.aggregation.squares[k]),
        experts=run.expert_losses.shape[1],
        rounds=len(run.losses),
        scale=run.aggregation.scale,
        first_scale=run.first_scale,
    )


@settings(max_examples=50)
@given(st.integers(2, 8), st.integers(1, 120), seeds, st.sampled_from(KINDS), st.sampled_from([1e-12, 1.0, 1e12]))
def test_regret_bound_holds_on_any_stream(experts: int, rounds: int, seed: int, kind: str, size: float) -> None:
    aggregation = uniform_aggregation(experts)
    for _ in range(3):  # and after each restart again
        run = run_aggregation(aggregation, rounds, seed, kind, size)
        for k in range(experts):
            assert run.losses.sum() - run.expert_losses[:, k].sum() <= bound(run, k)
        aggregation, seed = restart_aggregation(aggregation), seed + 1


def test_regret_bound_is_not_trivial() -> None:
    run = run_aggregation(uniform_aggregation(6), 5000, 0, "one good expert", 1.0)
    totals = run.expert_losses.sum(axis=0)
    good, others = totals[3], np.delete(totals, 3)
    assert good + bound(run, 3) < 0.1 * others.min()  # no other expert satisfies it
    assert run.losses.sum() <= good + bound(run, 3)


def test_good_expert_gets_most_weight_and_keeps_it_after_a_restart() -> None:
    rng = np.random.default_rng(0)
    aggregation = uniform_aggregation(5)
    for _ in range(500):
        label = rng.uniform(-1, 1)
        predictions = np.append(rng.uniform(-1, 1, size=4), label)
        aggregation.update(predictions, float(aggregation.weights() @ predictions), label)
    weights = aggregation.weights()
    assert weights.sum() == pytest.approx(1)
    assert weights[-1] > 0.95
    np.testing.assert_allclose(restart_aggregation(aggregation).weights(), 0.98 * weights + 0.004)


def test_equal_predictions_do_not_change_weights() -> None:
    aggregation = uniform_aggregation(4)
    aggregation.update(np.full(4, 7.0), 7.0, 9.0)
    np.testing.assert_allclose(aggregation.weights(), 0.25)
    assert not aggregation.squares.any()


def test_aggregation_needs_two_experts() -> None:
    with pytest.raises(DomainError, match="experts must be an integer >= 2, got 1"):
        uniform_aggregation(1)


@given(st.integers(1, 40), st.integers(1, 5), seeds)
def test_recursive_least_squares_is_ridge_regression(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    regression = LeastSquares(np.eye(d) / 3.0, np.zeros(d))
    for x, label in zip(X, y, strict=True):
        regression.update(x, label)
    gram = X.T @ X + 3.0 * np.eye(d)
    np.testing.assert_allclose(regression.coefficients, np.linalg.solve(gram, X.T @ y), atol=1e-9)
    np.testing.assert_allclose(regression.inverse, np.linalg.inv(gram), atol=1e-9)


@given(st.integers(1, 4), st.sampled_from([1e6, 1e9, 1e15]), seeds)
def test_features_can_be_much_larger_than_the_prior(d: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    regression = LeastSquares(np.eye(d), np.zeros(d))
    for x in size * rng.normal(size=(200, d)):
        regression.update(x, float(x.sum()))
    np.testing.assert_allclose(regression.coefficients, np.ones(d), atol=1e-3)
    assert np.abs(regression.inverse).max() <= 1


@given(seeds, st.integers(1, 4), st.floats(3.0, 50.0))
def test_discounted_least_squares_is_a_weighted_regression(seed: int, n: int, span: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, n)), rng.normal(size=60)
    regression = LeastSquares(0.9 * np.eye(n), np.zeros(n))
    gram = np.eye(n) / 0.9
    for x, label in zip(X, y, strict=True):
        kept = np.where(np.diag(regression.inverse) <= 1 - 1 / span, np.sqrt(1 - 1 / span), 1.0)
        gram = gram * np.outer(kept, kept)
        regression.discount(span)
        right = gram @ regression.coefficients + label * x
        gram = gram + np.outer(x, x)
        regression.update(x, label)
        np.testing.assert_allclose(regression.coefficients, np.linalg.solve(gram, right), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(regression.inverse, np.linalg.inv(gram), rtol=1e-6, atol=1e-9)


def test_coefficients_of_constant_features_stay_as_certain_as_the_prior() -> None:
    rng = np.random.default_rng(0)
    regression = LeastSquares(np.eye(3), np.zeros(3))
    for _ in range(20_000):
        same = rng.normal()
        regression.discount(20.0)
        regression.update(np.array([same, same, 0.0]), 2 * same)
    assert np.array_equal(regression.inverse, regression.inverse.T)
    assert np.diag(regression.inverse).max() <= 1.0
    np.testing.assert_allclose(regression.coefficients, [1.0, 1.0, 0.0], atol=1e-3)


def test_discounted_rows_are_forgotten() -> None:
    rng = np.random.default_rng(0)
    regression = LeastSquares(np.eye(2), np.zeros(2))
    for t in range(400):
        x = rng.normal(size=2)
        regression.discount(20.0)
        regression.update(x, float(x[0] if t < 200 else -x[0]))
    np.testing.assert_allclose(regression.coefficients, [-1.0, 0.0], atol=1e-3)
