"""Prediction and learning of `KeyedRegressor`.

The learner of all keys learns each row with its key. Then the learner of the key learns the row. What the learner of a
key predicts depends on the rows of the key and on the predictions of the learner of all keys for these rows, and on
nothing else. So rows are learned in batches, key by key, with the same results as one by one.

A round is learned completely or not at all. Files are written and read before a batch is learned. If something fails
within a batch, its rows that the learner of all keys has learned are completed before the state is used again:
`KeyedState.complete_batch`.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.learners.intervals import Predictions, RowPredictions, check_bounds, empty_predictions
from ellipack.learners.keyed.combination import PublishedPrediction
from ellipack.learners.keyed.key_learner import PREDICTION_PAIRS_SIZE, KeyLearner, KeySettings, LateRow, OwnRounds
from ellipack.learners.keyed.store import LearnerStore, StoreLimits
from ellipack.learners.metric import learner
from ellipack.learners.metric.feature_growth import with_added_features
from ellipack.learners.metric.learner import BothPredictions
from ellipack.learners.metric.predictions import predict_next_with_intervals, predict_with_intervals
from ellipack.learners.metric.row_checks import checked_labels, checked_past, checked_rows
from ellipack.learners.metric.state import MetricState
from ellipack.locks import LearnLock
from ellipack.row_keys import RowKeys
from ellipack.validation import Floats, Ints

_BATCH_ROWS = 256  # of a batch, whose learners are in memory


@dataclass(slots=True)
class KeyRecord:
    """What is remembered of each key in memory.

    Attributes
    ----------
    name : str
        Values of the key.
    rows : int
        Number of rows.
    squared_error : float
        Sum of the squared errors of the combined predictions of the next row.
    pooled_error : float
        The same for the learner of all keys.
    """

    name: str
    rows: int = 0
    squared_error: float = 0.0
    pooled_error: float = 0.0

    def with_rows(self, values: Floats, pooled: Floats, labels: Floats) -> "KeyRecord":
        """Return the record after more rows, with the predictions that were made before their labels."""
        after = replace(self)
        for value, other, label in zip(values.tolist(), pooled.tolist(), labels.tolist(), strict=True):
            after.rows += 1
            after.squared_error += (value - label) ** 2
            after.pooled_error += (other - label) ** 2
        return after


@dataclass
class _Batch:
    """Rows that are being learned, of which all learners are in memory.

    The learner of all keys learns first, row by row. Its clock tells how many rows the batch has in the end.

    Attributes
    ----------
    rows, labels, keys : array, array and RowKeys
        The rows.
    predictions : Predictions
        Combined predictions, to fill in. Without rows of bounds, intervals are not wanted.
    start : int
        Number of rounds of the learner of all keys before.
    pooled : BothPredictions
        Its predictions.
    own : dict of int to KeyLearner
        Learners of the keys before the batch.
    late : list of LateRow
        One row whose label comes late; otherwise empty.
    rounds : dict of int to OwnRounds
        Rounds of the learners of the keys.
    """

    rows: Floats
    labels: Floats
    keys: RowKeys
    predictions: Predictions
    start: int
    pooled: BothPredictions
    own: dict[int, KeyLearner]
    late: list[LateRow] = field(default_factory=list)
    rounds: dict[int, OwnRounds] = field(default_factory=dict)


class KeyedChange(NamedTuple):
    """What a batch changes.

    Attributes
    ----------
    pooled : MetricState
        Learner of all keys after the batch.
    learners : mapping of int to KeyLearner or bytes
        Learners of the keys after the batch, packed or not.
    records : dict of int to KeyRecord
        Their records.
    """

    pooled: MetricState
    learners: Mapping[int, KeyLearner | bytes]
    records: dict[int, KeyRecord]


class KeyedState:
    """State of the learner.

    A batch of rows changes several learners. It is kept until it is complete: if an error or an interrupt ends it,
    `complete_batch` completes it, or as many of its rows as the learner of all keys has learned.

    Parameters
    ----------
    pooled : MetricState
        Learner of all keys.
    settings : KeySettings
        Settings of the learners of new keys.
    store : LearnerStore
        Learners of the keys.
    records : dict of int to KeyRecord
        Errors by key.
    added_scales : array of float
        Typical sizes of the features that were added so far. A learner adds them when its key is learned next.
    """

    def __init__(
        self,
        pooled: MetricState,
        settings: KeySettings,
        store: LearnerStore,
        records: dict[int, KeyRecord],
        added_scales: Floats,
    ) -> None:
        self.pooled = pooled
        self.settings = settings
        self.store = store
        self.records = records
        self.added_scales = added_scales
        self.lock = LearnLock()
        self.batch: _Batch | None = None
        self.change: KeyedChange | None = None

    @property
    def dimension(self) -> int:
        """Number of features."""
        return self.pooled.core.dimension

    def record(self, key: int, keys: RowKeys, row: int) -> KeyRecord:
        """Return the record of a key, a new one for a new key, whose name is that of a row."""
        return self.records[key] if key in self.records else KeyRecord(keys.name(row))

    def complete_batch(self) -> None:
        """Complete a batch whose learning has ended. If it fails, it can be called again. The caller holds the lock."""
        if self.change is None and self.batch is not None:
            self.change = _compute_change(self, self.batch)
        if self.change is not None:
            self.store.put(self.change.learners)
            self.records.update(self.change.records)
            # In one call, so that an interrupt sees all of these or none.
            vars(self).update(pooled=self.change.pooled, batch=None, change=None)

    def __reduce__(self) -> tuple[type["KeyedState"], tuple[object, ...]]:
        with self.lock.turn:
            self.complete_batch()
            packed = LearnerStore({key: self.store.pack(key) for key in self.records})
            pooled = deepcopy(self.pooled)  # another thread may learn before the caller copies what is returned
            return KeyedState, (pooled, self.settings, packed, dict(self.records), self.added_scales)


class CallOptions(NamedTuple):
    """Options that do not change results.

    Attributes
    ----------
    n_jobs : int or None
        Number of threads of the learner of all keys, as in scikit-learn.
    limits : StoreLimits
        Where the learners of keys are kept.
    """

    n_jobs: int | None
    limits: StoreLimits


def initial_state(pooled: MetricState, settings: KeySettings) -> KeyedState:
    """Return the state before the first round, with the initial state of the learner of all keys."""
    return KeyedState(pooled, settings, LearnerStore(), {}, np.zeros(0))


def learn_into(
    state: KeyedState, X: ArrayLike, y: ArrayLike, predictions: Predictions, keys: RowKeys, options: CallOptions
) -> None:
    """Run one round for each row: predict it as the next one, then learn its label.

    Predictions and state do not depend on how rows are grouped into calls, nor on `options`, bit for bit. After an
    error or an interrupt, some of the first rows are learned, and their predictions are in the arrays as soon as the
    state is complete.

    Parameters
    ----------
    state : KeyedState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    predictions : Predictions
        Arrays for the combined predictions, each made before its label was learned. Without rows of bounds, intervals
        are not wanted.
    keys : RowKeys
        Key of each row.
    options : CallOptions
        Threads, and where learners are kept.

    Raises
    ------
    InputError
        If an argument is not valid. The state is unchanged.
    ModelFileError
        If the file of a learner can't be written, or is lost or damaged. The rows before its batch are learned.
    """
    table = _checked(state, X, keys)
    labels = checked_labels(y, len(table))
    with state.lock.turn:
        state.complete_batch()
        for part in _batches(keys.hashes, options.limits.max_learners):
            own = state.store.fetch(set(keys.hashes[part].tolist()), options.limits, state.dimension)
            rows = table[part], labels[part], keys.part(part), predictions.part(part)
            both = BothPredictions(*(empty_predictions(len(rows[0]), with_intervals=True) for _ in range(2)))
            state.batch = _Batch(*rows, state.pooled.clock, both, own)
            hashes = keys.hashes[part]
            learner.learn_into(state.pooled, *rows[:2], both.next, options.n_jobs, hashes, both.plain)
            state.complete_batch()


def _batches(keys: Ints, max_keys: int) -> Iterator[slice]:
    """Cut rows into batches with at most `max_keys` different keys."""
    start, seen = 0, set[int]()
    for t, key in enumerate(keys.tolist()):
        if t - start == _BATCH_ROWS or (key not in seen and len(seen) == max_keys):
            yield slice(start, t)
            start, seen = t, set()
        seen.add(key)
    yield slice(start, len(keys))


def key_groups(keys: Ints) -> Iterator[tuple[int, Ints]]:
    """Return each key with the numbers of its rows, in their order."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=~keys[order[0]]))
    for places in np.split(order, starts[1:]):
        yield int(keys[places[0]]), places


def _compute_change(state: KeyedState, batch: _Batch) -> KeyedChange:
    """Return what the rows of a batch change that the learner of all keys has learned, and fill in predictions."""
    count = state.pooled.clock - batch.start
    learners, records = dict[int, KeyLearner](), dict[int, KeyRecord]()
    for key, places in key_groups(batch.keys.hashes[:count]):
        if key not in batch.own:
            batch.own[key] = KeyLearner.initial(state.dimension, state.settings)
        own, theirs, labels = batch.own[key], select_rows(batch.pooled, places), batch.labels[places]
        rounds = batch.rounds.setdefault(key, own.new_rounds(len(places)))
        own.add_features(state.added_scales, state.dimension)
        if batch.late:
            after, found = own.learn_late(batch.late[0], rounds), batch.predictions
        else:
            after, found = own.learn(batch.rows[places], labels, theirs, rounds)
            batch.predictions.values[places] = found.values
            if len(batch.predictions.bounds):
                batch.predictions.bounds[places] = found.bounds
        record = state.record(key, batch.keys, int(places[0]))
        records[key] = record.with_rows(found.values, theirs.next.values, labels)
        learners[key] = after
    return KeyedChange(state.pooled, learners, records)


def select_rows(both: BothPredictions, places: Ints) -> BothPredictions:
    """Return the predictions of some rows."""
    return BothPredictions(*(Predictions(each.values[places], each.bounds[places]) for each in both))


def predict(state: KeyedState, X: ArrayLike, keys: RowKeys, options: CallOptions) -> Predictions:
    """Return predictions of rows that need not follow, from the features alone, with their intervals.

    Parameters
    ----------
    state : KeyedState
        The state. It does not change, except that other learners may be in memory.
    X : array-like of shape (n, d)
        Rows.
    keys : RowKeys
        Key of each row. A new key is predicted by the learner of all keys.
    options : CallOptions
        Threads, and where learners are kept.

    Returns
    -------
    predictions : Predictions
    """
    table = _checked(state, X, keys)
    with state.lock.turn:
        state.complete_batch()
        pooled = predict_with_intervals(state.pooled, table, options.n_jobs)
        return _combine(state, pooled, keys.hashes, options.limits, lambda own, at, of: own.predict(table[at], of))


def predict_next(
    state: KeyedState, X: ArrayLike, keys: RowKeys, labels: ArrayLike | None, options: CallOptions
) -> Predictions:
    """Return predictions of the rows that follow, one after the other, with their intervals.

    Parameters
    ----------
    state : KeyedState
        The state. It does not change, except that other learners may be in memory.
    X : array-like of shape (n, d)
        Rows.
    keys : RowKeys
        Key of each row.
    labels : array-like of shape (n,) or None
        Labels that are known, for the predictions of later rows; NaN where a label is not known. Then the prediction of
        the learner of all keys stands in for it.
    options : CallOptions
        Where learners are kept.

    Returns
    -------
    predictions : Predictions
    """
    table = _checked(state, X, keys)
    with state.lock.turn:
        state.complete_batch()
        pooled = predict_next_with_intervals(state.pooled, table, keys.hashes, labels)
        return _combine(state, pooled, keys.hashes, options.limits, lambda own, at, of: own.predict_next(table[at], of))


def _checked(state: KeyedState, X: ArrayLike, keys: RowKeys) -> Floats:
    """Return checked rows, each with a key."""
    table = checked_rows(state.pooled.core, X)
    keys.check(len(table))
    return table


def _combine(
    state: KeyedState,
    pooled: Predictions,
    keys: Ints,
    limits: StoreLimits,
    predict_key: Callable[[KeyLearner, Ints, Predictions], Predictions],
) -> Predictions:
    """Return the predictions of each key, by a function of its learner, its rows and the predictions of all keys."""
    predictions = empty_predictions(len(keys), with_intervals=True)
    for key_learner, places in _each_learner(state, keys, limits):
        theirs = Predictions(pooled.values[places], pooled.bounds[places])
        predictions.values[places], predictions.bounds[places] = predict_key(key_learner, places, theirs)
    return predictions


def predict_each(state: KeyedState, X: ArrayLike, keys: RowKeys, options: CallOptions) -> RowPredictions:
    """Return predictions of rows, each as if it were the next one, with what `learn_late` needs to learn them.

    The features of the past are those of the learner of all keys, and then the prediction pairs.
    """
    table = _checked(state, X, keys)
    values, bounds = empty_predictions(len(table), with_intervals=True)
    past = np.zeros((len(table), learner.n_past_features(state.pooled.core) + PREDICTION_PAIRS_SIZE))
    with state.lock.turn:
        state.complete_batch()
        plain = predict_with_intervals(state.pooled, table, options.n_jobs)
        following = [
            state.pooled.core.predict_next_interval_one(row, key)
            for row, key in zip(table.tolist(), keys.hashes.tolist(), strict=True)
        ]
        next_values, past_rows, next_bounds = zip(*following, strict=True)
        past[:, :-PREDICTION_PAIRS_SIZE] = past_rows
        both = BothPredictions(Predictions(np.array(next_values), np.array(next_bounds)), plain)
        for key_learner, places in _each_learner(state, keys.hashes, options.limits):
            found = key_learner.predict_each(table[places], select_rows(both, places))
            values[places], bounds[places], past[places, -PREDICTION_PAIRS_SIZE:] = found
    return RowPredictions(values, bounds, past)


def _each_learner(state: KeyedState, keys: Ints, limits: StoreLimits) -> Iterator[tuple[KeyLearner, Ints]]:
    """Return the learner of each key, with all features, and the numbers of its rows. The caller holds the lock."""
    new = KeyLearner.initial(state.dimension, state.settings)
    for key, places in key_groups(keys):
        known = state.store.fetch([key], limits, state.dimension) if key in state.records else {}
        key_learner = known.get(key, new)
        if key_learner.dimension < state.dimension:  # it gets them when it learns
            key_learner = key_learner.copy()
            key_learner.add_features(state.added_scales, state.dimension)
        yield key_learner, places


def learn_late(
    state: KeyedState, X: ArrayLike, y: ArrayLike, predictions: RowPredictions, keys: RowKeys, limits: StoreLimits
) -> None:
    """Learn rows whose labels come after other rows, with what `predict_each` returned for them."""
    table = _checked(state, X, keys)
    labels = checked_labels(y, len(table))
    width = learner.n_past_features(state.pooled.core) + PREDICTION_PAIRS_SIZE
    past = checked_past(predictions.past, len(table), width)
    published = Predictions(np.asarray(predictions.values), check_bounds(predictions.bounds, len(table)))
    with state.lock.turn:
        state.complete_batch()
        for t, key in enumerate(keys.hashes.tolist()):
            own = state.store.fetch([key], limits, state.dimension)
            part, pairs = slice(t, t + 1), past[t, -PREDICTION_PAIRS_SIZE:]
            pooled = Predictions(pairs[:1], published.bounds[part])
            row, label = table[t].tolist(), float(labels[t])
            late = LateRow(
                row, label, PublishedPrediction(float(published.values[t]), published.bounds[t]), pairs.tolist()
            )
            rows = table[part], labels[part], keys.part(part), published.part(part)
            state.batch = _Batch(*rows, state.pooled.clock, BothPredictions(pooled, pooled), own, [late])
            learner.learn_one(state.pooled, learner.Round(row, label, key, past[t, :-PREDICTION_PAIRS_SIZE].tolist()))
            state.complete_batch()


def add_features(state: KeyedState, scales: Floats) -> None:
    """Add features as last columns, which are 0 in all earlier rows."""
    with state.lock.turn:
        state.complete_batch()
        added_scales = np.append(state.added_scales, scales)
        # In one call, so that an interrupt sees all of these or none.
        vars(state).update(pooled=with_added_features(state.pooled, scales), added_scales=added_scales)
