"""Regression on a stream that learns its own metric while it predicts.

What has a name here is imported when it is asked for: the command line needs the package, but not always all of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ellipack._version import __version__

if TYPE_CHECKING:
    from ellipack.estimators import (
        GradientOuterProduct,
        MetricRegressor,
        PackingRegressor,
        PhasedRegressor,
        RescaledRegressor,
        load,
    )
    from ellipack.learners.metric.config import MetricConfig
    from ellipack.metric import KernelDifferences, LocalSlopes, Metric

__all__ = [
    "GradientOuterProduct",
    "KernelDifferences",
    "LocalSlopes",
    "Metric",
    "MetricConfig",
    "MetricRegressor",
    "PackingRegressor",
    "PhasedRegressor",
    "RescaledRegressor",
    "__version__",
    "load",
]

_HOMES: Final = {
    "KernelDifferences": "ellipack.metric",
    "LocalSlopes": "ellipack.metric",
    "Metric": "ellipack.metric",
    "MetricConfig": "ellipack.learners.metric.config",
}
"""Where names are at home that are not estimators'."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_HOMES.get(name, "ellipack.estimators")), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
