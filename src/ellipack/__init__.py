"""Regression on a stream that learns its own metric while it predicts."""

from ellipack.estimators import GradientOuterProduct, PackingRegressor, PhasedRegressor
from ellipack.metric import KernelDifferences, LocalSlopes, Metric

__version__ = "0.1.0"

__all__ = [
    "GradientOuterProduct",
    "KernelDifferences",
    "LocalSlopes",
    "Metric",
    "PackingRegressor",
    "PhasedRegressor",
]
