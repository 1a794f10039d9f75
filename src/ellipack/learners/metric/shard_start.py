"""State from which a shard starts: that before the step, and what is known about the rows between.

The rows between are data. The last of them become centers of the shard, borrowed from the shards that learn them, so
that the shard misses no recent row. The shard also learns the last few of all. It keeps only the resulting weights of
the experts, which may change fast, and the centers.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ellipack._core import (
    CoreParts,
    ImportanceParts,
    MetricCore,
    MetricParts,
    MetricSettings,
    PastFeatures,
    PastParts,
)
from ellipack.learners.intervals import empty_predictions
from ellipack.learners.metric.merging.centers import CenterTable
from ellipack.learners.metric.merging.learned import Start
from ellipack.learners.metric.merging.statistics import are_outliers, clip_outliers
from ellipack.learners.metric.past import with_features, with_rounds
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.metric.shard_rounds import run_rounds
from ellipack.learners.metric.state import HIGH, LOW, project_rows, replace_parts
from ellipack.validation import Floats

MAX_RECENT_ROWS: Final = 8192
"""Largest number of rows before a shard that it gets as centers."""

WARM_UP_ROWS: Final = 64
"""Number of rows before a shard that it learns and forgets."""


def start_step(core: MetricCore, rows: int) -> tuple[Start, MetricCore]:
    """Return where the first shard of a step starts, and a core with room for its rows."""
    base = core.parts()
    return Start.of(base, base), MetricCore(_with_room(core.settings, rows), base)


def start_shard(
    core: MetricCore, sizes: tuple[int, int], recent: Rows, past: PastFeatures | None
) -> tuple[Start, MetricCore]:
    """Return where a shard starts, and a core that is there.

    Parameters
    ----------
    core : MetricCore
        Core before the step. It is not changed.
    sizes : pair of int
        Number of rows of the step before the shard, at least 1, and of rows of the shard.
    recent : Rows
        The last of them, at most `MAX_RECENT_ROWS`.
    past : PastFeatures or None
        The past before the last `WARM_UP_ROWS` rows; None if the learner does not see the past.

    Returns
    -------
    start : Start
        Borrowed centers follow those of the base.
    core : MetricCore
        It has room for the recent rows and for those of the shard.
    """
    first, own = sizes
    base, settings = core.parts(), _with_room(core.settings, len(recent.y) + own)
    parts = _forget_warm_up(base, _warm_up(base, settings, first, recent, past), first, recent)
    return Start.of(base, parts), MetricCore(settings, parts)


def _with_room(settings: MetricSettings, rows: int) -> MetricSettings:
    """Return settings with room for more rows. Centers are evicted when all shards are merged."""
    return MetricSettings(settings.neighbors, settings.max_centers + rows, settings.label_margin)


def _warm_up(
    base: CoreParts, settings: MetricSettings, first: int, recent: Rows, past: PastFeatures | None
) -> CoreParts:
    """Return the parts of a core that knows the rows before a shard, and has learned the last of them."""
    count = max(0, len(recent.y) - WARM_UP_ROWS)
    earlier, last = recent.part(slice(count)), recent.part(slice(count, None))
    rows = first - len(last.y)
    plain, own = _later(base.plain, rows, rows), base.past
    borrowed = _centers_of(plain, earlier)
    plain = replace_parts(
        plain,
        centers=plain.centers.append(borrowed.memory()),
        index=plain.index.append(list(borrowed.coordinates)),
        label_statistics=_with_range(plain.label_statistics, borrowed.label_sums),
    )
    if own is not None and past is not None:
        own = with_features(with_rounds(own, _later(own.rounds, rows, _active_rows(own, rows))), past)
    parts = CoreParts(plain, own, base.importance)
    core = MetricCore(settings, parts)
    del parts, plain, own  # so that the core changes its index in place
    return run_rounds(core, last, empty_predictions(len(last.y), with_intervals=False))


def _forget_warm_up(base: CoreParts, warm: CoreParts, first: int, recent: Rows) -> CoreParts:
    """Return the parts of a core that keeps the centers and the weights of a warm-up, and nothing else."""
    plain = replace_parts(
        _later(base.plain, first, first),
        centers=warm.plain.centers,
        index=warm.plain.index,
        aggregation=warm.plain.aggregation,
        label_statistics=_with_range(base.plain.label_statistics, recent.y[_known(base.plain, recent)]),
    )
    importance, own = base.importance, base.past
    if importance is not None and importance.seen >= ImportanceParts.max_rows:
        importance = _later_importance(importance, first)
    if own is None or warm.past is None:
        return CoreParts(plain, None, importance)
    learned = warm.past.rounds
    rounds = replace_parts(
        _later(own.rounds, first, _active_rows(own, first)),
        centers=learned.centers,
        index=learned.index,
        aggregation=learned.aggregation,
        label_statistics=_with_range(own.rounds.label_statistics, learned.label_statistics[[LOW, HIGH]]),
    )
    errors = own.active_errors, own.total_errors
    past = PastParts(rounds, warm.past.features, warm.past.combination, own.active_from, *errors)
    return CoreParts(plain, past, importance)


def _centers_of(parts: MetricParts, rows: Rows) -> CenterTable:
    """Return the rows before the present round as centers.

    The errors of their predictions are not known: they count as mean errors.
    """
    known = _known(parts, rows)
    clipped = clip_outliers(rows.X[known], parts.feature_statistics)
    ones = np.ones(len(clipped))
    rounds = (parts.clock - np.arange(len(rows.y), dtype=np.float64)[::-1])[known]
    coordinates = tuple(project_rows(view, clipped) for view in parts.views)
    return CenterTable(clipped, rows.y[known], ones.astype(np.int64), rounds, ones, coordinates)


def _known(parts: MetricParts, rows: Rows) -> NDArray[np.bool_]:
    """Return a mask of the rows whose labels are no outliers."""
    return ~are_outliers(rows.y, parts.label_statistics)


def _active_rows(past: PastParts, rows: int) -> int:
    """Return how many of the next rows the learner that sees the past learns. It only stores those before."""
    clock = past.rounds.clock
    return max(0, clock + rows - max(clock, past.active_from))


def _later(parts: MetricParts, rows: int, active_rows: int) -> MetricParts:
    """Return the parts of a learner some rows later. Some of these are rounds of Algorithm 1."""
    packing = parts.packing
    return replace_parts(parts, packing=packing.at_round(packing.clock + active_rows), clock=parts.clock + rows)


def _with_range(label_statistics: Floats, labels: Floats) -> Floats:
    """Return statistics whose range, which predictions may reach, contains more labels."""
    label_statistics[LOW] = labels.min(initial=label_statistics[LOW])
    label_statistics[HIGH] = labels.max(initial=label_statistics[HIGH])
    return label_statistics


def _later_importance(parts: ImportanceParts, rows: int) -> ImportanceParts:
    """Return what was measured about the importance of columns, some rows later."""
    seen = parts.seen + rows
    return ImportanceParts(
        parts.seed, parts.groups, seen, parts.sample, parts.errors, parts.last_row, parts.moves, parts.slope_model
    )
