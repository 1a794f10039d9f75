"""What a learner learned from rows, relative to the state from which it started."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import NamedTuple

import numpy as np

from ellipack._core import (
    ConformalIntervals,
    CoreParts,
    FeatureView,
    GlobalRegressions,
    ImportanceParts,
    MetricParts,
    MetricSettings,
    PackingExpert,
    PastFeatures,
    PastParts,
    StackedAggregation,
)
from ellipack.learners.metric.merging.centers import (
    CenterChanges,
    apply_learned_centers,
    find_learned_centers,
    merge_centers,
    merge_equal_centers,
)
from ellipack.learners.metric.merging.experts import (
    StateChange,
    merge_intervals,
    merge_least_squares,
    merge_packing,
    merge_stacked_aggregation,
    separate_packing,
)
from ellipack.learners.metric.merging.importance import merge_importance
from ellipack.learners.metric.merging.past import Errors, merge_errors, merge_past_features
from ellipack.learners.metric.merging.statistics import Statistics, merge_statistics
from ellipack.learners.metric.state import COUNT
from ellipack.learners.metric.subspace import has_slopes
from ellipack.validation import Floats

_FORGETTING_DIVISOR, _ROUNDS_PER_COEFFICIENT, _ROUNDS_PER_DISCOUNT = 8.0, 4.0, 4  # as in cpp/metric_rounds.cpp


class LearnedRounds(NamedTuple):
    """What one of the two learners learned: its parts after the rows, and how its centers changed.

    Attributes
    ----------
    gops : tuple of array
        Gradient outer product of each view, or the slopes.
    centers : CenterChanges
    packing : PackingExpert
    regressions : GlobalRegressions
    discount : float
        Factor by which the rows discounted the regression with forgetting.
    aggregation : StateChange of StackedAggregation
        Before and after the rows.
    statistics : Statistics
    intervals : ConformalIntervals
    """

    gops: tuple[Floats, ...]
    centers: CenterChanges
    packing: PackingExpert
    regressions: GlobalRegressions
    discount: float
    aggregation: StateChange[StackedAggregation]
    statistics: Statistics
    intervals: ConformalIntervals


class LearnedPast(NamedTuple):
    """What the learner that sees the past learned."""

    rounds: LearnedRounds
    features: PastFeatures
    combination: StateChange[StackedAggregation]
    active_errors: Errors
    total_errors: Errors


class Learned(NamedTuple):
    """What was learned from consecutive rows.

    Attributes
    ----------
    rows : int
        Number of rows.
    shards : int
        Number of shards into which they were cut.
    plain : LearnedRounds
        Of the learner that sees the features alone.
    past : LearnedPast or None
        Of the learner that sees the past.
    importance : ImportanceParts or None
        What was measured about the importance of columns.
    discount : float
        Factor by which the rows discounted the weights of earlier measurements.
    """

    rows: int
    shards: int
    plain: LearnedRounds
    past: LearnedPast | None
    importance: ImportanceParts | None
    discount: float


class RoundsStart(NamedTuple):
    """Where the rounds of one of the two learners start.

    Attributes
    ----------
    base : MetricParts
        Its parts before the step.
    centers : CenterChanges
        How its centers differ from those of the base.
    aggregation : StackedAggregation
    """

    base: MetricParts
    centers: CenterChanges
    aggregation: StackedAggregation

    @classmethod
    def of(cls, base: MetricParts, start: MetricParts) -> "RoundsStart":
        """Return where the rounds of a learner start whose centers begin with those of the base."""
        return cls(base, CenterChanges.between(base, start), copy(start.aggregation))


class Start(NamedTuple):
    """Where the rounds of a shard start. It refers to no parts of the core, so that the core can change in place.

    Attributes
    ----------
    clock : int
        Number of rounds before.
    plain : RoundsStart
        Of the learner that sees the features alone.
    past : RoundsStart or None
        Of the learner that sees the past.
    combination : StackedAggregation or None
        Of both learners.
    """

    clock: int
    plain: RoundsStart
    past: RoundsStart | None
    combination: StackedAggregation | None

    @classmethod
    def of(cls, base: CoreParts, start: CoreParts) -> "Start":
        """Return the start of a core, whose centers begin with those of the base."""
        plain = RoundsStart.of(base.plain, start.plain)
        if base.past is None or start.past is None:
            return cls(start.plain.clock, plain, None, None)
        past = RoundsStart.of(base.past.rounds, start.past.rounds)
        return cls(start.plain.clock, plain, past, copy(start.past.combination))


def find_learned(start: Start, after: CoreParts, discount: float) -> Learned:
    """Return what was learned between the start of a shard and its end.

    Parameters
    ----------
    start : Start
        Start of the rounds.
    after : CoreParts
        Parts of the core after the rows.
    discount : float
        Factor by which the rows discounted the weights of earlier measurements.

    Returns
    -------
    learned : Learned
    """
    plain = _find_rounds(start.plain, after.plain, start.clock)
    past = None
    if start.past is not None and start.combination is not None and after.past is not None:
        first_active = max(start.clock, after.past.active_from)
        past = LearnedPast(
            _find_rounds(start.past, after.past.rounds, first_active),
            after.past.features,
            StateChange(start.combination, after.past.combination),
            after.past.active_errors,
            after.past.total_errors,
        )
    return Learned(after.plain.clock - start.clock, 1, plain, past, after.importance, discount)


def _find_rounds(start: RoundsStart, after: MetricParts, first_active: int) -> LearnedRounds:
    base = start.base
    active = min(max(0, after.clock - first_active), int(after.label_statistics[COUNT] - base.label_statistics[COUNT]))
    return LearnedRounds(
        tuple(view.gop for view in after.views),
        find_learned_centers(base, start.centers, after),
        after.packing,
        after.regressions,
        _discount(int(after.label_statistics[COUNT]), active, base.views[0].fit_dimension),
        StateChange(start.aggregation, after.aggregation),
        Statistics(after.label_statistics, after.feature_statistics),
        after.intervals,
    )


def _discount(labels: int, rounds: int, fit_dimension: int) -> float:
    """Return the factor by which the last rounds discounted the regression with forgetting."""
    counts = np.arange(labels - rounds, labels)
    counts = counts[counts % _ROUNDS_PER_DISCOUNT == 0]
    spans = np.maximum(counts / _FORGETTING_DIVISOR, _ROUNDS_PER_COEFFICIENT * (fit_dimension + 1))
    return float(np.prod(1 - _ROUNDS_PER_DISCOUNT / spans))


def merge_learned(base: CoreParts, learned: Sequence[Learned]) -> Learned:
    """Return what was learned from all rows.

    Parameters
    ----------
    base : CoreParts
        Parts of the core from which all started.
    learned : sequence of Learned
        What was learned from consecutive runs of rows, in their order.

    Returns
    -------
    merged : Learned
    """
    if len(learned) == 1:
        return learned[0]
    shards = [each.shards for each in learned]
    importance, discount = None, learned[0].discount
    for each in learned[1:]:
        discount *= each.discount
    measured = [each.importance for each in learned if each.importance is not None]
    if base.importance is not None:
        importance = merge_importance(base.importance, measured, [each.discount for each in learned])
    pasts = [each.past for each in learned if each.past is not None]
    return Learned(
        sum(each.rows for each in learned),
        sum(shards),
        _merge_rounds(base.plain, [each.plain for each in learned], shards),
        None if base.past is None else _merge_pasts(base.past, pasts, shards),
        importance,
        discount,
    )


def _merge_pasts(base: PastParts, learned: list[LearnedPast], shards: list[int]) -> LearnedPast:
    return LearnedPast(
        _merge_rounds(base.rounds, [each.rounds for each in learned], shards),
        merge_past_features([each.features for each in learned]),
        StateChange(
            base.combination, merge_stacked_aggregation(base.combination, [each.combination for each in learned])
        ),
        merge_errors(base.active_errors, [each.active_errors for each in learned]),
        merge_errors(base.total_errors, [each.total_errors for each in learned]),
    )


def _merge_rounds(base: MetricParts, learned: list[LearnedRounds], shards: list[int]) -> LearnedRounds:
    ridge, forgetting = base.regressions.ridge, base.regressions.forgetting
    discounts = [each.discount for each in learned]
    statistics = Statistics(base.label_statistics, base.feature_statistics)
    return LearnedRounds(
        tuple(_merge_gops(view.gop, [each.gops[v] for each in learned]) for v, view in enumerate(base.views)),
        merge_centers(base, [each.centers for each in learned]),
        merge_packing(base.packing, [each.packing for each in learned]),
        GlobalRegressions(
            merge_least_squares(ridge, [StateChange(ridge, each.regressions.ridge) for each in learned]),
            merge_least_squares(
                forgetting, [StateChange(forgetting, each.regressions.forgetting) for each in learned], discounts
            ),
        ),
        float(np.prod(discounts)),
        StateChange(
            base.aggregation, merge_stacked_aggregation(base.aggregation, [each.aggregation for each in learned])
        ),
        merge_statistics(statistics, [each.statistics for each in learned]),
        merge_intervals(base.intervals, [each.intervals for each in learned], shards),
    )


def _merge_gops(base: Floats, learned: list[Floats]) -> Floats:
    """Return the sum of outer products of all rows, or their slopes if views keep them."""
    sums = [each for each in learned if len(each)]
    if not sums:
        return base
    total = sums[0]
    if has_slopes(total):
        return np.vstack([total, *(each[len(base) :] for each in sums[1:])])
    for each in sums[1:]:
        total = total + (each - base if len(base) else each)
    return total


def apply_learned(base: CoreParts, learned: Learned, settings: MetricSettings, n_jobs: int = 1) -> CoreParts:
    """Return the parts of a core after what was learned from a base.

    Parameters
    ----------
    base : CoreParts
        Parts of the core from which all started.
    learned : Learned
        What was learned.
    settings : MetricSettings
        Settings of the core, which say at how many centers some are evicted.
    n_jobs : int, default 1
        Number of threads. Two are used if there are two learners.

    Returns
    -------
    after : CoreParts
    """
    clock, shards, own = base.plain.clock + learned.rows, learned.shards, learned.past
    if base.past is None or own is None:
        plain = _apply_rounds(base.plain, learned.plain, clock, shards, settings.max_centers)
        return CoreParts(plain, None, learned.importance)
    with ThreadPoolExecutor(min(n_jobs, 2)) as threads:
        tasks = [
            threads.submit(_apply_rounds, before, found, clock, shards, most)
            for before, found, most in (
                (base.plain, learned.plain, settings.max_centers),
                (base.past.rounds, own.rounds, settings.past_max_centers),
            )
        ]
        plain, rounds = (task.result() for task in tasks)
    errors = own.active_errors, own.total_errors
    past = PastParts(rounds, own.features, own.combination.after, base.past.active_from, *errors)
    return CoreParts(plain, past, learned.importance)


def _apply_rounds(base: MetricParts, learned: LearnedRounds, clock: int, shards: int, max_centers: int) -> MetricParts:
    found, packing = learned.centers, learned.packing
    if shards > 1:  # several shards may have added the same center
        found = found._replace(new=merge_equal_centers(found.new))
        packing = separate_packing(packing, len(base.packing.label_sums))
    centers, index = apply_learned_centers(base, found, max_centers)
    return MetricParts(
        views=[_with_gop(view, gop) for view, gop in zip(base.views, learned.gops, strict=True)],
        centers=centers,
        packing=packing,
        regressions=learned.regressions,
        aggregation=learned.aggregation.after,
        label_statistics=learned.statistics.labels,
        feature_statistics=learned.statistics.features,
        intervals=learned.intervals,
        index=index,
        clock=clock,
    )


def _with_gop(view: FeatureView, gop: Floats) -> FeatureView:
    return FeatureView(view.knots, view.shift, view.scale, view.directions, gop, view.fit_dimension, view.max_slopes)
