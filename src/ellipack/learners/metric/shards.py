"""One learner on many workers: rows are cut into shards, which are learned at the same time, and merged.

Within a phase the metric is fixed. So the rows of a *step*, a part of a phase, are cut into shards of consecutive rows.
All shards start from the state before the step: `learn_shard` is a pure function of that state and of the rows of the
shard. `merge` adds up what all shards learned, in the order of the rows, and ends the phase if it is over. Then the
next step begins. The result depends on how rows are cut (`ellipack.learners.metric.sharding`), not on who learns a
shard, or when: shards may be learned in any process, in any order, and again after a failure.

A shard knows the rows before it, which are data: the last of them are among its centers, as if they had been learned,
and their labels are its past (`advance_past`). Its rounds have the numbers that they would have on one machine. It does
not know what other shards of its step learned otherwise: statistics, regressions, weights of experts and widths of
intervals.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import (
    CoreParts,
    ImportanceParts,
    MetricCore,
    MetricParts,
    MetricSettings,
    PackingExpert,
    PastFeatures,
    PastParts,
)
from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.metric.call_sizes import rounds_per_call
from ellipack.learners.metric.eviction import keep_centers, select_kept
from ellipack.learners.metric.learner import NO_KEYS, checked_keys, checked_labels, checked_rows, predict
from ellipack.learners.metric.merging.centers import CenterTable, concatenate
from ellipack.learners.metric.merging.importance import fading_of
from ellipack.learners.metric.merging.learned import Learned, Origins, apply_learned, find_learned, merge_learned
from ellipack.learners.metric.merging.past import advance_past as _advance_past
from ellipack.learners.metric.merging.statistics import are_outliers, clip_outliers
from ellipack.learners.metric.past import with_rounds
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.state import MetricState, project_rows, replace_parts
from ellipack.linear_algebra import single_threaded_blas
from ellipack.parallel import thread_count
from ellipack.validation import Floats, Ints

MAX_RECENT_ROWS: Final = 8192
"""Largest number of rows before a shard that it gets as centers."""


class Rows(NamedTuple):
    """Rows, their labels and keys.

    Attributes
    ----------
    X : array of shape (n, d)
        Rows.
    y : array of shape (n,)
        Labels.
    keys : array of int64, shape (n,)
        Key of each row; empty if the learner has no keys.
    """

    X: Floats
    y: Floats
    keys: Ints = NO_KEYS

    def part(self, rows: slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.X[rows], self.y[rows], self.keys[rows])


class Shard(NamedTuple):
    """Consecutive rows of a step.

    Attributes
    ----------
    first : int
        Number of rows of the step before the shard.
    rows : Rows
        Rows.
    recent : Rows
        The last rows of the step before the shard, at most `MAX_RECENT_ROWS`.
    past : PastFeatures or None
        The past before the shard, see `advance_past`; None if the learner does not see it, or for the first shard.
    """

    first: int
    rows: Rows
    recent: Rows
    past: PastFeatures | None = None


class LearnedShard(NamedTuple):
    """What was learned from a shard, and the predictions of its rows, each made before its label was learned."""

    learned: Learned
    predictions: Predictions


def advance_past(state: MetricState, past: PastFeatures | None, rows: Rows) -> PastFeatures | None:
    """Return the past after rows of a step, from which the next shard starts.

    Labels are data. The error of the last row is that of its prediction from the state before the step.

    Parameters
    ----------
    state : MetricState
        State before the step.
    past : PastFeatures or None
        The past before the rows; None if they are the first of the step.
    rows : Rows
        Rows, at least one.

    Returns
    -------
    advanced : PastFeatures or None
        None if the learner does not see the past.
    """
    if not state.core.has_past:
        return None
    before = state.core.past_features() if past is None else past
    last = float(predict(state, rows.X[-1:])[0])
    return _advance_past(before, state.core.parts().plain.label_statistics, rows.keys, rows.y, last)


def check_all(state: MetricState, X: ArrayLike, y: ArrayLike, keys: Ints) -> Rows:
    """Return rows, labels and keys that a learner accepts, or raise `InputError`."""
    table = np.ascontiguousarray(checked_rows(state.core, X))
    return Rows(table, checked_labels(state.core, y, len(table)), checked_keys(state.core, keys, len(table)))


def learn_shard(state: MetricState, shard: Shard, *, with_intervals: bool = False) -> LearnedShard:
    """Predict and learn the rows of a shard, without a change of the state.

    The phase does not end: steps do not go beyond it.

    Parameters
    ----------
    state : MetricState
        State before the step. Many shards may use the same state at the same time.
    shard : Shard
        Rows.
    with_intervals : bool, default False
        Whether the intervals of the predictions are returned.

    Returns
    -------
    learned : LearnedShard

    Raises
    ------
    InputError
        If a row or a label is not valid.
    """
    core = state.core
    rows = check_all(state, *shard.rows)
    start = core.parts()
    own = len(start.plain.centers)
    if shard.first > 0:
        start = _with_recent_rows(_moved(start, shard.first, shard.past), check_all(state, *shard.recent))
    borrowed = len(start.plain.centers) - own
    settings = MetricSettings(core.settings.neighbors, core.settings.max_centers + borrowed, core.settings.label_margin)
    predictions = empty_predictions(len(rows.y), with_intervals)
    after, origins = _run_rounds(MetricCore(settings, start), rows, predictions)
    fading = fading_of(start.plain.clock, after.plain.clock)
    return LearnedShard(find_learned(start, after, origins, borrowed, fading), predictions)


def _with_recent_rows(parts: CoreParts, recent: Rows) -> CoreParts:
    """Return the parts of a core with more centers: rows that other shards learn.

    Only the learner that sees the features alone gets them, because features of the past need predictions. Errors of
    their predictions are not known: they count as mean errors.
    """
    plain = parts.plain
    labels = plain.label_statistics
    known = ~are_outliers(recent.y, labels)
    rows = clip_outliers(recent.X[known], plain.feature_statistics)
    ones = np.ones(len(rows))
    rounds = plain.clock + 1.0 - np.arange(len(recent.y), 0, -1)[known]
    coordinates = tuple(project_rows(view, rows) for view in plain.views)
    borrowed = CenterTable(rows, recent.y[known], ones.astype(np.int64), rounds, ones, coordinates)
    centers = concatenate([CenterTable.of(plain), borrowed])
    wider = replace_parts(plain, centers=centers.memory(), coordinates=list(centers.coordinates))
    return CoreParts(wider, parts.past, parts.importance)


def _moved(parts: CoreParts, rows: int, past_features: PastFeatures | None) -> CoreParts:
    """Return the parts of a core as many rounds later, with the past that was known then."""
    past, importance = parts.past, parts.importance
    if past is not None:
        features = past.features if past_features is None else past_features
        past = PastParts(
            _later(past.rounds, rows),
            features,
            past.combination,
            past.active_from,
            past.active_errors,
            past.total_errors,
        )
    if importance is not None and importance.seen >= ImportanceParts.max_rows:
        importance = ImportanceParts(
            importance.seed,
            importance.groups,
            importance.seen + rows,
            importance.sample,
            importance.errors,
            importance.last_row,
            importance.moves,
        )
    return CoreParts(_later(parts.plain, rows), past, importance)


def _later(parts: MetricParts, rows: int) -> MetricParts:
    """Return the parts of a learner with later numbers of rounds."""
    packing = parts.packing
    later = PackingExpert(
        packing.coordinates,
        packing.label_sums,
        packing.label_counts,
        packing.creation_rounds,
        packing.rank_starts,
        packing.clock + rows,
        packing.coordinate_scale,
        packing.max_centers,
    )
    return replace_parts(parts, packing=later, clock=parts.clock + rows)


def _run_rounds(core: MetricCore, rows: Rows, predictions: Predictions) -> tuple[CoreParts, Origins]:
    """Learn rows, and return the parts of the core afterwards and where its centers come from."""
    settings, most, done = core.settings, rounds_per_call(core), 0
    X, y, keys = rows
    parts = core.parts()
    origins = Origins(
        np.arange(len(parts.plain.centers)), np.arange(0 if parts.past is None else len(parts.past.rounds.centers))
    )
    while done < len(X):
        part = slice(done, min(len(X), done + most))
        done += core.learn(X[part], keys[part], y[part], *predictions.part(part))
        if done < part.stop:  # the next round fills the memory
            key = int(keys[done]) if len(keys) else 0
            parts, predictions.values[done], bounds = core.round_on_copy(X[done].tolist(), float(y[done]), key)
            predictions.bounds[done : done + 1] = bounds
            parts, origins = _evict(parts, origins, settings.max_centers)
            core = MetricCore(settings, parts)
            done += 1
    return core.parts(), origins


def _evict(parts: CoreParts, origins: Origins, max_centers: int) -> tuple[CoreParts, Origins]:
    """Return parts with fewer than `max_centers` centers in each learner, and where these come from."""
    plain, past = parts.plain, parts.past
    if past is not None and len(past.rounds.centers) >= max_centers:
        kept = select_kept(past.rounds)
        past = with_rounds(past, keep_centers(past.rounds, kept))
        origins = origins._replace(past=_kept_origins(origins.past, kept))
    if len(plain.centers) >= max_centers:
        kept = select_kept(plain)
        plain = keep_centers(plain, kept)
        origins = origins._replace(plain=_kept_origins(origins.plain, kept))
    return CoreParts(plain, past, parts.importance), origins


def _kept_origins(origins: Ints, kept: NDArray[np.bool_]) -> Ints:
    new = np.full(len(kept) - len(origins), -1)
    return np.append(origins, new)[kept]


def merge(state: MetricState, learned: Sequence[Learned], n_jobs: int | None = 1) -> MetricState:
    """Return the state after a step: what all shards learned, in the order of the rows.

    If the phase is over, the next one begins, with a new metric.

    Parameters
    ----------
    state : MetricState
        State before the step. It is not changed.
    learned : sequence of Learned
        What each shard learned, in the order of the rows.
    n_jobs : int or None, default 1
        Number of threads that score candidates for the metric, as in scikit-learn.

    Returns
    -------
    merged : MetricState
    """
    phase, base, settings = state.phase, state.core.parts(), state.core.settings
    with single_threaded_blas():
        whole = merge_learned(base, learned)
        parts = apply_learned(base, whole, settings.max_centers)
    if parts.plain.clock == phase.end:
        after = next_phase(phase, parts, state.config, state.random_state, thread_count(n_jobs))
    else:
        after = replace(phase, core=MetricCore(settings, parts))
    return MetricState(after, state.config, state.random_state)
