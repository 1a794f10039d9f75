"""Loading of saved models with River's methods."""

import os
from typing import Any, Final

from ellipack import serialization
from ellipack.errors import ModelFileError
from ellipack.estimators.loading import PARAMETER_CLASSES
from ellipack.estimators.parameter_archive import object_from_archive
from ellipack.river.base import DictionaryLearner
from ellipack.river.classifiers import PackingClassifier
from ellipack.river.metric import MetricRegressor
from ellipack.river.regressors import (
    IntrinsicDimensionRegressor,
    LocallyAdaptiveRegressor,
    PackingRegressor,
    PhasedRegressor,
)

SAVED_RIVER_LEARNERS: Final[dict[str, type[DictionaryLearner[Any]]]] = {
    each.__name__: each
    for each in (
        IntrinsicDimensionRegressor,
        LocallyAdaptiveRegressor,
        MetricRegressor,
        PackingClassifier,
        PackingRegressor,
        PhasedRegressor,
    )
}
"""Classes of saved models, by name."""


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file.

    The loaded model continues with the same results, bit for bit. Loading executes and imports nothing from the file.

    Parameters
    ----------
    path : str or path-like
        Path of a file that `save` of a learner in `ellipack.river` wrote.

    Returns
    -------
    model : DictionaryLearner
        Learner of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another format or from a later version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> model = PackingRegressor()
    >>> model.learn_one({"height": 1.2}, 310.0)
    >>> with TemporaryDirectory() as folder:
    ...     model.save(Path(folder) / "model")
    ...     loaded = load(Path(folder) / "model")
    >>> loaded.predict_one({"height": 1.3})
    310.0
    """
    kind, archive = serialization.read(path)
    name = kind.removeprefix("river.")
    if name == kind or name not in SAVED_RIVER_LEARNERS:
        raise ModelFileError(f"{path} holds a {kind}, which ellipack.river cannot load: try ellipack.load")
    try:
        learner = object_from_archive(archive.part("parameters"), {**PARAMETER_CLASSES, **SAVED_RIVER_LEARNERS})
        if type(learner) is not SAVED_RIVER_LEARNERS[name]:
            raise ModelFileError(f"parameters/kind must be {name}, got {type(learner).__name__}")
        return learner.restore_state(archive)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
