"""The learners as scikit-learn knows them."""

from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor
from ellipack.estimators.saving import load

__all__ = [
    "GradientOuterProduct",
    "MetricRegressor",
    "PackingRegressor",
    "PhasedRegressor",
    "RescaledRegressor",
    "load",
]
