"""Learners with River's verbs, in files and out of them."""

import os
from typing import Any, Final

from ellipack import checkpoint
from ellipack.errors import CheckpointError
from ellipack.estimators.parameters import restore_object
from ellipack.estimators.saving import KINDS
from ellipack.river.regressor import StreamRegressor
from ellipack.river.regressors import MetricRegressor, PackingRegressor, PhasedRegressor

LEARNERS: Final[dict[str, type[StreamRegressor]]] = {
    each.__name__: each for each in (MetricRegressor, PackingRegressor, PhasedRegressor)
}
"""What a file may hold, by name."""


def load(path: str | os.PathLike[str]) -> Any:
    """Return the learner that its `save` wrote to a file; it goes on with the same bits as if it had never stopped.

    A file that is damaged, foreign or of a later version is refused with a `CheckpointError`. Nothing in a file is
    ever run or imported.
    """
    kind, contents = checkpoint.read(path)
    name = kind.removeprefix("river.")
    if name == kind or name not in LEARNERS:
        raise CheckpointError(f"{path} holds a {kind} and no learner of ellipack.river: try ellipack.load")
    try:
        learner = restore_object(contents.part("parameters"), {**KINDS, **LEARNERS})
        if type(learner) is not LEARNERS[name]:
            raise CheckpointError(f"parameters/kind must be {name}, got {type(learner).__name__}")
        return learner.take(contents)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from error
