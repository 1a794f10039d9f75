"""State from which a shard starts: that before the step, and what is known about the rows between.

The rows between are data. The last of them become centers of the shard, borrowed from the shards that learn them, so
that the shard misses no recent row. The last few of all are even learned, and then forgotten but for two things: the
weights of the experts, which may change fast, and centers of the learner that sees the past, which need predictions.
"""

from typing import Final

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
from ellipack.validation import Floats

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
    warm = _warm_up(base, settings, first, recent, past)
    plain = _with_recent_rows(base.plain, first, recent)
    plain = replace_parts(plain, aggregation=warm.plain.aggregation)
    importance = base.importance
    if importance is not None and importance.seen >= ImportanceParts.max_rows:
        importance = _later_importance(importance, first)
    own = base.past
    if own is None or warm.past is None:
        return CoreParts(plain, None, importance)
    borrowed = CenterTable.of(warm.past.rounds).take(slice(len(own.rounds.centers), None))
    rounds = replace_parts(_with_centers(_later(own.rounds, first), borrowed), aggregation=warm.past.rounds.aggregation)
    combination, errors = warm.past.combination, (own.active_errors, own.total_errors)
    return CoreParts(plain, PastParts(rounds, warm.past.features, combination, own.active_from, *errors), importance)


def _warm_up(
    base: CoreParts, settings: MetricSettings, first: int, recent: Rows, past: PastFeatures | None
) -> CoreParts:
    """Return the parts of a core after it has learned the last rows before a shard."""
    warm_up = max(0, len(recent.y) - WARM_UP_ROWS)
    last = recent.part(slice(warm_up, None))
    rows = first - len(last.y)
    plain = _with_recent_rows(base.plain, rows, recent.part(slice(warm_up)))
    own = base.past
    if own is not None and past is not None:
        own = with_features(with_rounds(own, _later(own.rounds, rows)), past)
    core = MetricCore(settings, CoreParts(plain, own, base.importance))
    return run_rounds(core, last, empty_predictions(len(last.y), with_intervals=False))[0]


def _with_recent_rows(parts: MetricParts, rows: int, recent: Rows) -> MetricParts:
    """Return the parts of a learner some rows later, with the last of them as centers.

    The errors of their predictions are not known: they count as mean errors.
    """
    later = _later(parts, rows)
    known = ~are_outliers(recent.y, parts.label_statistics)
    clipped = clip_outliers(recent.X[known], parts.feature_statistics)
    ones = np.ones(len(clipped))
    rounds = (later.clock - np.arange(len(recent.y), dtype=np.float64)[::-1])[known]
    coordinates = tuple(project_rows(view, clipped) for view in parts.views)
    more = CenterTable(clipped, recent.y[known], ones.astype(np.int64), rounds, ones, coordinates)
    return _with_centers(_with_range(later, recent.y[known]), more)


def _with_range(parts: MetricParts, labels: Floats) -> MetricParts:
    """Return the parts of a learner with a range that contains more labels. Predictions stay within this range."""
    statistics = parts.label_statistics
    statistics[LOW] = labels.min(initial=statistics[LOW])
    statistics[HIGH] = labels.max(initial=statistics[HIGH])
    return replace_parts(parts, label_statistics=statistics)


def _with_centers(parts: MetricParts, more: CenterTable) -> MetricParts:
    """Return the parts of a learner with more centers."""
    centers = concatenate([CenterTable.of(parts), more])
    return replace_parts(parts, centers=centers.memory(), coordinates=list(centers.coordinates))


def _later(parts: MetricParts, rows: int) -> MetricParts:
    """Return the parts of a learner some rows later."""
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


def _later_importance(parts: ImportanceParts, rows: int) -> ImportanceParts:
    """Return what was measured about the importance of columns, some rows later."""
    seen = parts.seen + rows
    return ImportanceParts(parts.seed, parts.groups, seen, parts.sample, parts.errors, parts.last_row, parts.moves)
