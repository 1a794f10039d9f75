"""Predictions for the rows of Dask collections, Parquet files and Arrow batches."""

from collections.abc import Iterable, Iterator
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from dask.delayed import delayed
from distributed import get_client

from ellipack.dask.sources import find_parquet_files
from ellipack.estimators import KeyedRegressor
from ellipack.estimators.input_checks import key_columns
from ellipack.validation import Floats


def predict(model: Any, X: Any) -> Any:
    """Return predictions for the rows of a Dask collection or of Parquet files, as a Dask collection.

    Nothing is computed yet. The model is sent to each worker once.

    Parameters
    ----------
    model : fitted regressor
        A regressor of this package. A `TableRegressor` predicts data frames and files with text and dates. For a
        `KeyedRegressor`, data frames and files have the columns of the key.
    X : Dask array of shape (n, d), Dask data frame, or path of Parquet files
        Rows. A path is a file, a folder, a pattern or a list of them.

    Returns
    -------
    predictions : Dask array of shape (n,), or Dask series
        An array if `X` is one; otherwise a series with the index of the data frame.

    Examples
    --------
    >>> from ellipack import MetricRegressor
    >>> X = da.from_array(np.arange(100.0).reshape(50, 2), chunks=(20, 2))
    >>> model = MetricRegressor().fit(X.compute(), X[:, 0].compute())
    >>> bool((predict(model, X).compute() == model.predict(X.compute())).all())
    True
    """
    shared = _share(model)
    if isinstance(X, da.Array):
        rows = X.rechunk({1: -1})
        return da.map_blocks(_predict_block, rows, shared, drop_axis=1, dtype=np.float64, meta=np.zeros(0))
    if not isinstance(X, dd.DataFrame):
        X = dd.read_parquet([str(path) for path in find_parquet_files(X)])
    return X.map_partitions(_predict_frame, shared, meta=pd.Series(dtype=np.float64, name="prediction"))


def _share(model: Any) -> Any:
    """Return the model on all workers of the current cluster; without a cluster, as one entry of the graph."""
    try:
        client = get_client()
    except ValueError:
        return delayed(model)
    return client.scatter(model, broadcast=True, hash=False)


def _predict_block(rows: Any, model: Any) -> Floats:
    predictions: Floats = model.predict(rows) if len(rows) else np.zeros(0)
    return predictions


def _predict_frame(frame: Any, model: Any) -> Any:
    names = getattr(model, "feature_names_in_", None)
    table = frame if names is None else frame[list(names)]
    keys = {}
    if isinstance(model, KeyedRegressor) and names is not None:  # keys need not be features
        keys = {"keys": frame[key_columns(model.by)].to_numpy(dtype=object)}
    values = model.predict(table, **keys) if len(frame) else np.zeros(0)
    return pd.Series(values, index=frame.index, name="prediction", dtype=np.float64)


def predict_batches(model: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield Arrow batches with a column `prediction` for Arrow batches, one at a time.

    Parameters
    ----------
    model : fitted regressor
        A regressor of this package.
    batches : iterable of pyarrow.RecordBatch
        Rows, such as a `pyarrow.RecordBatchReader`, or `iter_batches` of a Parquet file.

    Yields
    ------
    batch : pyarrow.RecordBatch
        The columns of the batch, and the predictions.

    Examples
    --------
    >>> from ellipack import MetricRegressor
    >>> frame = pd.DataFrame({"a": np.arange(50.0)})
    >>> model = MetricRegressor().fit(frame, 2 * frame["a"])
    >>> [batch] = predict_batches(model, [pa.RecordBatch.from_pandas(frame)])
    >>> batch.schema.names
    ['a', 'prediction']
    """
    for batch in batches:
        predictions = _predict_frame(batch.to_pandas(), model)
        yield batch.append_column("prediction", pa.array(predictions.to_numpy()))
