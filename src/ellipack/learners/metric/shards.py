"""One learner on many workers: rows are cut into shards, which are learned at the same time, and merged.

Within a phase the metric is fixed. So the rows of a *step*, a part of a phase, are cut into shards of consecutive rows.
All shards start from the state before the step: `learn_shard` is a pure function of that state and of the rows of the
shard. `merge` adds up what all shards learned, in the order of the rows, and ends the phase if it is over. Then the
next step begins. The result depends on how rows are cut (`ellipack.learners.metric.sharding`), not on who learns a
shard, or when: shards may be learned in any process, in any order, and again after a failure.

A shard knows the rows before it, which are data: the last of them are among its centers, and their labels are its past
(`ellipack.learners.metric.shard_start`). Its rounds have the numbers that they would have on one machine. It does not
know what other shards of its step learned otherwise: statistics, regressions, weights of experts and widths of
intervals.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ellipack._core import MetricCore, PastFeatures
from ellipack.learners.intervals import Predictions, empty_predictions
from ellipack.learners.metric.merging.importance import discount_of
from ellipack.learners.metric.merging.learned import Learned, apply_learned, find_learned, merge_learned
from ellipack.learners.metric.merging.past import advance_past as _advance_past
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.row_checks import Rows, check_all
from ellipack.learners.metric.shard_rounds import run_rounds
from ellipack.learners.metric.shard_start import start_shard, start_step
from ellipack.learners.metric.state import MetricState
from ellipack.linear_algebra import single_threaded_blas
from ellipack.parallel import thread_count
from ellipack.validation import Floats, Ints


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


def advance_past(state: MetricState, past: PastFeatures | None, keys: Ints, labels: Floats) -> PastFeatures | None:
    """Return the past after rows of a step, whose labels are known.

    Parameters
    ----------
    state : MetricState
        State before the step.
    past : PastFeatures or None
        The past before the rows; None if they are the first of the step.
    keys : array of int64, shape (n,)
        Key of each row; empty if the learner has no keys.
    labels : array of shape (n,)
        Labels.

    Returns
    -------
    advanced : PastFeatures or None
        None if the learner does not see the past.
    """
    if not state.core.has_past:
        return None
    before = state.core.past_features() if past is None else past
    return _advance_past(before, state.core.parts().plain.label_statistics, keys, labels)


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
    rows = check_all(core, *shard.rows)
    if shard.first == 0:
        start, own = start_step(core, len(rows.y))
    else:
        recent = check_all(core, *shard.recent)
        start, own = start_shard(core, (shard.first, len(rows.y)), recent, shard.past)
    predictions = empty_predictions(len(rows.y), with_intervals)
    after = run_rounds(own, rows, predictions)
    discount = discount_of(start.clock, after.plain.clock)
    return LearnedShard(find_learned(start, after, discount), predictions)


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
        Number of threads that merge and that score candidates for the metric, as in scikit-learn.

    Returns
    -------
    merged : MetricState

    Raises
    ------
    RuntimeError
        If the rows go beyond the end of the phase.
    """
    phase, base, settings = state.phase, state.core.parts(), state.core.settings
    with single_threaded_blas():
        whole = merge_learned(base, learned)
        parts = apply_learned(base, whole, settings, thread_count(n_jobs))
    if phase.ends_with(parts.plain.clock):
        after = next_phase(phase, parts, state.config, state.random_state, thread_count(n_jobs))
    else:
        after = replace(phase, core=MetricCore(settings, parts))
    return MetricState(after, state.config, state.random_state)
