"""Mahalanobis metrics, estimators of gradients, and the gradient outer product."""

from ellipack._core import project
from ellipack.metric.gop import GopEstimator, gradient_weights, mean_outer_product
from ellipack.metric.gradients import KERNELS, GradientEstimator, KernelDifferences
from ellipack.metric.mahalanobis import UNSEEN_EIGENVALUE, Metric
from ellipack.metric.slopes import LocalSlopes

__all__ = [
    "KERNELS",
    "UNSEEN_EIGENVALUE",
    "GopEstimator",
    "GradientEstimator",
    "KernelDifferences",
    "LocalSlopes",
    "Metric",
    "gradient_weights",
    "mean_outer_product",
    "project",
]
