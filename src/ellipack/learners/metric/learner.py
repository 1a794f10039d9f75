"""Prediction and learning of `MetricRegressor`.

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
from threading import Lock
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import CoreParts, MetricCore, PastFeatures
from ellipack.errors import DomainError, InputError, ShapeError
from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.metric.eviction import evict_redundant_centers
from ellipack.learners.metric.past import MAX_PAST_VALUE, past_feature_names, with_rounds
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import thread_count
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats, Ints, Row, as_floats, check_labels, check_rows

_MAX_ROUNDS_PER_CALL = 64  # of the core; between calls, other threads can predict and signals are handled
_MAX_WORK_PER_CALL = 1.6e7  # the same in rounds times squared number of features; about 0.1 s


NO_KEYS: Final[Ints] = np.zeros(0, dtype=np.int64)
"""Keys of rows for a learner without keys."""


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
    table = _checked_rows(core, X)
    predictions = empty_predictions(len(table), with_intervals)
    core.predict(table, *predictions, thread_count(n_jobs))
    return predictions


class NextRowPredictor:
    """Predicts the rows that follow, one after the other and in any number of calls, without a change of the state.

    Parameters
    ----------
    state : MetricState
        The state. It must not learn more rounds while this predictor is used.
    """

    def __init__(self, state: MetricState) -> None:
        self._core = state.core
        self._clock = state.clock
        self._past: PastFeatures | None = None
        self._follows_unknown = False
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes, _lock=Lock())

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
        table = _checked_rows(core, X)
        known = np.full(len(table), np.nan) if labels is None else _checked_known_labels(labels, len(table))
        predictions = empty_predictions(len(table), with_intervals)
        row_keys = _checked_keys(core, keys, len(table))
        if not core.has_past:
            core.predict(table, *predictions)
            return predictions
        with self._lock:
            past = core.past_features() if self._past is None else self._past
            if core.clock != self._clock:
                raise InputError("the learner has learned more rows: create a new predictor of the rows that follow")
            core.predict_next(table, row_keys, known, past, *predictions, self._follows_unknown)
            self._past, self._follows_unknown = past, bool(np.isnan(known[-1]))
        return predictions


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
    table = _checked_rows(core, X)
    known = np.full(len(table), np.nan) if labels is None else _checked_known_labels(labels, len(table))
    predictions = empty_predictions(len(table), with_intervals)
    if core.has_past:
        core.predict_next(table, _checked_keys(core, keys, len(table)), known, None, *predictions, False)
    else:
        core.predict(table, *predictions)
    return predictions


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
        If `X` or `y` is not valid. The state is unchanged.
    """
    return _learn(state, X, y, n_jobs, keys, with_intervals=False).values


def learn_with_intervals(
    state: MetricState, X: ArrayLike, y: ArrayLike, n_jobs: int | None = 1, keys: Ints = NO_KEYS
) -> Predictions:
    """Do the same as `learn`, and return the intervals of the predictions, too."""
    return _learn(state, X, y, n_jobs, keys, with_intervals=True)


def _learn(
    state: MetricState, X: ArrayLike, y: ArrayLike, n_jobs: int | None, keys: Ints, *, with_intervals: bool
) -> Predictions:
    table = _checked_rows(state.core, X)
    targets = _checked_labels(state.core, y, len(table))
    threads = thread_count(n_jobs)
    row_keys = _checked_keys(state.core, keys, len(table))
    predictions = empty_predictions(len(table), with_intervals)
    most = _rounds_per_call(table.shape[1])
    done = 0
    with state.learn_lock.turn:
        while done < len(table):
            rounds_before_last = state.phase.end - state.clock - 1
            part = slice(done, done + min(len(table) - done, most, rounds_before_last))
            output = (each[part] for each in predictions)
            done += state.core.learn(table[part], row_keys[part], targets[part], *output)
            if done < part.stop or rounds_before_last == 0:
                key = int(row_keys[done]) if len(row_keys) else 0
                round_ = Round(table[done].tolist(), float(targets[done]), key)
                predictions.values[done], bounds = _run_boundary_round(state, round_, threads)
                predictions.bounds[done : done + 1] = bounds
                done += 1
    return predictions


def _rounds_per_call(d: int) -> int:
    """Return the largest number of rounds in a call of the core, which does not handle signals."""
    return max(1, min(_MAX_ROUNDS_PER_CALL, int(_MAX_WORK_PER_CALL / d**2)))


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
    """Learn one row and its label, without checks of the row."""
    with state.learn_lock.turn:
        if state.clock + 1 == state.phase.end or not state.core.learn_one(*round_):
            _run_boundary_round(state, round_)


def _n_past_features(core: MetricCore) -> int:
    """Return the number of features of the past; 0 if the past is not used."""
    return len(past_feature_names(core.past_labels, "key" if core.has_keys else None)) if core.has_past else 0


def learn_late(state: MetricState, X: ArrayLike, y: ArrayLike, past: ArrayLike, keys: Sequence[int]) -> None:
    """Learn rows in their order, with the features of the past that were known when each was predicted.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows.
    y : array-like of shape (n,)
        Labels.
    past : array-like of shape (n, n_past_features)
        Features of the past. If there are none, those of now are used.
    keys : sequence of int
        Key of each row.
    """
    rows = _checked_rows(state.core, X)
    labels = _checked_labels(state.core, y, len(rows))
    known = as_floats(past, "past")
    n_known = _n_past_features(state.core)
    if known.shape not in ((len(rows), n_known), (len(rows), 0)) or not (np.abs(known) <= MAX_PAST_VALUE).all():
        raise ShapeError(f"past must be {n_known} features of each of {len(rows)} rows, got shape {known.shape}")
    for row, label, key, features in zip(rows.tolist(), labels.tolist(), keys, known.tolist(), strict=True):
        learn_one(state, Round(row, label, key, features))


def _run_boundary_round(state: MetricState, round_: Round, n_jobs: int = 1) -> tuple[float, list[float]]:
    """Run a round after which centers are evicted or the phase ends, and return its prediction and intervals.

    The round runs on a copy, which then replaces the current phase.
    """
    phase, settings = state.phase, state.core.settings
    parts, prediction, bounds = state.core.round_on_copy(*round_)
    parts = _evict(parts, settings.max_centers)
    if parts.plain.clock == phase.end:
        state.phase = next_phase(phase, parts, state.config, state.random_state, n_jobs)
    else:
        state.phase = replace(phase, core=MetricCore(settings, parts))
    return prediction, bounds


def _evict(parts: CoreParts, max_centers: int) -> CoreParts:
    """Return parts with fewer than `max_centers` centers in each learner."""
    past = parts.past
    if past is not None and len(past.rounds.centers) >= max_centers:
        past = with_rounds(past, evict_redundant_centers(past.rounds))
    plain = parts.plain
    if len(plain.centers) >= max_centers:
        plain = evict_redundant_centers(plain)
    return CoreParts(plain, past, parts.importance)


def _checked_rows(core: MetricCore, X: ArrayLike) -> Floats:
    """Return rows as an array, or raise. Arrays that the core accepts are not checked again."""
    if type(X) is np.ndarray and X.dtype == np.float64 and core.accepts_rows(X):
        return X
    table = check_rows(X, core.dimension)
    largest = np.abs(table).max()
    if largest > MAX_ABS_VALUE:
        raise DomainError(f"X must be at most {MAX_ABS_VALUE:g} in size, got {largest:g}")
    return table


def _checked_labels(core: MetricCore, y: ArrayLike, count: int) -> Floats:
    """Return labels as an array, or raise. Arrays that the core accepts are not checked again."""
    if type(y) is np.ndarray and y.dtype == np.float64 and core.accepts_labels(y, count):
        return y
    targets = check_labels(y, count)
    largest = np.abs(targets).max()
    if largest > MAX_ABS_LABEL:
        raise DomainError(f"y must be at most {MAX_ABS_LABEL:g} in size, got {largest:g}")
    return targets


def _checked_known_labels(labels: ArrayLike, count: int) -> Floats:
    """Return labels of which some may be NaN, or raise."""
    unknown = [np.nan if each is None else each for each in labels] if isinstance(labels, list | tuple) else labels
    known = as_floats(unknown, "labels")
    if known.shape != (count,):
        raise ShapeError(f"labels must have one entry per row, {count}, got shape {known.shape}")
    largest = np.nanmax(np.abs(known), initial=0.0)
    if largest > MAX_ABS_LABEL:
        raise DomainError(f"labels must be at most {MAX_ABS_LABEL:g} in size, or NaN, got {largest:g}")
    return known


def _checked_keys(core: MetricCore, keys: Ints, count: int) -> Ints:
    """Return the key of each row, or raise. A learner without keys ignores them."""
    if not core.has_keys:
        return NO_KEYS
    if keys.shape != (count,):
        raise ShapeError(f"keys must have one entry per row, {count}, got shape {keys.shape}")
    return keys
