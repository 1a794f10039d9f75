"""The learners as scikit-learn knows them."""

from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.phased import PhasedRegressor

__all__ = ["GradientOuterProduct", "MetricRegressor", "PackingRegressor", "PhasedRegressor"]
