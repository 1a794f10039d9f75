from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack._kernels import kernel
from ellipack.errors import DomainError
from ellipack.learners.aggregation import bernstein
from ellipack.learners.aggregation._kernels import Bernstein, LeastSquares, fade, regress, reward, weigh
from ellipack.validation import Floats
from tests.strategies import seeds

pytestmark = pytest.mark.interpreted

KINDS = ["noise", "one good expert", "adversary", "outbursts"]


@kernel
def learn(state: Bernstein, predictions: Floats, mixture: float, label: float) -> None:
    reward(state, predictions, mixture, label)


@kernel
def take_in(state: LeastSquares, features: Floats, target: float, gain: Floats) -> None:
    regress(state, features, target, gain)


@kernel
def forget(state: LeastSquares, span: float, gain: Floats) -> None:
    fade(state, span, gain)


@dataclass
class Played:
    losses: Floats  # of the mixture, round by round
    own: Floats  # of the experts, a column each
    first_scale: float
    state: Bernstein


def play(state: Bernstein, rounds: int, seed: int, kind: str, size: float) -> Played:
    """Return what happened on a stream of some kind."""
    experts = len(state.gains)
    rng = np.random.default_rng(seed)
    weights = np.empty(experts)
    played = Played(np.zeros(rounds), np.zeros((rounds, experts)), 0.0, state)
    for t in range(rounds):
        predictions = rng.normal(size=experts) * size
        if kind == "one good expert":
            predictions[experts // 2] = np.sin(t / 5) * size
        weigh(state, weights)
        mixture = float(weights @ predictions)
        label = {
            "noise": rng.normal() * size,
            "one good expert": np.sin(t / 5) * size,
            # Away from the mixture, and so worst for what has the most weight.
            "adversary": size if mixture < size / 2 else 0.0,
            "outbursts": size * 10.0 ** rng.integers(0, 9) if t % 17 == 0 else 0.0,
        }[kind]
        played.losses[t], played.own[t] = (mixture - label) ** 2, (predictions - label) ** 2
        learn(state, predictions, mixture, label)
        played.first_scale = played.first_scale or float(state.scale[0])
    return played


def bound(played: Played, k: int) -> float:
    return bernstein.regret_bound(
        prior=float(np.exp(played.state.priors[k])),
        squares=float(played.state.squares[k]),
        experts=played.own.shape[1],
        rounds=len(played.losses),
        scale=float(played.state.scale[0]),
        first_scale=played.first_scale,
    )


@settings(max_examples=50)
@given(st.integers(2, 8), st.integers(1, 120), seeds, st.sampled_from(KINDS), st.sampled_from([1e-12, 1.0, 1e12]))
def test_the_theorem_holds_on_any_stream(experts: int, rounds: int, seed: int, kind: str, size: float) -> None:
    state = bernstein.init(experts)
    for _ in range(3):  # and after each restart again
        played = play(state, rounds, seed, kind, size)
        for k in range(experts):
            assert played.losses.sum() - played.own[:, k].sum() <= bound(played, k)
        state, seed = bernstein.restarted(state), seed + 1


def test_the_bound_says_something() -> None:
    played = play(bernstein.init(6), 5000, 0, "one good expert", 1.0)
    good, others = played.own[:, 3].sum(), np.delete(played.own.sum(axis=0), 3)
    assert good + bound(played, 3) < 0.1 * others.min()  # no other expert, nor their plain mean, is under it
    assert played.losses.sum() <= good + bound(played, 3)


def test_weights_settle_on_the_good_expert_and_a_restart_remembers() -> None:
    rng = np.random.default_rng(0)
    state, weights = bernstein.init(5), np.empty(5)
    for _ in range(500):
        label = rng.uniform(-1, 1)
        predictions = np.append(rng.uniform(-1, 1, size=4), label)
        weigh(state, weights)
        learn(state, predictions, float(weights @ predictions), label)
    weigh(state, weights)
    assert weights.sum() == pytest.approx(1)
    assert weights[-1] > 0.95
    again = np.empty(5)
    weigh(bernstein.restarted(state), again)
    np.testing.assert_allclose(again, 0.98 * weights + 0.004)


def test_experts_that_agree_teach_nothing() -> None:
    state, weights = bernstein.init(4), np.empty(4)
    learn(state, np.full(4, 7.0), 7.0, 9.0)
    weigh(state, weights)
    np.testing.assert_allclose(weights, 0.25)
    assert not state.squares.any()


def test_an_aggregation_is_of_several() -> None:
    with pytest.raises(DomainError, match="experts must be a whole number >= 2, got 1"):
        bernstein.init(1)


@given(st.integers(1, 40), st.integers(1, 5), seeds)
def test_recursive_least_squares_is_ridge_regression(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    state, gain = LeastSquares(np.eye(d) / 3.0, np.zeros(d)), np.empty(d)
    for x, label in zip(X, y, strict=True):
        take_in(state, x, label, gain)
    gram = X.T @ X + 3.0 * np.eye(d)
    np.testing.assert_allclose(state.coefficients, np.linalg.solve(gram, X.T @ y), atol=1e-9)
    np.testing.assert_allclose(state.inverse, np.linalg.inv(gram), atol=1e-9)


@given(st.integers(1, 4), st.sampled_from([1e6, 1e9, 1e15]), seeds)
def test_recursive_least_squares_bears_what_is_far_larger_than_its_prior(d: int, size: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    state, gain = LeastSquares(np.eye(d), np.zeros(d)), np.empty(d)
    for x in size * rng.normal(size=(200, d)):
        take_in(state, x, float(x.sum()), gain)
    np.testing.assert_allclose(state.coefficients, np.ones(d), atol=1e-3)
    assert np.abs(state.inverse).max() <= 1


@given(seeds, st.integers(1, 4), st.floats(3.0, 50.0))
def test_what_fades_is_a_weighted_regression(seed: int, n: int, span: float) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, n)), rng.normal(size=60)
    state, gain = LeastSquares(0.9 * np.eye(n), np.zeros(n)), np.empty(n)
    gram = np.eye(n) / 0.9
    for x, label in zip(X, y, strict=True):
        certain = np.where(np.diag(state.inverse) <= 1 - 1 / span, np.sqrt(1 - 1 / span), 1.0)
        gram = gram * np.outer(certain, certain)
        forget(state, span, gain)
        right = gram @ state.coefficients + label * x
        gram = gram + np.outer(x, x)
        take_in(state, x, label, gain)
        np.testing.assert_allclose(state.coefficients, np.linalg.solve(gram, right), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(state.inverse, np.linalg.inv(gram), rtol=1e-6, atol=1e-9)


def test_what_rows_say_nothing_of_is_no_less_certain_than_by_the_prior() -> None:
    rng = np.random.default_rng(0)
    state, gain = LeastSquares(np.eye(3), np.zeros(3)), np.empty(3)
    for _ in range(20_000):
        same = rng.normal()
        forget(state, 20.0, gain)
        take_in(state, np.array([same, same, 0.0]), 2 * same, gain)
    assert np.array_equal(state.inverse, state.inverse.T)
    assert np.diag(state.inverse).max() <= 1.0
    np.testing.assert_allclose(state.coefficients, [1.0, 1.0, 0.0], atol=1e-3)


def test_what_was_long_ago_is_forgotten() -> None:
    rng = np.random.default_rng(0)
    state, gain = LeastSquares(np.eye(2), np.zeros(2)), np.empty(2)
    for t in range(400):
        x = rng.normal(size=2)
        forget(state, 20.0, gain)
        take_in(state, x, float(x[0] if t < 200 else -x[0]), gain)
    np.testing.assert_allclose(state.coefficients, [-1.0, 0.0], atol=1e-3)
