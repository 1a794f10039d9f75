"""Small learners, a stream that all of them accept, and the bits of their state."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.validation import Floats
from tests.strategies import ball

Regressor = PackingRegressor | PhasedRegressor | MetricRegressor

SMALL = MetricConfig(growth=3.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)

PAPER: dict[str, Callable[[], Regressor]] = {
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8), anchors=20)),
}
"""Learners that require rows in the unit ball and labels in [0, 1]."""

PRACTICAL: dict[str, Callable[[], Regressor]] = {
    "metric": lambda: MetricRegressor(neighbors=8, config=SMALL),
    "metric, two views, full": lambda: MetricRegressor(24, neighbors=8, views=2, n_jobs=1, config=SMALL),
}
"""Learners that accept any rows and labels."""

LEARNERS = PAPER | PRACTICAL

FIRST = 24
"""Number of rows that a fitted learner has learned before a test."""


def stream(n: int, seed: int = 0, d: int = 3) -> tuple[Floats, Floats]:
    """Return rows and labels that every learner accepts. The first feature has few values, so that it can be a key."""
    rng = np.random.default_rng(seed)
    X = ball(rng, n, d)
    X[:, 0] = np.trunc(4 * X[:, 0]) / 4
    return X, np.clip(0.5 + 0.4 * np.sin(4 * X[:, 0]) + 0.05 * rng.normal(size=n), 0, 1)


Bits = tuple[object, dict[str, tuple[str, tuple[int, ...], bytes]]]


def bits(learner: StreamingRegressor[Any]) -> Bits:
    """Return the whole state of a learner, to the bit: its archive and the names of its attributes but its lock."""
    saved = learner.to_archive()
    arrays = {
        name: (str(array.dtype), array.shape, array.tobytes()) for name, array in saved.arrays_by_full_name().items()
    }
    return (saved.facts, sorted(vars(learner).keys() - {"_learn_lock"})), arrays
