"""Streaming regression that learns its own metric while it predicts.

Names are imported on first use, because the command line does not always need all of them.

Examples
--------
>>> import numpy as np
>>> import ellipack
>>> X = np.random.default_rng(0).normal(size=(500, 3))
>>> model = ellipack.MetricRegressor().fit(X, 2 * X[:, 0])
>>> model.feature_importances_.argmax().item()
0
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ellipack._version import __version__

if TYPE_CHECKING:
    from ellipack.estimators import (
        GradientOuterProduct,
        IntrinsicDimensionRegressor,
        KeyedRegressor,
        LocallyAdaptiveRegressor,
        MetricRegressor,
        PackingClassifier,
        PackingRegressor,
        PhasedRegressor,
        RescaledRegressor,
    )
    from ellipack.learners.metric.config import MetricConfig
    from ellipack.learners.metric.sharded_learning import Workers
    from ellipack.learners.metric.sharding import Sharding
    from ellipack.metric import KernelDifferences, LocalSlopes, Metric
    from ellipack.tables.loading import load
    from ellipack.tables.regressor import TableRegressor
    from ellipack.tables.table_run import run

__all__ = [
    "GradientOuterProduct",
    "IntrinsicDimensionRegressor",
    "KernelDifferences",
    "KeyedRegressor",
    "LocalSlopes",
    "LocallyAdaptiveRegressor",
    "Metric",
    "MetricConfig",
    "MetricRegressor",
    "PackingClassifier",
    "PackingRegressor",
    "PhasedRegressor",
    "RescaledRegressor",
    "Sharding",
    "TableRegressor",
    "Workers",
    "__version__",
    "load",
    "run",
]

_MODULES: Final = {
    "KernelDifferences": "ellipack.metric",
    "LocalSlopes": "ellipack.metric",
    "Metric": "ellipack.metric",
    "MetricConfig": "ellipack.learners.metric.config",
    "Sharding": "ellipack.learners.metric.sharding",
    "TableRegressor": "ellipack.tables.regressor",
    "Workers": "ellipack.learners.metric.sharded_learning",
    "load": "ellipack.tables.loading",
    "run": "ellipack.tables.table_run",
}
"""Modules of the names that `ellipack.estimators` does not have."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULES.get(name, "ellipack.estimators")), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
