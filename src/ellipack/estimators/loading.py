"""Models from archives."""

from typing import Any, Final

from ellipack.errors import ModelFileError
from ellipack.estimators.base import StreamingEstimator, StreamingRegressor
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.intrinsic_dimension import IntrinsicDimensionRegressor
from ellipack.estimators.keyed import KeyedRegressor
from ellipack.estimators.locally_adaptive import LocallyAdaptiveRegressor
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.packing_classifier import PackingClassifier
from ellipack.estimators.parameter_archive import object_from_archive
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.metric import KernelDifferences, LocalSlopes
from ellipack.serialization import Archive

SAVED_LEARNERS: Final[dict[str, type[StreamingEstimator[Any]]]] = {
    each.__name__: each
    for each in (
        MetricRegressor,
        KeyedRegressor,
        PackingRegressor,
        PhasedRegressor,
        LocallyAdaptiveRegressor,
        IntrinsicDimensionRegressor,
        PackingClassifier,
        RescaledRegressor,
    )
}
"""Classes of saved models, by name."""

RUN_KIND: Final = "Run"
"""Kind of a file that `ellipack run` saves: a learner, its encoder, and scores."""

PARAMETER_CLASSES: Final = {
    **SAVED_LEARNERS,
    **{each.__name__: each for each in (GradientOuterProduct, KernelDifferences, LocalSlopes, MetricConfig)},
}
"""Classes of parameters that a file may hold, by name."""


def learner_from_archive(kind: str, archive: Archive) -> StreamingEstimator[Any]:
    """Return the model in an archive.

    Parameters
    ----------
    kind : str
        Name of the class.
    archive : Archive
        Archive of the model.

    Returns
    -------
    model : StreamingEstimator
    """
    if kind not in SAVED_LEARNERS:
        hint = ": `ellipack.river.load` reads it" if kind.startswith("river.") else ""
        raise ModelFileError(f"a learner must be one of {', '.join(SAVED_LEARNERS)}, got {kind!r}{hint}")
    try:
        learner = object_from_archive(archive.part("parameters"), PARAMETER_CLASSES)
    except RecursionError as error:
        raise ModelFileError("parameters are nested too deeply") from error
    if type(learner) is not SAVED_LEARNERS[kind]:
        raise ModelFileError(f"parameters/kind must be {kind}, got {type(learner).__name__}")
    return learner.restore_state(archive)


def regressor_from_archive(kind: str, archive: Archive) -> StreamingRegressor[Any]:
    """Return the regressor in an archive; see `learner_from_archive`.

    Raises
    ------
    ModelFileError
        If the model is a classifier.
    """
    learner = learner_from_archive(kind, archive)
    if not isinstance(learner, StreamingRegressor):
        raise ModelFileError(f"the learner must be a regressor, got a {type(learner).__name__}")
    return learner
