"""Regressors, a classifier and a transformer with scikit-learn's methods."""

from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.loading import load
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.packing_classifier import PackingClassifier
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor

__all__ = [
    "GradientOuterProduct",
    "MetricRegressor",
    "PackingClassifier",
    "PackingRegressor",
    "PhasedRegressor",
    "RescaledRegressor",
    "load",
]
