"""Rounds of `MetricRegressor`: predict a row, then learn its label.

**Outlying labels.** A single erroneous label (from a failing sensor, or with a misplaced decimal point) must not damage
the model. Let [a, b] be the range of the labels learned so far, at least five of them and not all equal. Let c be the
number of outliers in this phase, plus half of the value of c at the end of the phase before. A label is an outlier if
it lies more than ``3 * 10**c * (b - a)`` outside of [a, b]. An outlier increases c, is a miss of the prediction
intervals, and has no other effect. A lasting change of level is learned after a few rounds, one for each power of ten
of its size.

**Regret bound.** The bound of `ellipack.learners.aggregation` holds on every stream, phase by phase, for the rounds
whose label is not an outlier. A phase has at most ``1 + log10(R / (3 (b - a)))`` outliers, where [a, b] is the range at
its start and R the largest distance of its labels from that range.

**Outlying features.** The same rule applies to each feature. The value of an outlier is clipped to one width of the
range outside of it, in learning and in prediction. The row is learned.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import CoreParts, MetricCore, MetricSettings
from ellipack.errors import ShapeError
from ellipack.learners.intervals import NO_BOUNDS, Predictions, RowPredictions, check_bounds, empty_predictions
from ellipack.learners.metric.call_sizes import rounds_per_call
from ellipack.learners.metric.eviction import evict_redundant_centers
from ellipack.learners.metric.global_regressions import refits_after
from ellipack.learners.metric.past import past_feature_names, with_rounds
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.row_checks import NO_KEYS, Rows, check_all, checked_past, key_numbers
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import check_n_jobs, thread_count
from ellipack.validation import Floats, Ints, Row

NO_PREDICTIONS: Final = Predictions(np.empty(0), NO_BOUNDS)
"""Predictions that are not wanted."""


def learn(state: MetricState, X: ArrayLike, y: ArrayLike, n_jobs: int | None = 1, keys: Ints = NO_KEYS) -> Floats:
    """Run one round for each row: predict, then learn the label.

    Predictions and state do not depend on how rows are grouped into calls, bit for bit. An interrupt leaves the state
    of a completed round.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    n_jobs : int or None, default 1
        Number of threads that score candidates for the metric, as in scikit-learn.
    keys : array of int64, shape (n,), optional
        Key of each row, if the learner has keys.

    Returns
    -------
    predictions : array of shape (n,)
        Predictions, each made before its label was learned.

    Raises
    ------
    InputError
        If `X` or `y` is not valid, or another thread has added features. The state is unchanged.
    """
    rows = check_all(state.core, X, y, keys)
    predictions = empty_predictions(len(rows.y), with_intervals=False)
    threads = check_n_jobs(n_jobs)
    with state.learn_lock.turn:
        run_rounds(state, rows, predictions, threads)
    return predictions.values


class BothPredictions(NamedTuple):
    """Predictions of the same rows with and without the past, with their intervals.

    Attributes
    ----------
    next : Predictions
        Each row as the next one, as `learn_into` writes them.
    plain : Predictions
        From the features alone, as `predictions.predict_with_intervals` would have returned them before the row was
        learned.
    """

    next: Predictions
    plain: Predictions

    def part(self, rows: slice) -> "BothPredictions":
        """Return views of the predictions of some rows."""
        return BothPredictions(self.next.part(rows), self.plain.part(rows))


def learn_both(
    state: MetricState, X: ArrayLike, y: ArrayLike, n_jobs: int | None = 1, keys: Ints = NO_KEYS
) -> BothPredictions:
    """Do the same as `learn`, and return predictions with their intervals, also those from the features alone."""
    rows = check_all(state.core, X, y, keys)
    both = BothPredictions(*(empty_predictions(len(rows.y), with_intervals=True) for _ in range(2)))
    threads = check_n_jobs(n_jobs)
    with state.learn_lock.turn:
        run_rounds(state, rows, both.next, threads, both.plain)
    return both


def learn_into(
    state: MetricState,
    X: ArrayLike,
    y: ArrayLike,
    predictions: Predictions,
    n_jobs: int | None = 1,
    keys: Ints = NO_KEYS,
    plain: Predictions | None = None,
) -> None:
    """Do the same as `learn`, and write the predictions into arrays.

    After an error or an interrupt, the arrays have the predictions of all rows that were learned. The clock of the
    state tells how many these are.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    predictions : Predictions
        Arrays for the predictions of the next row. Without rows of bounds, intervals are not wanted.
    n_jobs : int or None, default 1
        Number of threads that score candidates for the metric, as in scikit-learn.
    keys : array of int64, shape (n,), optional
        Key of each row, if the learner has keys.
    plain : Predictions, optional
        Arrays for the predictions from the features alone. By default, they are not wanted.
    """
    rows = check_all(state.core, X, y, keys)
    every, threads = slice(0, len(rows.y)), check_n_jobs(n_jobs)
    with state.learn_lock.turn:
        run_rounds(state, rows, predictions.part(every), threads, plain and plain.part(every))


def run_rounds(
    state: MetricState, rows: Rows, predictions: Predictions, n_jobs: int, plain: Predictions | None = None
) -> None:
    """Learn rows by short calls of the core, and write their predictions into arrays.

    The caller keeps other threads from changing the state, by its lock or by that of its estimator. A call of the core
    stops before the last round of a phase, and before a round that fills the memory.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    rows : Rows
        Rows, after checks.
    predictions : Predictions
        Arrays for the predictions of the next row.
    n_jobs : int
        Number of threads that score candidates for the metric.
    plain : Predictions, optional
        Arrays for the predictions from the features alone. By default, they are not wanted.
    """
    (X, y, keys), (values, bounds), (plain_values, plain_bounds) = rows, predictions, plain or (None, None)
    count, done = len(y), 0
    most = 1 if count == 1 else rounds_per_call(state.core)
    check_width(state, X.shape[1])
    while done < count:
        phase, size = state.phase, min(count - done, most)
        # Without * in the call, no object is made for the method, where nanobind crashes if there is no memory.
        learned = phase.core.learn(X, keys, y, values, bounds, plain_values, plain_bounds, done, size, phase.end)
        done += learned
        if learned < size:
            last = slice(done, done + 1)
            _run_boundary_row(state, rows.part(last), predictions.part(last), n_jobs, plain and plain.part(last))
            done += 1


def check_width(state: MetricState, width: int) -> None:
    """Raise unless rows still have all features: another thread may have added some after the rows were checked."""
    if width != state.core.dimension:
        raise ShapeError(f"X must have {state.core.dimension} columns, got {width}")


def _run_boundary_row(
    state: MetricState, row: Rows, predictions: Predictions, n_jobs: int, plain: Predictions | None
) -> None:
    """Run the boundary round of a single row."""
    if plain is not None:
        state.core.predict(row.X, *plain)
    key = int(row.keys[0]) if len(row.keys) else 0
    round_ = Round(row.X[0].tolist(), float(row.y[0]), key)
    _run_boundary_round(state, round_, thread_count(n_jobs), predictions)


class Round(NamedTuple):
    """A row to learn, without checks.

    Attributes
    ----------
    row : sequence of float
        Features.
    label : float
        Label.
    key : int, default 0
        Key, if the learner has keys.
    past : sequence of float, default ()
        Features of the past when the row was predicted, if its label comes late. By default, those of now.
    bounds : sequence of float, default ()
        Intervals that were published for the row, if its label comes late. By default, those of now.
    """

    row: Row
    label: float
    key: int = 0
    past: Sequence[float] = ()
    bounds: Sequence[float] = ()


def learn_one(state: MetricState, round_: Round) -> None:
    """Learn one row and its label, without checks of the row's values."""
    with state.learn_lock.turn:
        check_width(state, len(round_.row))
        _learn_one(state, round_)


def _learn_one(state: MetricState, round_: Round) -> None:
    if state.clock + 1 >= state.phase.end or not state.core.learn_one(*round_):
        _run_boundary_round(state, round_)


def n_past_features(core: MetricCore) -> int:
    """Return the number of features of the past; 0 if the past is not used."""
    return len(past_feature_names(core.past_labels, "key" if core.has_keys else None)) if core.has_past else 0


def learn_late(
    state: MetricState, X: ArrayLike, y: ArrayLike, predictions: RowPredictions, keys: Ints = NO_KEYS
) -> None:
    """Learn rows in their order, with the features of the past and the intervals of their predictions.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    predictions : RowPredictions
        Predictions of the rows. If they have no features of the past, those of now are used.
    keys : array of int64, shape (n,), optional
        Key of each row, if the learner has keys.
    """
    rows = check_all(state.core, X, y, keys)
    count, width = len(rows.y), n_past_features(state.core) if np.size(predictions.past) else 0
    known, bounds = checked_past(predictions.past, count, width), check_bounds(predictions.bounds, count)
    numbers = key_numbers(rows.keys, count)
    with state.learn_lock.turn:
        check_width(state, rows.X.shape[1])
        for round_ in zip(rows.X.tolist(), rows.y.tolist(), numbers, known.tolist(), bounds.tolist(), strict=True):
            _learn_one(state, Round(*round_))


def _run_boundary_round(
    state: MetricState, round_: Round, n_jobs: int = 1, predictions: Predictions = NO_PREDICTIONS
) -> None:
    """Run a round after which centers are evicted or the phase ends, and write its prediction and intervals.

    The round runs on a copy, which then replaces the current phase.
    """
    phase, core, settings = state.phase, state.core, state.core.settings
    clock = core.clock + 1
    is_last = phase.ends_with(clock)
    if is_last and clock < settings.past_max_centers and refits_after(core):
        parts, prediction, bounds = core.round_before_refit(*round_)
    else:
        parts, prediction, bounds = core.round_on_copy(*round_)
        parts = _evict(parts, settings)
    predictions.values[:], predictions.bounds[:] = prediction, bounds
    if is_last:
        state.phase = next_phase(phase, parts, state.config, state.random_state, n_jobs)
    else:
        state.phase = replace(phase, core=MetricCore(settings, parts))


def _evict(parts: CoreParts, settings: MetricSettings) -> CoreParts:
    """Return parts with room for one more center in each learner."""
    plain, past = parts.plain, parts.past
    plain_is_full = len(plain.centers) >= settings.max_centers
    past_is_full = past is not None and len(past.rounds.centers) >= settings.past_max_centers
    if not plain_is_full and not past_is_full:
        return parts
    if past is not None and past_is_full:
        past = with_rounds(past, evict_redundant_centers(past.rounds))
    return CoreParts(evict_redundant_centers(plain) if plain_is_full else plain, past, parts.importance)
