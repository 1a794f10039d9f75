"""Small learners and streams for the tests of `MetricRegressor`, and the bits of a state."""

import json

import numpy as np

from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.state import LearnerSize, MetricState, initial_state
from ellipack.validation import Floats

QUICK = MetricConfig(validation_points=16, pool=64)


def new_state(
    d: int, views: int = 1, neighbors: int = 16, max_centers: int = 1000, config: MetricConfig = QUICK
) -> MetricState:
    """Return an initial state."""
    return initial_state(d, LearnerSize(views, neighbors, max_centers), 0, config)


def trained(X: Floats, y: Floats, views: int = 1, neighbors: int = 8, max_centers: int = 1000) -> MetricState:
    """Return a state after learning rows."""
    state = new_state(X.shape[1], views, neighbors, max_centers)
    learner.learn(state, X, y)
    return state


def smooth_stream(n: int, d: int = 3, seed: int = 0) -> tuple[Floats, Floats]:
    """Return rows and labels, with some repeated rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.resize([1.0, 10.0, 0.1], d)
    for t in np.flatnonzero(rng.random(n) < 0.15):
        X[t] = X[rng.integers(t + 1)]
    return X, np.sin(2 * X[:, 0]) + X[:, -1] + 0.1 * rng.normal(size=n)


def bits(state: MetricState) -> list[tuple[str, bytes]]:
    """Return the facts and arrays of an archive of a state as bytes."""
    archive = serialization.to_archive(state)
    facts = json.dumps(archive.facts, sort_keys=True).encode()
    return [("facts", facts), *((name, array.tobytes()) for name, array in sorted(archive.arrays.items()))]
