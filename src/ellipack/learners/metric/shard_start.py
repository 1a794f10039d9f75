"""State from which a shard starts: that before the step, and what is known about the rows between.

The rows between are data. The last of them become centers of the shard, borrowed from the shards that learn them, so
that the shard misses no recent row. The last few of all are even learned, and then forgotten but for two things: the
weights of the experts, which may change fast, and centers of the learner that sees the past, which need predictions.
"""

from typing import Any, Final

import numpy as np

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
from ellipack.learners.intervals import empty_predictions
from ellipack.learners.metric.merging.centers import CenterTable, concatenate
from ellipack.learners.metric.merging.statistics import are_outliers, clip_outliers
from ellipack.learners.metric.past import with_features, with_rounds
from ellipack.learners.metric.shard_rounds import Rows, run_rounds
from ellipack.learners.metric.state import HIGH, LOW, project_rows, replace_parts

MAX_RECENT_ROWS: Final = 8192
"""Largest number of rows before a shard that it gets as centers."""

WARM_UP_ROWS: Final = 64
"""Number of rows before a shard that it learns and forgets."""


def shard_start(
    base: CoreParts, settings: MetricSettings, first: int, recent: Rows, past: PastFeatures | None
) -> CoreParts:
    """Return the parts of a core before a shard.

    Parameters
    ----------
    base : CoreParts
        Parts of the core before the step.
    settings : MetricSettings
        Its settings, with room for as many more centers as there are recent rows.
    first : int
        Number of rows of the step before the shard, at least 1.
    recent : Rows
        The last of them, at most `MAX_RECENT_ROWS`.
    past : PastFeatures or None
        The past before the last `WARM_UP_ROWS` rows; None if the learner does not see the past.

    Returns
    -------
    start : CoreParts
        Borrowed centers follow those of the base.
    """
    clock, own = base.plain.clock + first, base.past
    warm_up = max(0, len(recent.y) - WARM_UP_ROWS)
    earlier, last = recent.part(slice(warm_up)), recent.part(slice(warm_up, None))
    before = _centers_of(base.plain, clock - len(last.y), earlier)
    after = concatenate([before, _centers_of(base.plain, clock, last)])
    warm = _warm_up(base, settings, first - len(last.y), before, last, past)
    plain = _later(base.plain, (first, first), after, aggregation=warm.plain.aggregation)
    importance = base.importance
    if importance is not None and importance.seen >= ImportanceParts.max_rows:
        importance = _later_importance(importance, first)
    if own is None or warm.past is None:
        return CoreParts(plain, None, importance)
    borrowed = CenterTable.of(warm.past.rounds).take(slice(len(own.rounds.centers), None))
    rounds = _later(own.rounds, (first, _active_rows(own, first)), borrowed, aggregation=warm.past.rounds.aggregation)
    combination, errors = warm.past.combination, (own.active_errors, own.total_errors)
    return CoreParts(plain, PastParts(rounds, warm.past.features, combination, own.active_from, *errors), importance)


def _warm_up(
    base: CoreParts, settings: MetricSettings, rows: int, before: CenterTable, last: Rows, past: PastFeatures | None
) -> CoreParts:
    """Return the parts of a core after it has learned the last rows before a shard, which follow `rows` others."""
    own = base.past
    if own is not None and past is not None:
        own = with_features(with_rounds(own, _later(own.rounds, (rows, _active_rows(own, rows)), None)), past)
    core = MetricCore(settings, CoreParts(_later(base.plain, (rows, rows), before), own, base.importance))
    return run_rounds(core, last, empty_predictions(len(last.y), with_intervals=False))[0]


def _centers_of(parts: MetricParts, clock: int, rows: Rows) -> CenterTable:
    """Return rows, the last of which is learned in round `clock`, as centers.

    The errors of their predictions are not known: they count as mean errors.
    """
    known = ~are_outliers(rows.y, parts.label_statistics)
    clipped = clip_outliers(rows.X[known], parts.feature_statistics)
    ones = np.ones(len(clipped))
    rounds = (clock - np.arange(len(rows.y), dtype=np.float64)[::-1])[known]
    coordinates = tuple(project_rows(view, clipped) for view in parts.views)
    return CenterTable(clipped, rows.y[known], ones.astype(np.int64), rounds, ones, coordinates)


def _active_rows(past: PastParts, rows: int) -> int:
    """Return how many of the next rows the learner that sees the past learns. It only stores those before."""
    clock = past.rounds.clock
    return max(0, clock + rows - max(clock, past.active_from))


def _later(parts: MetricParts, rows: tuple[int, int], borrowed: CenterTable | None, **changes: Any) -> MetricParts:
    """Return the parts of a learner some rows later, with more centers, whose labels predictions may reach.

    `rows` is the number of these rows, and how many of them are rounds of Algorithm 1.
    """
    packing, labels = parts.packing, parts.label_statistics
    later = PackingExpert(
        packing.coordinates,
        packing.label_sums,
        packing.label_counts,
        packing.creation_rounds,
        packing.rank_starts,
        packing.clock + rows[1],
        packing.coordinate_scale,
        packing.max_centers,
    )
    if borrowed is not None:
        labels[LOW] = borrowed.label_sums.min(initial=labels[LOW])
        labels[HIGH] = borrowed.label_sums.max(initial=labels[HIGH])
        centers = concatenate([CenterTable.of(parts), borrowed])
        changes |= {"centers": centers.memory(), "coordinates": list(centers.coordinates), "label_statistics": labels}
    return replace_parts(parts, packing=later, clock=parts.clock + rows[0], **changes)


def _later_importance(parts: ImportanceParts, rows: int) -> ImportanceParts:
    """Return what was measured about the importance of columns, some rows later."""
    seen = parts.seen + rows
    return ImportanceParts(
        parts.seed, parts.groups, seen, parts.sample, parts.errors, parts.last_row, parts.moves, parts.slope_model
    )
