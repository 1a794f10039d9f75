"""`load`: load a saved model of any kind."""

import os
from importlib import import_module
from typing import Any

from ellipack import serialization
from ellipack.errors import ModelFileError
from ellipack.estimators.loading import RUN_KIND, learner_from_archive
from ellipack.serialization import Archive


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file.

    The loaded model continues with the same results, bit for bit. Loading executes and imports nothing from the file.

    Parameters
    ----------
    path : str or path-like
        Path of a file that `save` or ``ellipack run --save`` wrote.

    Returns
    -------
    model : TableRegressor or StreamingEstimator
        A `TableRegressor` if the file holds a run over a table; otherwise an estimator of the class that was saved.

    Raises
    ------
    ModelFileError
        If the file is damaged, of another format or from a later version.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from ellipack import PackingRegressor
    >>> with TemporaryDirectory() as folder:
    ...     PackingRegressor().fit([[0.1], [0.9]], [0.0, 1.0]).save(Path(folder) / "model")
    ...     model = load(Path(folder) / "model")
    >>> model.predict([[0.8]]).tolist()
    [1.0]
    """
    kind, archive = serialization.read(path)
    try:
        return _table_regressor(archive) if kind == RUN_KIND else learner_from_archive(kind, archive)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def _table_regressor(archive: Archive) -> Any:
    """Return the model of a run. Its modules are imported here, because they need packages that other models do not."""
    run = import_module("ellipack.evaluation.run").run_from_archive(archive)
    return import_module("ellipack.tables.regressor").TableRegressor.from_run(run)
