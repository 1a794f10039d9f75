"""The learners that the doors are tried on, and what they carry, to the bit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ellipack import GradientOuterProduct, LocalSlopes, MetricConfig, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.estimators.base import StreamingRegressor
from ellipack.validation import Floats
from tests.strategies import ball

Regressor = PackingRegressor | PhasedRegressor | MetricRegressor

SMALL = MetricConfig(validation_points=16, pool=32)

PAPER: dict[str, Callable[[], Regressor]] = {
    "packing": PackingRegressor,
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(8), anchors=20)),
}
"""Those that want rows in the unit ball and labels in [0, 1]."""

PRACTICAL: dict[str, Callable[[], Regressor]] = {
    "metric": lambda: MetricRegressor(neighbors=8, config=SMALL),
    "metric, two views, full": lambda: MetricRegressor(24, neighbors=8, views=2, n_jobs=1, config=SMALL),
}
"""Those that take any rows and labels."""

LEARNERS = PAPER | PRACTICAL

FIRST = 30
"""Rows that a learner has learned before somebody comes to the door."""


def stream(n: int, seed: int = 0, d: int = 3) -> tuple[Floats, Floats]:
    """Return rows and labels that every learner takes."""
    rng = np.random.default_rng(seed)
    X = ball(rng, n, d)
    return X, np.clip(0.5 + 0.4 * np.sin(4 * X[:, 0]) + 0.05 * rng.normal(size=n), 0, 1)


Bits = tuple[object, dict[str, tuple[str, tuple[int, ...], bytes]]]


def bits(learner: StreamingRegressor[Any]) -> Bits:
    """Return everything that a learner carries, to the bit: what it would save, and which attributes it has."""
    saved = learner.to_archive()
    arrays = {name: (str(array.dtype), array.shape, array.tobytes()) for name, array in saved.arrays.items()}
    return (saved.facts, sorted(vars(learner))), arrays
