"""Small learners and streams for the tests of `MetricRegressor`, and the bits of a state."""

import json
from typing import NamedTuple

import numpy as np

from ellipack.learners.metric import learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.initial_state import LearnerSize, initial_state
from ellipack.learners.metric.state import MetricState
from ellipack.validation import Floats, Ints

QUICK = MetricConfig(powers=(0.35, 0.7), ridges=(0.01,), validation_points=16, pool=64)


class Past(NamedTuple):
    """Numbers of last labels and of keys that a learner sees."""

    labels: int = 0
    max_keys: int = 0


NO_PAST = Past()
PASTS = [NO_PAST, Past(3), Past(2, 2)]
"""Without the past, with the past of the stream, and with the past of the last two of three keys, too."""


def new_state(
    d: int,
    views: int = 1,
    neighbors: int = 16,
    max_centers: int = 1000,
    config: MetricConfig = QUICK,
    past: Past = NO_PAST,
) -> MetricState:
    """Return an initial state."""
    return initial_state(d, LearnerSize(views, neighbors, max_centers, *past), 0, config)


def trained(
    X: Floats, y: Floats, views: int = 1, neighbors: int = 8, max_centers: int = 1000, past: Past = NO_PAST
) -> MetricState:
    """Return a state after learning rows, whose keys are 0, 1, 2, 0, 1 and so on."""
    state = new_state(X.shape[1], views, neighbors, max_centers, past=past)
    learner.learn(state, X, y, keys=keys_of(len(X), past))
    return state


def keys_of(n: int, past: Past, start: int = 0) -> Ints:
    """Return the keys of rows from row `start` on: 0, 1, 2, 0, 1 and so on; none if the learner has no keys."""
    return (start + np.arange(n)) % 3 if past.max_keys else np.zeros(0, dtype=np.int64)


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
    return [
        ("facts", facts),
        *((name, array.tobytes()) for name, array in sorted(archive.arrays_by_full_name().items())),
    ]
