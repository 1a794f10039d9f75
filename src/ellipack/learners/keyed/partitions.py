"""Learning of `KeyedRegressor` on the workers of any executor, partitioned by key.

The learner of all keys learns the rows in this process. Then the rows are divided among partitions by the hashes of
their keys. A partition is one task: the learners of its keys, their rows and the predictions of the learner of all keys
in, learners and predictions out. A task changes nothing, so that an engine may run it again if a worker is lost. The
learners of two keys do not depend on each other: the result is the same, bit for bit, with any number of workers and of
partitions, and without any.

The state changes when all tasks are done. An error or an interrupt before leaves it as it was.
"""

from concurrent.futures import Executor
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.keyed.key_learner import KeyLearner, KeySettings
from ellipack.learners.keyed.learner import CallOptions, KeyedChange, KeyedState, key_groups, select_rows
from ellipack.learners.metric import learner
from ellipack.learners.metric.learner import BothPredictions
from ellipack.row_keys import RowKeys
from ellipack.validation import Floats, Ints, check_integer


class Partitioning(NamedTuple):
    """Where and in how many parts rows are learned.

    Attributes
    ----------
    executor : Executor
        Executor of tasks, such as a process pool or that of a Dask client.
    partitions : int
        Number of tasks.
    """

    executor: Executor
    partitions: int


class Partition(NamedTuple):
    """Task of a worker.

    Attributes
    ----------
    rows, labels, keys : arrays
        Rows with the keys of the partition, in their order.
    pooled : BothPredictions
        Predictions of the learner of all keys for them.
    packed : dict of int to bytes
        Learners of the keys that have one.
    settings : KeySettings
        Settings of the learners of new keys.
    added_scales : array of float
        Typical sizes of the features that were added so far.
    """

    rows: Floats
    labels: Floats
    keys: Ints
    pooled: BothPredictions
    packed: dict[int, bytes]
    settings: KeySettings
    added_scales: Floats


class LearnedPartition(NamedTuple):
    """Result of a task.

    Attributes
    ----------
    packed : dict of int to bytes
        Learners of the keys after the rows.
    predictions : Predictions
        Prediction of each row, made before its label was learned.
    """

    packed: dict[int, bytes]
    predictions: Predictions


def learn_partition(task: Partition) -> LearnedPartition:
    """Learn the rows of a partition. The task is not changed."""
    d = task.rows.shape[1]
    predictions, packed = empty_predictions(len(task.rows), with_intervals=True), {}
    for key, places in key_groups(task.keys):
        data = task.packed.get(key)
        own = KeyLearner.initial(d, task.settings) if data is None else KeyLearner.unpack(data, f"learner {key}", d)
        theirs, rounds = select_rows(task.pooled, places), own.new_rounds(len(places))
        own.add_features(task.added_scales, d)
        after, found = own.learn(task.rows[places], task.labels[places], theirs, rounds)
        predictions.values[places], predictions.bounds[places] = found
        packed[key] = after.pack()
    return LearnedPartition(packed, predictions)


def learn_partitioned(
    state: KeyedState, X: ArrayLike, y: ArrayLike, keys: RowKeys, where: Partitioning, options: CallOptions
) -> Predictions:
    """Run one round for each row, on the workers of an executor. See `ellipack.learners.keyed.learner.learn`.

    Parameters
    ----------
    state : KeyedState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    keys : RowKeys
        Key of each row.
    where : Partitioning
        Executor, and number of partitions.
    options : CallOptions
        Threads of the learner of all keys.

    Returns
    -------
    predictions : Predictions
        Combined predictions with their intervals, each made before its label was learned.
    """
    table = learner.checked_rows(state.pooled.core, X)
    labels = learner.checked_labels(state.pooled.core, y, len(table))
    keys.check(len(table))
    count = check_integer(where.partitions, "partitions", 1)
    predictions = empty_predictions(len(table), with_intervals=True)
    with state.lock.turn:
        state.settle()
        after = deepcopy(state.pooled)
        pooled = learner.learn_both(after, table, labels, options.n_jobs, keys.hashes)
        numbers = keys.hashes.view(np.uint64) % np.uint64(count)
        places = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
        tasks = [_partition(state, table[each], labels[each], keys.hashes[each], pooled, each) for each in places]
        results = list(where.executor.map(learn_partition, tasks))
        for each, result in zip(places, results, strict=True):
            predictions.values[each], predictions.bounds[each] = result.predictions
        packed = {key: data for result in results for key, data in result.packed.items()}
        records = {
            key: state.record(key, keys, int(each[0])).with_rows(
                predictions.values[each], pooled.next.values[each], labels[each]
            )
            for key, each in key_groups(keys.hashes)
        }
        state.change = KeyedChange(after, packed, records)
        state.settle()
    return predictions


def _partition(
    state: KeyedState, rows: Floats, labels: Floats, keys: Ints, pooled: BothPredictions, places: Ints
) -> Partition:
    """Return the task of the rows at some places."""
    known = {key: state.store.pack(key) for key in set(keys.tolist()) if key in state.records}
    return Partition(rows, labels, keys, select_rows(pooled, places), known, state.settings, state.added_scales)
