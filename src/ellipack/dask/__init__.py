"""One learner from more rows than one machine can learn or hold, and predictions for them, on a cluster of Dask.

`progressive` learns the rows of Dask arrays, of Dask data frames or of Parquet files with one learner on many workers.
`predict` predicts the rows of such collections, and `predict_batches` those of Arrow batches. `cluster_workers` makes
the workers of a cluster learn rows that this process holds. See
``docs/scaling-out.md``.

This module needs the extra ``dask``: ``pip install 'ellipack[dask]'``.

Examples
--------
>>> import dask.array as da
>>> from dask.distributed import Client
>>> from ellipack import MetricRegressor
>>> import ellipack.dask
>>> X = da.random.default_rng(0).normal(size=(3000, 2), chunks=(1000, 2))
>>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
...     learned = ellipack.dask.progressive(MetricRegressor(), X, X[:, 0] - X[:, 1])
...     error = abs(learned.predictions - (X[:, 0] - X[:, 1]))[1500:].mean().compute()
>>> bool(error < 0.1)
True
"""

try:
    import dask.dataframe  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ModuleNotFoundError(
        f"ellipack.dask needs the package {error.name or 'dask'}, which is not installed: pip install 'ellipack[dask]'",
        name=error.name,
    ) from error

from ellipack.dask.connection import connect, start_local_cluster
from ellipack.dask.learned_stream import LearnedStream
from ellipack.dask.prediction import predict, predict_batches
from ellipack.dask.progressive import progressive
from ellipack.dask.workers import ClusterWorkers, cluster_workers

__all__ = [
    "ClusterWorkers",
    "LearnedStream",
    "cluster_workers",
    "connect",
    "predict",
    "predict_batches",
    "progressive",
    "start_local_cluster",
]
