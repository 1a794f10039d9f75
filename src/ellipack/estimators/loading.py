"""Learners out of files."""

import os
from typing import Any, Final

from ellipack import serialization
from ellipack.errors import CheckpointError
from ellipack.estimators.base import StreamingRegressor
from ellipack.estimators.gop import GradientOuterProduct
from ellipack.estimators.metric import MetricRegressor
from ellipack.estimators.packing import PackingRegressor
from ellipack.estimators.parameter_archive import restore_object
from ellipack.estimators.phased import PhasedRegressor
from ellipack.estimators.rescaled import RescaledRegressor
from ellipack.learners.metric.config import MetricConfig
from ellipack.metric import KernelDifferences, LocalSlopes
from ellipack.serialization import Archive

LEARNERS: Final[dict[str, type[StreamingRegressor[Any]]]] = {
    each.__name__: each for each in (MetricRegressor, PackingRegressor, PhasedRegressor, RescaledRegressor)
}
"""What a file may hold, by name."""

RUN: Final = "Run"
"""What a file of a run over a table is called, which holds a learner among other things."""

KINDS: Final = {
    **LEARNERS,
    **{each.__name__: each for each in (GradientOuterProduct, KernelDifferences, LocalSlopes, MetricConfig)},
}
"""What a parameter may be, by name."""


def load(path: str | os.PathLike[str]) -> StreamingRegressor[Any]:
    """Return the learner that `save` wrote to a file; it goes on with the same bits as if it had never stopped.

    A file that is damaged, foreign or of a later version is refused with a `CheckpointError`. Nothing in a file is
    ever run or imported.
    """
    kind, contents = serialization.read(path)
    try:
        return restore(kind, contents)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error


def restore(kind: str, contents: Archive) -> StreamingRegressor[Any]:
    """Return the learner that was saved as these contents, or that a saved run is a run of."""
    if kind == RUN:
        contents = contents.part("learner")
        kind, contents = contents.fact("class", str), contents.part("contents")
    if kind not in LEARNERS:
        hint = ": `ellipack.river.load` reads it" if kind.startswith("river.") else ""
        raise CheckpointError(f"a learner must be one of {', '.join(LEARNERS)}, got {kind!r}{hint}")
    try:
        learner = restore_object(contents.part("parameters"), KINDS)
    except RecursionError as error:
        raise CheckpointError("parameters must not be nested without end") from error
    if type(learner) is not LEARNERS[kind]:
        raise CheckpointError(f"parameters/kind must be {kind}, got {type(learner).__name__}")
    return learner.take(contents)
