"""One learner on a cluster of Dask with real processes."""

import os
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed import Client, KilledWorker, LocalCluster
from distributed.utils import get_mp_context
from sklearn.base import clone

from ellipack import KeyedRegressor, MetricRegressor, PackingRegressor, Sharding, TableRegressor, Workers
from ellipack.dask import cluster_workers, learning, predict, predict_batches, progressive
from ellipack.errors import DomainError, InputError, KindError, ShapeError, StreamError, WorkerError
from ellipack.learners.keyed.partitions import learn_partition
from ellipack.validation import Floats
from tests.learners.metric.learners import QUICK, bits, smooth_stream

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning:distributed.*")
SHARDING = Sharding(shards=3, exchange=0.25, min_rows=32)
ROWS = 1100


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """Return a client of a cluster with two processes, which fork from one that has imported everything."""
    with warnings.catch_warnings(), dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        warnings.simplefilter("ignore")
        get_mp_context().set_forkserver_preload(["dask.dataframe", "distributed", "ellipack.dask"])
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50) as cluster,
            Client(cluster) as client,
        ):
            yield client


def model(**parameters: Any) -> MetricRegressor:
    return MetricRegressor(n_jobs=1, neighbors=16, config=QUICK, **parameters)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    X, y = smooth_stream(ROWS)
    store = np.resize(["north", "south", "west"], ROWS)
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(store=store, y=y)


@pytest.fixture(scope="module")
def expected(frame: pd.DataFrame) -> tuple[MetricRegressor, Floats]:
    """Return a learner of these rows on threads, and its predictions."""
    learner = model(by="store")
    with ThreadPoolExecutor(2) as executor:
        predictions = learner.progressive(
            frame[["a", "b", "c"]], frame["y"], keys=frame["store"], workers=Workers(executor, SHARDING)
        )
    return learner, predictions


def test_a_cluster_gives_the_bits_of_threads_for_any_partitions(
    client: Client, frame: pd.DataFrame, expected: tuple[MetricRegressor, Floats], tmp_path: Path
) -> None:
    for k, part in enumerate((frame[:400], frame[400:410], frame[410:])):
        part.to_parquet(tmp_path / f"{k}.parquet", row_group_size=150)
    for source in (dd.from_pandas(frame, npartitions=4), tmp_path):
        learner, predictions, _ = progressive(
            model(by="store"), source, target="y", workers=cluster_workers(client, SHARDING)
        )
        assert predictions.compute().tobytes() == expected[1].tobytes()
        assert bits(learner.state_) == bits(expected[0].state_)
        assert learner.feature_names_in_.tolist() == ["a", "b", "c"]


def test_the_executor_of_a_client_gives_the_same_bits(
    client: Client, frame: pd.DataFrame, expected: tuple[MetricRegressor, Floats]
) -> None:
    learner = model(by="store")
    with client.get_executor(pure=False) as executor:
        predictions = learner.progressive(
            frame[["a", "b", "c"]], frame["y"], keys=frame["store"], workers=Workers(executor, SHARDING)
        )
    assert predictions.tobytes() == expected[1].tobytes()
    assert bits(learner.state_) == bits(expected[0].state_)


def failing(function: Callable[..., Any], flag: Path, seconds: float = 0.0) -> Callable[..., Any]:
    """Return a function that ends its process, or waits, in the one call that removes a flag."""

    def learn_shard(*arguments: Any) -> Any:
        try:
            flag.unlink()
        except FileNotFoundError:  # another call did, maybe in another process
            return function(*arguments)
        time.sleep(seconds)
        if not seconds:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments)

    return learn_shard


def test_killed_worker_is_replaced(
    client: Client,
    frame: pd.DataFrame,
    expected: tuple[MetricRegressor, Floats],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    monkeypatch.setattr(learning, "learn_shard", failing(learning.learn_shard, flag))
    rows = dd.from_pandas(frame, npartitions=3)
    learner, predictions, _ = progressive(
        model(by="store"), rows, target="y", workers=cluster_workers(client, SHARDING)
    )
    assert not flag.exists()
    assert predictions.compute().tobytes() == expected[1].tobytes()
    assert bits(learner.state_) == bits(expected[0].state_)


def test_step_whose_state_was_lost_is_run_again(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = smooth_stream(60)
    killed: Any = KilledWorker
    run_step, failures = learning._Run._run_step, [CancelledError(), killed("task", None, 0)]

    def fail_first(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return run_step(*arguments)

    monkeypatch.setattr(learning._Run, "_run_step", fail_first)
    learner, predictions, _ = progressive(model(), da.from_array(X), da.from_array(y), workers=cluster_workers(client))
    assert predictions.compute().tobytes() == model().progressive(X, y).tobytes()
    failures += [CancelledError()] * 3
    with pytest.raises(WorkerError, match="workers end again and again while they learn rows 0 to 59"):
        progressive(learner, da.from_array(X), da.from_array(y), workers=cluster_workers(client))
    assert learner.state_.clock == 60


def test_arrays_continue_where_the_learner_is(client: Client) -> None:
    X, y = smooth_stream(ROWS)
    learner = model().fit(X[:600], y[:600])
    rows, labels = da.from_array(X[600:], chunks=(130, 2)), da.from_array(y[600:], chunks=200)
    _, predictions, _ = progressive(learner, rows, labels, workers=cluster_workers(client, SHARDING))
    other = model().fit(X[:600], y[:600])
    with ThreadPoolExecutor(1) as executor:
        wanted = other.progressive(X[600:], y[600:], workers=Workers(executor, SHARDING))
    assert predictions.compute().tobytes() == wanted.tobytes()
    assert predictions.shape == (500,)
    assert bits(learner.state_) == bits(other.state_)


def test_intervals_are_those_of_one_machine(client: Client) -> None:
    X, y = smooth_stream(800)
    rows, labels = da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=300)
    workers = cluster_workers(client, SHARDING)
    _, predictions, intervals = progressive(model(), rows, labels, coverage=[0.5, 0.95], workers=workers)
    with ThreadPoolExecutor(1) as executor:
        values, wanted = model().progressive(X, y, coverage=[0.5, 0.95], workers=Workers(executor, SHARDING))
    assert predictions.compute().tobytes() == values.tobytes()
    assert intervals is not None
    assert intervals.lower.compute().tobytes() == wanted.lower.tobytes()
    assert intervals.upper.compute().tobytes() == wanted.upper.tobytes()


def test_tables_with_text_and_missing_values_are_learned(client: Client, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame = frame.assign(a=frame["a"].where(frame.index % 5 > 0))
    frame[:500].to_parquet(tmp_path / "0.parquet")
    frame[500:].to_parquet(tmp_path / "1.parquet")
    workers, learners = cluster_workers(client, SHARDING), []
    for source in (dd.from_pandas(frame, npartitions=3), tmp_path):
        table = TableRegressor("y", learner=model(past=False))
        learned = progressive(table, source, coverage=0.8, workers=workers, progress=source is tmp_path)
        with ThreadPoolExecutor(2) as executor:
            expected = clone(table).progressive(frame, coverage=0.8, workers=Workers(executor, SHARDING))
        assert learned.predictions.compute().tobytes() == expected[0].tobytes()
        assert learned.intervals is not None
        assert learned.intervals.upper.compute().tobytes() == expected[1].upper.tobytes()
        learners.append(learned.learner)
    assert bits(learners[0].learner_.state_) == bits(learners[1].learner_.state_)


def test_a_fitted_table_regressor_continues_with_files(client: Client, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame[300:600].to_parquet(tmp_path / "0.parquet")
    frame[600:800].to_parquet(tmp_path / "1.parquet")
    learner = TableRegressor("y", learner=model(past=False)).fit(frame[:300])
    other = deepcopy(learner)
    learned = progressive(learner, tmp_path, workers=cluster_workers(client, SHARDING))
    with ThreadPoolExecutor(2) as executor:
        expected = other.progressive(frame[300:800], workers=Workers(executor, SHARDING))
    assert learned.predictions.compute().tobytes() == expected.tobytes()
    assert bits(learner.learner_.state_) == bits(other.learner_.state_)
    assert learner.run_.position == 500
    frame[800:900].assign(y=np.inf).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(StreamError, match=r"2\.parquet, row 1"):
        progressive(learner, tmp_path / "2.parquet", workers=cluster_workers(client, SHARDING))
    with pytest.raises(DomainError, match="coverage"):
        progressive(learner, tmp_path, coverage=2.0, workers=cluster_workers(client, SHARDING))
    assert bits(learner.learner_.state_) == bits(other.learner_.state_)
    assert learner.run_.position == 500


def test_bad_cell_of_a_table_is_named_with_its_file(client: Client, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame[:40].to_parquet(tmp_path / "0.parquet")
    frame[40:80].assign(y=[*frame["y"][40:70], np.inf, *frame["y"][71:80]]).to_parquet(tmp_path / "1.parquet")
    with pytest.raises(StreamError, match=r"1\.parquet, row 31"):
        progressive(TableRegressor("y"), tmp_path, workers=cluster_workers(client))


def keyed(**parameters: Any) -> KeyedRegressor:
    own = MetricRegressor(200, past=False, n_jobs=1, neighbors=8, config=QUICK)
    return KeyedRegressor("store", learner=own, pooled=model(), **parameters)


@pytest.fixture(scope="module")
def keyed_alone(frame: pd.DataFrame) -> tuple[KeyedRegressor, Any]:
    learner = keyed()
    numbers, labels = frame[["a", "b", "c"]][:400], frame["y"][:400]
    return learner, learner.progressive(numbers, labels, keys=frame["store"][:400], coverage=0.9)


def test_learners_per_key_are_those_of_one_machine_for_any_partitions(
    client: Client, frame: pd.DataFrame, keyed_alone: tuple[KeyedRegressor, Any], tmp_path: Path
) -> None:
    rows, (alone, (values, intervals)) = frame[:400], keyed_alone
    rows[:170].to_parquet(tmp_path / "0.parquet")
    rows[170:].to_parquet(tmp_path / "1.parquet", row_group_size=100)
    for source, shards in ((dd.from_pandas(rows, npartitions=3), 2), (tmp_path, 5)):
        learner = keyed(max_learners=1)
        workers = cluster_workers(client, Sharding(shards))
        _, predictions, found = progressive(learner, source, target="y", coverage=0.9, workers=workers)
        assert predictions.compute().tobytes() == values.tobytes()
        assert found is not None
        assert found.lower.compute().tobytes() == intervals.lower.tobytes()
        assert learner.key_errors().rmse.tobytes() == alone.key_errors().rmse.tobytes()
        assert learner.key_errors().names == alone.key_errors().names
        learner.save(tmp_path / "cluster")
        alone.set_params(max_learners=1).save(tmp_path / "alone")
        alone.set_params(max_learners=1000)
        assert (tmp_path / "cluster").read_bytes() == (tmp_path / "alone").read_bytes()


def test_learners_per_key_survive_a_killed_worker_and_keep_completed_partitions(
    client: Client,
    frame: pd.DataFrame,
    keyed_alone: tuple[KeyedRegressor, Any],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    monkeypatch.setattr("ellipack.dask.keyed_learning.learn_partition", failing(learn_partition, flag))
    rows = frame[:400].copy()
    rows.loc[390, "b"] = np.nan
    learner, workers = keyed(), cluster_workers(client, Sharding(2))
    source = dd.from_pandas(rows, npartitions=4)
    with pytest.raises(StreamError, match="partition 3, row 90, column 'b'"):
        progressive(learner, source, target="y", workers=workers)
    assert not flag.exists()
    assert learner.state_.pooled.clock == 300
    _, predictions, _ = progressive(learner, dd.from_pandas(frame[300:400], npartitions=1), target="y", workers=workers)
    assert predictions.compute().tobytes() == keyed_alone[1][0][300:].tobytes()


def test_bad_row_is_named_and_completed_steps_are_kept(client: Client, frame: pd.DataFrame, tmp_path: Path) -> None:
    bad = frame.drop(columns="store")
    bad.loc[1000, "b"] = np.nan
    bad[:600].to_parquet(tmp_path / "0.parquet")
    bad[600:].to_parquet(tmp_path / "1.parquet")
    learner = model()
    with pytest.raises(StreamError, match=r"1\.parquet, row 400, column 'b': must be a finite number, got nan"):
        progressive(learner, str(tmp_path / "*.parquet"), target="y", workers=cluster_workers(client, SHARDING))
    assert learner.state_.clock == 597  # the last step before the partition with the bad row
    rows, labels = bad[["a", "b", "c"]].to_numpy()[580:], bad["y"].to_numpy()[580:]
    chunks = da.from_array(rows, chunks=(200, 3)), da.from_array(labels, chunks=200)
    with pytest.raises(StreamError, match=r"chunk 2, row 20, column '1': must be a finite number, got nan"):
        progressive(learner, *chunks, workers=cluster_workers(client))


def test_worker_that_hangs_is_reported(client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "flag").touch()
    monkeypatch.setattr(learning, "learn_alone", failing(learning.learn_alone, tmp_path / "flag", seconds=1.5))
    X, y = smooth_stream(100)
    with pytest.raises(WorkerError, match=r"rows 0 to 99 within timeout = 0.5 s, still at work: \w+://"):
        progressive(model(), da.from_array(X), da.from_array(y), workers=cluster_workers(client, timeout=0.5))


def test_columns_that_cannot_be_learned_are_named(client: Client, frame: pd.DataFrame, tmp_path: Path) -> None:
    rows = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(KindError, match="column 'store' must hold numbers"):
        progressive(model(), rows, target="y", workers=cluster_workers(client))
    with pytest.raises(InputError, match="columns must contain 'z', got a, b, c, store, y"):
        progressive(model(by="store"), rows, target="z", workers=cluster_workers(client))
    with pytest.raises(InputError, match="by must not be the target, because a row is predicted without it, got 'y'"):
        progressive(model(by=["store", "y"]), rows, target="y", workers=cluster_workers(client))
    with pytest.raises(InputError, match="target must be the name"):
        progressive(model(), rows, workers=cluster_workers(client))
    with pytest.raises(InputError, match="y must be a Dask array"):
        progressive(model(), da.zeros((5, 2)), workers=cluster_workers(client))
    with pytest.raises(ShapeError, match="one label per row, 5, got 4"):
        progressive(model(), da.zeros((5, 2)), da.zeros(4), workers=cluster_workers(client))
    with pytest.raises(StreamError, match="found none"):
        progressive(model(), tmp_path / "none", target="y", workers=cluster_workers(client))
    with pytest.raises(InputError, match=r"learner must be a MetricRegressor, .*, got PackingRegressor"):
        progressive(PackingRegressor(), rows, target="y", workers=cluster_workers(client))
    with pytest.raises(InputError, match="which has a target of its own"):
        progressive(TableRegressor("y"), rows, target="a", workers=cluster_workers(client))
    with pytest.raises(InputError, match="target must name the column of the labels"):
        progressive(TableRegressor(), rows, workers=cluster_workers(client))


def test_predictions_for_collections_are_those_of_one_machine(
    client: Client, frame: pd.DataFrame, tmp_path: Path
) -> None:
    numbers = frame[["a", "b", "c"]]
    learner = model().fit(numbers[:300], frame["y"][:300])
    wanted = learner.predict(numbers)
    rows = dd.from_pandas(frame, npartitions=3)
    assert predict(learner, rows).compute().to_numpy().tobytes() == wanted.tobytes()
    frame.to_parquet(tmp_path / "0.parquet", row_group_size=300)
    assert predict(learner, tmp_path).compute().to_numpy().tobytes() == wanted.tobytes()
    nameless = model().fit(numbers.to_numpy()[:300], frame["y"][:300])
    found = predict(nameless, da.from_array(numbers.to_numpy(), chunks=(150, 2)))
    assert found.compute().tobytes() == wanted.tobytes()
    by_store = keyed().fit(numbers[:300], frame["y"][:300], keys=frame["store"][:300])
    expected = by_store.predict(numbers, keys=frame["store"])
    assert predict(by_store, rows).compute().to_numpy().tobytes() == expected.tobytes()
    table = TableRegressor(learner=model()).fit(frame[:300].drop(columns="y"), frame["y"][:300])
    assert predict(table, rows.drop(columns="y")).compute().tolist() == table.predict(frame.drop(columns="y")).tolist()


def test_arrow_batches_are_predicted_one_at_a_time(frame: pd.DataFrame) -> None:
    learner = model().fit(frame[["a", "b", "c"]][:300], frame["y"][:300])
    batches = pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=250)
    found = pa.Table.from_batches(predict_batches(learner, iter(batches)))
    assert found.column_names == [*frame.columns, "prediction"]
    assert found["prediction"].to_numpy().tobytes() == learner.predict(frame[["a", "b", "c"]]).tobytes()
