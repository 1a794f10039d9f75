"""`IntrinsicDimensionRegressor`: the estimate of the dimension, and the regret against its bounds."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ellipack.learners import intrinsic_dimension, packing
from ellipack.metric import Metric
from ellipack.theory import (
    lipschitz_constant,
    manifold_center_bound,
    manifold_noisy_regret_bound,
    manifold_regret_bound,
)
from ellipack.theory.manifolds import ARBITRARY, NOISY
from ellipack.validation import Floats
from tests.reference.intrinsic_dimension import DimensionPacking
from tests.strategies import ball, metrics, seeds, streams

offsets = pytest.mark.parametrize("offset", [ARBITRARY, NOISY])


def run(metric: Metric, X: Floats, y: Floats, offset: int) -> tuple[DimensionPacking, Floats]:
    """Run the learner; return the literal packing, which has the same predictions, and the losses."""
    literal = DimensionPacking(offset)
    for x, label in zip(metric.whiten(X), y.tolist(), strict=True):
        literal.learn(x, label)
    state = intrinsic_dimension.init(metric, offset)
    predictions = intrinsic_dimension.learn(state, X, y)
    assert state.core.intrinsic_dimension == literal.dimension
    assert state.arrays.label_counts.tolist() == [len(labels) for labels in literal.labels]
    return literal, (predictions - y) ** 2


def subspace_rows(n: int, low: int, d: int, seed: int) -> Floats:
    """Return rows of the unit ball in a random subspace."""
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(d, low)))
    return np.ascontiguousarray(ball(rng, n, low) @ basis.T)


@offsets
@settings(max_examples=40)
@given(st.data())
def test_each_step_of_the_bound_holds(offset: int, data: st.DataObject) -> None:
    metric = data.draw(metrics())
    X, noise = data.draw(streams(metric.dimension, max_rows=150))
    frequency = np.random.default_rng(data.draw(seeds)).normal(size=metric.dimension) * 4
    f = 0.5 + 0.5 * np.sin(X @ frequency)
    y = np.clip(f + data.draw(st.sampled_from([0.0, 0.5, 2.0])) * (noise - 0.5), 0, 1)
    made, losses = run(metric, X, y, offset)
    lipschitz = lipschitz_constant(metric.eigenvalues, 0.5 * np.abs(metric.eigenvectors.T @ frequency))
    radii, regret = np.array(made.radii), losses.sum() - np.sum((f - y) ** 2)
    estimation = sum(math.log(math.e * len(labels)) for labels in made.labels)
    assert regret <= estimation + 2 * lipschitz * radii.sum() + 1e-9
    # With noise, the difference to the square of the radius is a sum of independent terms of mean 0.
    founders = np.concatenate([[rounds[0]] * len(rounds) for rounds in made.rounds]).astype(int) - 1
    members = np.concatenate(made.rounds).astype(int) - 1
    cross = 2 * np.sum((f[founders] - f[members]) * (f[members] - y[members]))
    assert regret - cross <= estimation + lipschitz**2 * np.sum(radii**2) + 1e-9
    # The sums are at most their bounds.
    T, D, N = len(X), made.dimension, manifold_center_bound(made.dimension, len(X), offset)
    assert len(made.points) <= N
    assert estimation <= N * math.log(math.e * T / N) + 1e-9
    if offset == ARBITRARY:
        assert radii.sum() <= 2 * T ** (D / (1 + D))
        assert regret <= manifold_regret_bound(D, T, lipschitz)
    else:
        assert np.sum(radii**2) <= 3 * T ** (D / (2 + D))
        assert regret - cross <= manifold_noisy_regret_bound(D, T, lipschitz)


@offsets
@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(3, 9), seeds)
def test_the_estimate_is_at_most_the_dimension_of_a_subspace(offset: int, low: int, d: int, seed: int) -> None:
    state = intrinsic_dimension.init(Metric.identity(d), offset)
    intrinsic_dimension.learn(state, subspace_rows(3000, low, d, seed), np.zeros(3000))
    assert state.core.intrinsic_dimension <= low


@offsets
def test_the_estimate_grows_with_the_dimension_of_the_rows(offset: int) -> None:
    found = []
    for low in (1, 2, 8):
        state = intrinsic_dimension.init(Metric.identity(8), offset)
        intrinsic_dimension.learn(state, subspace_rows(20_000, low, 8, 0), np.zeros(20_000))
        found.append(state.core.intrinsic_dimension)
    assert found[0] == 1
    assert found == sorted(set(found))  # strictly increasing


def test_bounds_hold_where_they_are_below_the_number_of_rounds() -> None:
    rng, n = np.random.default_rng(0), 20_000
    X = subspace_rows(n, 2, 6, 0)
    f = 0.5 + 0.5 * np.tanh(2 * X @ np.full(6, 1 / math.sqrt(6)))  # its gradient has a norm of at most 1
    y = (rng.random(n) < f).astype(np.float64)
    for offset, bound in ((ARBITRARY, manifold_regret_bound), (NOISY, manifold_noisy_regret_bound)):
        state = intrinsic_dimension.init(Metric.identity(6), offset)
        predictions = intrinsic_dimension.learn(state, X, y)
        regret = np.sum((predictions - y) ** 2) - np.sum((f - y) ** 2)
        assert 0 < regret <= bound(state.core.intrinsic_dimension, n, 1.0) < n


def test_algorithm_1_with_the_ambient_dimension_is_worse_on_a_line() -> None:
    # This shows that the bound says something: a learner with the radii of 9 dimensions exceeds it.
    n = 200_000
    along = np.random.default_rng(0).uniform(-1, 1, n)
    X, y = along[:, None] * np.full(9, 1 / 3), 0.5 + 0.5 * np.sin(12 * along)
    adaptive, ambient = intrinsic_dimension.init(Metric.identity(9), ARBITRARY), packing.init(Metric.identity(9))
    losses = [
        np.sum((predictions - y) ** 2)
        for predictions in (intrinsic_dimension.learn(adaptive, X, y), packing.learn(ambient, X, y))
    ]
    assert losses[0] <= manifold_regret_bound(1, n, 6.0) < losses[1]


def test_each_term_of_the_bounds_is_needed() -> None:
    n = 10_000
    # The means: coins, and f = 1/2. The radii: two classes 0.01 apart, which share a ball until round 10,000.
    coins = np.random.default_rng(0).integers(0, 2, n).astype(np.float64)
    line, pair = np.linspace(-1, 1, n)[:, None], 0.01 * (np.arange(n) % 2)[:, None]
    for offset, bound in ((ARBITRARY, manifold_regret_bound), (NOISY, manifold_noisy_regret_bound)):
        learned = intrinsic_dimension.learn(intrinsic_dimension.init(Metric.identity(1), offset), line, coins)
        assert 0 < np.sum((learned - coins) ** 2) - n / 4 <= bound(1, n, 0.0)
        labels = np.arange(n) % 2.0
        learned = intrinsic_dimension.learn(intrinsic_dimension.init(Metric.identity(1), offset), pair, labels)
        assert bound(1, n, 0.0) < np.sum((learned - labels) ** 2) <= bound(1, n, 100.0)
