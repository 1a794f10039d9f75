"""Regressors, a classifier and a transformer with scikit-learn's methods."""

from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.intrinsic_dimension import IntrinsicDimensionRegressor
from ellipack.estimators.keyed import KeyedRegressor
from ellipack.estimators.locally_adaptive import LocallyAdaptiveRegressor
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.packing_classifier import PackingClassifier
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor

__all__ = [
    "GradientOuterProduct",
    "IntrinsicDimensionRegressor",
    "KeyedRegressor",
    "LocallyAdaptiveRegressor",
    "MetricRegressor",
    "PackingClassifier",
    "PackingRegressor",
    "PhasedRegressor",
    "RescaledRegressor",
]
