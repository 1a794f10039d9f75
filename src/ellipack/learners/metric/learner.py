"""The practical learner's verbs: predict and learn.

**Outlying labels.** One label of absurd size (a failing sensor, a slipped decimal point) must not spoil what was
learned. Let [a, b] be the range of the labels learned so far, five or more that are not all equal, and c the number of
outliers of the phase, plus half of what c was at the end of the phase before. A label is an outlier if it lies more
than ``3 * 10**c * (b - a)`` outside [a, b]. Nothing is learned from an outlier but that there was one. So a single one
changes nothing at all, and a new level is believed after a few rounds, one for each power of ten that it is away.

**The guarantee** of `ellipack.learners.aggregation` is about the rounds whose label was no outlier. For these it holds
on every stream, phase by phase. A phase has at most ``1 + log10(R / (3 (b - a)))`` outliers, where R is how far its
labels reach beyond [a, b], the range at its start.

**Outlying features**, by the same rule for each, are clipped to one width of the range beyond it, in learning and in
predicting alike; the row is learned.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import MetricCore
from ellipack.errors import DomainError
from ellipack.learners.metric.eviction import evict_redundant_centers
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.state import MetricState
from ellipack.parallel import thread_count
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats, Row, check_labels, check_rows

_ROUNDS_PER_CALL = 64  # between which threads that predict have their turn


def predict(state: MetricState, X: ArrayLike, n_jobs: int = 1) -> Floats:
    """Return the prediction for each row, 0 before the first round; change nothing."""
    core = state.core
    table = _checked_rows(core, X)
    predictions = np.empty(len(table))
    core.predict(table, predictions, thread_count(n_jobs))
    return predictions


def learn(state: MetricState, X: ArrayLike, y: ArrayLike, n_jobs: int = 1) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits. An interrupt leaves the state after a
    whole round.
    """
    table = _checked_rows(state.core, X)
    targets = _checked_labels(state.core, y, len(table))
    predictions = np.empty(len(table))
    done = 0
    with state.learn_lock:
        while done < len(table):
            before_last = state.phase.end - state.clock - 1
            part = slice(done, done + min(len(table) - done, _ROUNDS_PER_CALL, before_last))
            done += state.core.learn(table[part], targets[part], predictions[part])
            if done < part.stop or before_last == 0:
                predictions[done] = _run_boundary_round(state, table[done].tolist(), float(targets[done]), n_jobs)
                done += 1
    return predictions


def learn_one(state: MetricState, row: Row, label: float) -> None:
    """Play a round with a row that has been checked."""
    with state.learn_lock:
        if state.clock + 1 == state.phase.end or not state.core.learn_one(row, label):
            _run_boundary_round(state, row, label)


def _run_boundary_round(state: MetricState, row: Row, label: float, n_jobs: int = 1) -> float:
    """Play a round after which centers are evicted or the phase ends; return the prediction.

    All of it happens on a copy, which then takes the place of the present phase.
    """
    phase, settings = state.phase, state.core.settings
    parts, prediction = state.core.simulate_round(row, label)
    if len(parts.centers) >= settings.max_centers:
        parts = evict_redundant_centers(parts)
    if parts.clock == phase.end:
        state.phase = next_phase(phase, parts, state.config, state.random_state, n_jobs)
    else:
        state.phase = replace(phase, core=MetricCore(settings, parts))
    return prediction


def _checked_rows(core: MetricCore, X: ArrayLike) -> Floats:
    """Return rows that can be learned, or raise. Arrays that the core takes as they are need no further look."""
    if type(X) is np.ndarray and X.dtype == np.float64 and core.accepts_rows(X):
        return X
    table = check_rows(X, core.dimension)
    largest = np.abs(table).max()
    if largest > MAX_ABS_VALUE:
        raise DomainError(f"X must be at most {MAX_ABS_VALUE:g} in size, got {largest:g}")
    return table


def _checked_labels(core: MetricCore, y: ArrayLike, count: int) -> Floats:
    """Return labels that can be learned, or raise."""
    if type(y) is np.ndarray and y.dtype == np.float64 and core.accepts_labels(y, count):
        return y
    targets = check_labels(y, count)
    largest = np.abs(targets).max()
    if largest > MAX_ABS_LABEL:
        raise DomainError(f"y must be at most {MAX_ABS_LABEL:g} in size, got {largest:g}")
    return targets
