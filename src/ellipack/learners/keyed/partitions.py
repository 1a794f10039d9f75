"""Learning of `KeyedRegressor` on the workers of any executor, partitioned by key.

The learner of all keys learns the rows in this process. Then the rows are divided among partitions by the hashes of
their keys. A partition is one task: the learners of its keys, their rows and the predictions of the learner of all keys
in, learners and predictions out. A task changes nothing, so that an engine may run it again if a worker is lost. The
learners of two keys do not depend on each other: the result is the same, bit for bit, with any number of workers and of
partitions, and without any.

The state changes when all tasks are done. An error or an interrupt before leaves it as it was.
"""

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.keyed.key_learner import KeyLearner, KeySettings
from ellipack.learners.keyed.learner import (
    CallOptions,
    KeyedChange,
    KeyedState,
    KeyRecord,
    key_groups,
    select_rows,
)
from ellipack.learners.metric import learner
from ellipack.learners.metric.learner import BothPredictions
from ellipack.learners.metric.row_checks import checked_labels, checked_rows
from ellipack.learners.metric.state import MetricState
from ellipack.row_keys import RowKeys
from ellipack.validation import Floats, Ints, check_integer


class Partitioning(NamedTuple):
    """Where and in how many parts rows are learned.

    Attributes
    ----------
    executor : Executor
        Executor of tasks, such as a process pool or that of a Dask client.
    partitions : int
        Largest number of tasks. Each task has at least one key.
    """

    executor: Executor
    partitions: int


class Partition(NamedTuple):
    """Rows of a task of a worker.

    Attributes
    ----------
    rows, labels, keys : arrays
        Rows with the keys of the partition, in their order.
    pooled : BothPredictions
        Predictions of the learner of all keys for them.
    names : dict of int to str
        Values of the keys.
    """

    rows: Floats
    labels: Floats
    keys: Ints
    pooled: BothPredictions
    names: dict[int, str]


class KeyLearners(NamedTuple):
    """What is known about the keys of a partition.

    Attributes
    ----------
    packed : dict of int to bytes
        Learners of the keys that have one.
    records : dict of int to KeyRecord
        Their errors.
    settings : KeySettings
        Settings of the learners of new keys.
    added_scales : array of float
        Typical sizes of the features that were added so far.
    """

    packed: dict[int, bytes]
    records: dict[int, KeyRecord]
    settings: KeySettings
    added_scales: Floats

    @classmethod
    def of(cls, state: KeyedState, keys: Iterable[int]) -> "KeyLearners":
        """Return what a state knows about keys. The caller holds its lock."""
        known = [key for key in keys if key in state.records]
        packed, records = {key: state.store.pack(key) for key in known}, {key: state.records[key] for key in known}
        return cls(packed, records, state.settings, state.added_scales)


class LearnedPartition(NamedTuple):
    """Result of a task.

    Attributes
    ----------
    packed : dict of int to bytes
        Learners of the keys after the rows.
    records : dict of int to KeyRecord
        Their errors.
    predictions : Predictions
        Prediction of each row, made before its label was learned.
    """

    packed: dict[int, bytes]
    records: dict[int, KeyRecord]
    predictions: Predictions


def partition_numbers(keys: Ints, count: int) -> NDArray[np.uint64]:
    """Return the number of the partition of each row."""
    return keys.view(np.uint64) % np.uint64(count)


def partition_places(keys: Ints, count: int) -> list[Ints]:
    """Return the numbers of the rows of each partition that has any, in their order."""
    numbers = partition_numbers(keys, count)
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def select_partition(rows: Floats, labels: Floats, keys: RowKeys, pooled: BothPredictions, places: Ints) -> Partition:
    """Return the partition of the rows at some places."""
    hashes = keys.hashes[places]
    first = dict(zip(hashes[::-1].tolist(), places[::-1].tolist(), strict=True))
    names = {key: keys.name(row) for key, row in first.items()}
    return Partition(rows[places], labels[places], hashes, select_rows(pooled, places), names)


def learn_partition(part: Partition, known: KeyLearners) -> LearnedPartition:
    """Learn the rows of a partition. The arguments are not changed."""
    d, packed, records = part.rows.shape[1], {}, {}
    predictions = empty_predictions(len(part.rows), with_intervals=True)
    for key, places in key_groups(part.keys):
        data = known.packed.get(key)
        own = KeyLearner.initial(d, known.settings) if data is None else KeyLearner.unpack(data, f"learner {key}", d)
        theirs, labels, rounds = select_rows(part.pooled, places), part.labels[places], own.new_rounds(len(places))
        own.add_features(known.added_scales, d)
        after, found = own.learn(part.rows[places], labels, theirs, rounds)
        predictions.values[places], predictions.bounds[places] = found
        packed[key] = after.pack()
        record = known.records.get(key) or KeyRecord(part.names[key])
        records[key] = record.with_rows(found.values, theirs.next.values, labels)
    return LearnedPartition(packed, records, predictions)


def keep_learned(state: KeyedState, pooled: MetricState, results: Sequence[LearnedPartition]) -> None:
    """Replace the learners of a state by those that have learned. The caller holds its lock."""
    packed = {key: data for result in results for key, data in result.packed.items()}
    records = {key: record for result in results for key, record in result.records.items()}
    state.change = KeyedChange(pooled, packed, records)
    state.complete_batch()


def learn_partitioned(
    state: KeyedState, X: ArrayLike, y: ArrayLike, keys: RowKeys, where: Partitioning, options: CallOptions
) -> Predictions:
    """Run one round for each row, on the workers of an executor. See `ellipack.learners.keyed.learner.learn_into`.

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
        Executor, and largest number of partitions.
    options : CallOptions
        Threads of the learner of all keys.

    Returns
    -------
    predictions : Predictions
        Combined predictions with their intervals, each made before its label was learned.
    """
    table = checked_rows(state.pooled.core, X)
    labels = checked_labels(y, len(table))
    keys.check(len(table))
    count = check_integer(where.partitions, "partitions", 1)
    predictions = empty_predictions(len(table), with_intervals=True)
    with state.lock.turn:
        state.complete_batch()
        after = deepcopy(state.pooled)
        pooled = learner.learn_both(after, table, labels, options.n_jobs, keys.hashes)
        places = partition_places(keys.hashes, min(count, len(table)))
        parts = [select_partition(table, labels, keys, pooled, each) for each in places]
        known = [KeyLearners.of(state, part.names) for part in parts]
        results = list(where.executor.map(learn_partition, parts, known))
        for each, result in zip(places, results, strict=True):
            predictions.values[each], predictions.bounds[each] = result.predictions
        keep_learned(state, after, results)
    return predictions
