"""Predictions of `MetricRegressor` that do not change its state.

`predict` uses the features alone. `predict_next` and `NextRowPredictor` predict the rows that follow those that were
learned. They use the past, too.
"""

from copy import deepcopy
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import MetricCore, PastFeatures
from ellipack.errors import InputError
from ellipack.learners.intervals import Predictions, RowPredictions, empty_predictions
from ellipack.learners.metric.call_sizes import predictions_per_call
from ellipack.learners.metric.row_checks import (
    NO_KEYS,
    checked_keys,
    checked_known_labels,
    checked_rows,
    key_numbers,
)
from ellipack.learners.metric.state import MetricState
from ellipack.learners.short_calls import predict_in_short_calls, row_slices
from ellipack.locks import LearnLock
from ellipack.parallel import thread_count
from ellipack.validation import Floats, Ints


def predict(state: MetricState, X: ArrayLike, n_jobs: int | None = 1) -> Floats:
    """Return predictions from the features alone, without a change of the state.

    Parameters
    ----------
    state : MetricState
        The state.
    X : array-like of shape (n, d)
        Rows.
    n_jobs : int or None, default 1
        Number of threads, as in scikit-learn.

    Returns
    -------
    predictions : array of shape (n,)
        0 before the first round.
    """
    return _predict(state, X, n_jobs, with_intervals=False).values


def predict_with_intervals(state: MetricState, X: ArrayLike, n_jobs: int | None = 1) -> Predictions:
    """Return the predictions of `predict` and their intervals."""
    return _predict(state, X, n_jobs, with_intervals=True)


def _predict(state: MetricState, X: ArrayLike, n_jobs: int | None, *, with_intervals: bool) -> Predictions:
    core = state.core
    table = checked_rows(core, X)
    predictions = empty_predictions(len(table), with_intervals)
    _fill_predictions(core, table, predictions, thread_count(n_jobs, len(table)))
    return predictions


class NextRowPredictor:
    """Predicts the rows that follow, one after the other and in any number of calls, without a change of the state.

    Parameters
    ----------
    state : MetricState
        The state. It must not learn more rounds while this predictor is used.
    """

    def __init__(self, state: MetricState) -> None:
        self._state = state
        self._core = state.core
        self._clock = state.clock
        self._past: PastFeatures | None = None
        self._follows_unknown = False
        self._lock = LearnLock()

    def predict(self, X: ArrayLike, keys: Ints = NO_KEYS, labels: ArrayLike | None = None) -> Floats:
        """Return predictions for rows that follow those of the last call.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        keys : array of int64, shape (n,), optional
            Key of each row, if the learner has keys.
        labels : array-like of shape (n,), optional
            Labels, which the predictions of later rows use. A NaN is an unknown label, for which the prediction stands
            in. By default, all are unknown.

        Returns
        -------
        predictions : array of shape (n,)
            0 before the first round.
        """
        return self._predict(X, keys, labels, with_intervals=False).values

    def predict_with_intervals(
        self, X: ArrayLike, keys: Ints = NO_KEYS, labels: ArrayLike | None = None
    ) -> Predictions:
        """Return the predictions of `predict` and their intervals.

        If the label before a row is unknown, its interval is at least as wide as from the features alone.
        """
        return self._predict(X, keys, labels, with_intervals=True)

    def _predict(self, X: ArrayLike, keys: Ints, labels: ArrayLike | None, *, with_intervals: bool) -> Predictions:
        core = self._core
        rows = _checked_next_rows(core, X, keys, labels)
        predictions = empty_predictions(len(rows.table), with_intervals)
        if not core.has_past:
            self._check_clock()
            _fill_predictions(core, rows.table, predictions)
            self._check_clock()
            return predictions
        with self._lock.turn:
            self._check_clock()
            past = core.past_features() if self._past is None else self._past
            if self._past is not None and len(rows.table) > predictions_per_call(core):
                past = deepcopy(past)  # an interrupt between two calls leaves the past before the first
            follows_unknown = _fill_next_predictions(core, rows, past, self._follows_unknown, predictions)
            self._check_clock()
            self._past, self._follows_unknown = past, follows_unknown
        return predictions

    def _check_clock(self) -> None:
        if (
            self._state.core is not self._core or self._core.clock != self._clock
        ):  # the end of a phase replaces the core
            raise InputError("the learner has learned more rows: create a new predictor of the rows that follow")


def predict_next(state: MetricState, X: ArrayLike, keys: Ints = NO_KEYS, labels: ArrayLike | None = None) -> Floats:
    """Return predictions for the rows that follow, all from the same state. See `NextRowPredictor.predict`."""
    return _predict_next(state, X, keys, labels, with_intervals=False).values


def predict_next_with_intervals(
    state: MetricState, X: ArrayLike, keys: Ints = NO_KEYS, labels: ArrayLike | None = None
) -> Predictions:
    """Return the predictions of `predict_next` and their intervals."""
    return _predict_next(state, X, keys, labels, with_intervals=True)


def _predict_next(
    state: MetricState, X: ArrayLike, keys: Ints, labels: ArrayLike | None, *, with_intervals: bool
) -> Predictions:
    core = state.core
    rows = _checked_next_rows(core, X, keys, labels)
    predictions = empty_predictions(len(rows.table), with_intervals)
    if not core.has_past:
        _fill_predictions(core, rows.table, predictions)
    elif len(rows.table) == 1 or len(rows.table) <= predictions_per_call(core):
        core.predict_next(*rows, None, *predictions, False)
    else:
        still = core.copy()  # other threads may learn between two calls
        _fill_next_predictions(still, rows, still.past_features(), False, predictions)
    return predictions


def predict_each(state: MetricState, X: ArrayLike, keys: Ints = NO_KEYS) -> RowPredictions:
    """Return predictions of rows, each as if it were the next one, with what `learn_late` needs to learn them."""
    core = state.core
    table = checked_rows(core, X)
    numbers = key_numbers(checked_keys(core, keys, len(table)), len(table))
    found = [core.predict_next_interval_one(row, key) for row, key in zip(table.tolist(), numbers, strict=True)]
    values, past, bounds = zip(*found, strict=True)
    return RowPredictions(np.array(values), np.array(bounds), np.array(past).reshape(len(table), -1))


def _fill_predictions(core: MetricCore, table: Floats, predictions: Predictions, threads: int = 1) -> None:
    """Predict rows from the features alone by short calls of the core, all from the same state."""
    if len(table) == 1:
        core.predict(table, predictions.values, predictions.bounds)
        return

    def predict_slice(same: MetricCore, part: slice) -> None:
        same.predict(table[part], *predictions.part(part), threads)

    predict_in_short_calls(core, predict_slice, len(table), threads * predictions_per_call(core))


class _NextRows(NamedTuple):
    table: Floats
    keys: Ints
    labels: Floats  # NaN if unknown

    def part(self, rows: slice) -> "_NextRows":
        return _NextRows(self.table[rows], self.keys[rows], self.labels[rows])


def _checked_next_rows(core: MetricCore, X: ArrayLike, keys: Ints, labels: ArrayLike | None) -> _NextRows:
    table = checked_rows(core, X)
    known = np.full(len(table), np.nan) if labels is None else checked_known_labels(labels, len(table))
    return _NextRows(table, checked_keys(core, keys, len(table)), known)


def _fill_next_predictions(
    core: MetricCore, rows: _NextRows, past: PastFeatures, follows_unknown: bool, predictions: Predictions
) -> bool:
    """Predict rows that follow by short calls of the core, and update the past.

    `follows_unknown` tells whether the label before the first row is unknown. Return the same for the row after the
    last one.
    """
    for part in row_slices(len(rows.table), predictions_per_call(core)):
        core.predict_next(*rows.part(part), past, *predictions.part(part), follows_unknown)
        follows_unknown = bool(np.isnan(rows.labels[part.stop - 1]))
    return follows_unknown
