"""Regression on a stream that learns its own metric while it predicts."""

from ellipack.estimators import GradientOuterProduct, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.metric import KernelDifferences, LocalSlopes, Metric

__version__ = "0.1.0"

__all__ = [
    "GradientOuterProduct",
    "KernelDifferences",
    "LocalSlopes",
    "Metric",
    "MetricConfig",
    "MetricRegressor",
    "PackingRegressor",
    "PhasedRegressor",
]
