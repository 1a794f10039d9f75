"""The learners with River's methods: one row at a time, as a dictionary of features.

A missing feature counts as 0, as usual in River. Features may appear later: the learner adds them and keeps what it
has learned.
"""

try:
    import river as _river  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "ellipack.river needs the package river, which is not installed: pip install 'ellipack[river]'", name="river"
    ) from error

from ellipack.river.classifiers import PackingClassifier
from ellipack.river.loading import load
from ellipack.river.metric import MetricRegressor
from ellipack.river.regressors import (
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    PackingRegressor,
    PhasedRegressor,
)

__all__ = [
    "IntrinsicDimensionRegressor",
    "LocallyAdaptiveRegressor",
    "MetricRegressor",
    "PackingClassifier",
    "PackingRegressor",
    "PhasedRegressor",
    "load",
]
