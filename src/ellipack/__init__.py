"""Regression on a stream that learns its own metric while it predicts."""

from ellipack._version import __version__
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
