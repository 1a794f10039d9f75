"""Learners and streams that the tests of the estimators share."""

from collections.abc import Callable

import numpy as np

from ellipack import (
    GradientOuterProduct,
    IntrinsicDimensionRegressor,
    KernelDifferences,
    KeyedRegressor,
    LocallyAdaptiveRegressor,
    LocalSlopes,
    MetricConfig,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
    RescaledRegressor,
)
from ellipack.validation import Floats

Regressor = (
    PackingRegressor
    | PhasedRegressor
    | LocallyAdaptiveRegressor
    | IntrinsicDimensionRegressor
    | MetricRegressor
    | KeyedRegressor
    | RescaledRegressor
)
Factory = Callable[[], Regressor]

PAPER: dict[str, Factory] = {
    "euclidean": PackingRegressor,
    "diagonal": lambda: PackingRegressor([1.0, 0.1, 0.01]),
    "as printed": lambda: PackingRegressor(keep_founding_label=False),
    "tree": lambda: LocallyAdaptiveRegressor(levels=4, lipschitz=8.0),
    "tree, dimensions": lambda: LocallyAdaptiveRegressor([1.0, 0.1, 0.01], adapt="dimension"),
    "dimension": IntrinsicDimensionRegressor,
    "dimension, noisy": lambda: IntrinsicDimensionRegressor([1.0, 0.1, 0.01], labels="noisy"),
    "phased": lambda: PhasedRegressor(gop=GradientOuterProduct(KernelDifferences(mass_scale=0.02))),
    "phased, slopes": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), anchors=30)),
    "phased, weights": lambda: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), diagonal=True)),
}
"""Learners that require rows in the unit ball and labels in [0, 1]."""

QUICK = MetricConfig(growth=3.0, powers=(0.5,), ridges=(0.01,), validation_points=16, pool=32)

PRACTICAL: dict[str, Factory] = {
    "practical": lambda: MetricRegressor(config=MetricConfig(growth=3.0, validation_points=16, pool=64)),
    "practical, two views": lambda: MetricRegressor(views=2, neighbors=8, config=QUICK),
    "practical, bounded": lambda: MetricRegressor(max_centers=24, neighbors=8, n_jobs=1, config=QUICK),
    "keyed": lambda: KeyedRegressor(
        0,
        learner=MetricRegressor(past=False, neighbors=8, n_jobs=1, config=QUICK),
        pooled=MetricRegressor(neighbors=8, n_jobs=1, config=QUICK),
    ),
}

RESCALED: dict[str, Callable[[], RescaledRegressor]] = {
    "rescaled euclidean": lambda: RescaledRegressor(PackingRegressor()),
    "rescaled diagonal": lambda: RescaledRegressor(PackingRegressor([1.0, 0.1, 0.01])),
    "rescaled as printed": lambda: RescaledRegressor(PackingRegressor(keep_founding_label=False)),
    "rescaled tree": lambda: RescaledRegressor(LocallyAdaptiveRegressor(levels=3, lipschitz=64.0)),
    "rescaled dimension": lambda: RescaledRegressor(IntrinsicDimensionRegressor()),
    "rescaled phased": lambda: RescaledRegressor(PhasedRegressor()),
    "rescaled phased, slopes": lambda: RescaledRegressor(
        PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(10), anchors=30))
    ),
}


def unscaled_stream(n: int = 80, seed: int = 0) -> tuple[Floats, Floats]:
    """Return rows and labels in very different units, with outliers that extend the ranges."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 1e6, 1e-6] + [0.0, 3.0, 5.0]
    X[rng.random(n) < 0.05] *= 20
    return X, -1e4 + 500 * np.sin(X[:, 0]) + 50 * rng.normal(size=n)
