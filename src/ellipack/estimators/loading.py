"""Learners out of files."""

import os
from typing import Any, Final

from ellipack import serialization
from ellipack.errors import CheckpointError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.parameter_archive import object_from_archive
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.metric import KernelDifferences, LocalSlopes
from ellipack.serialization import Archive

SAVED_LEARNERS: Final[dict[str, type[StreamingRegressor[Any]]]] = {
    each.__name__: each for each in (MetricRegressor, PackingRegressor, PhasedRegressor, RescaledRegressor)
}
"""What a file may hold, by name."""

RUN_KIND: Final = "Run"
"""What a file of a run over a table is called, which holds a learner among other things."""

PARAMETER_CLASSES: Final = {
    **SAVED_LEARNERS,
    **{each.__name__: each for each in (GradientOuterProduct, KernelDifferences, LocalSlopes, MetricConfig)},
}
"""What a parameter may be, by name."""


def load(path: str | os.PathLike[str]) -> StreamingRegressor[Any]:
    """Return the learner that `save` wrote to a file; it goes on with the same bits as if it had never stopped.

    A file that is damaged, foreign or of a later version is refused with a `CheckpointError`. Nothing in a file is
    ever run or imported.
    """
    kind, archive = serialization.read(path)
    try:
        return learner_from_archive(kind, archive)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def learner_from_archive(kind: str, archive: Archive) -> StreamingRegressor[Any]:
    """Return the learner that was saved as this archive, or that a saved run is a run of."""
    if kind == RUN_KIND:
        archive = archive.part("learner")
        kind, archive = archive.fact("class", str), archive.part("contents")
    if kind not in SAVED_LEARNERS:
        hint = ": `ellipack.river.load` reads it" if kind.startswith("river.") else ""
        raise CheckpointError(f"a learner must be one of {', '.join(SAVED_LEARNERS)}, got {kind!r}{hint}")
    try:
        learner = object_from_archive(archive.part("parameters"), PARAMETER_CLASSES)
    except RecursionError as error:
        raise CheckpointError("parameters must not be nested without end") from error
    if type(learner) is not SAVED_LEARNERS[kind]:
        raise CheckpointError(f"parameters/kind must be {kind}, got {type(learner).__name__}")
    return learner.restore_state(archive)
