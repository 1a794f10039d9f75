"""Rows of Dask collections and of Parquet files, predicted and learned on a cluster."""

from collections.abc import Sequence
from typing import Any

from distributed import get_client

from ellipack.dask.keyed_learning import learn_keyed
from ellipack.dask.learned_stream import LearnedStream, Wanted
from ellipack.dask.learning import learn_collection
from ellipack.dask.sources import open_source
from ellipack.dask.table_learning import learn_tables
from ellipack.dask.workers import ClusterWorkers, cluster_workers
from ellipack.errors import InputError
from ellipack.estimators import KeyedRegressor, MetricRegressor
from ellipack.learners.intervals import check_coverage
from ellipack.tables.regressor import TableRegressor


def progressive(
    learner: MetricRegressor | KeyedRegressor | TableRegressor,
    X: Any,
    y: Any = None,
    *,
    target: str | None = None,
    coverage: float | Sequence[float] | None = None,
    workers: ClusterWorkers | None = None,
    progress: bool = False,
) -> LearnedStream:
    """Predict each row as the next one, then learn from its label, on the workers of a cluster.

    Parameters
    ----------
    learner : MetricRegressor, KeyedRegressor or TableRegressor
        The learner, which continues if it has learned rows before. It is updated after each step or partition, so that
        it keeps the completed ones if an error occurs. The columns `by` of data frames and files may be of any kind;
        those that are not numbers are keys only, not features. A `TableRegressor` learns text, dates and missing
        values: this process gets the rows, one partition after the other, encodes them, and sends them to the workers.
    X : Dask array of shape (n, d), Dask data frame, or path of Parquet files
        Rows, in their order. A path is a file, a folder, a pattern such as ``"data/*.parquet"`` or a list of them. All
        workers must be able to read it. All columns must hold numbers, except for a `TableRegressor`.
    y : Dask array of shape (n,), optional
        Labels, if `X` is an array.
    target : str, optional
        Name of the column of the labels, if `X` is not an array. A `TableRegressor` knows it.
    coverage : float or sequence of float, optional
        Coverages of prediction intervals; see `MetricRegressor.predict_interval`.
    workers : ClusterWorkers, optional
        Workers of the cluster, with the sharding, on which the result of a `MetricRegressor` depends; see
        `cluster_workers`. By default, those of the current client.
    progress : bool, default False
        Whether a bar is written to standard error.

    Returns
    -------
    learned : LearnedStream
        The learner, the predictions and their intervals.

    Raises
    ------
    InputError
        If an argument is not valid.
    StreamError
        If a row cannot be learned. The message names the file or the partition, the row and the column.
    WorkerError
        If workers are lost again and again, or take too long.
    """
    wanted = Wanted(None if coverage is None else check_coverage(coverage), progress)
    own = cluster_workers(get_client()) if workers is None else workers
    if isinstance(learner, TableRegressor):
        if y is not None or target not in (None, learner.target):
            raise InputError("y and target must be None for a TableRegressor, which has a target of its own")
        return learn_tables(learner, X, own, wanted)
    if not isinstance(learner, MetricRegressor | KeyedRegressor):
        kinds = "a MetricRegressor, KeyedRegressor or TableRegressor"
        raise InputError(f"learner must be {kinds}, got {type(learner).__name__}")
    source = open_source(X, y, target, learner.by)
    if isinstance(learner, KeyedRegressor):
        return learn_keyed(learner, source, own, wanted)
    return learn_collection(learner, source, own, wanted)
