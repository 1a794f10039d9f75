"""Rounds of a shard, within a phase."""

from ellipack._core import CoreParts, MetricCore
from ellipack.learners.intervals import Predictions
from ellipack.learners.metric.call_sizes import rounds_per_call
from ellipack.learners.metric.row_checks import Rows
from ellipack.learners.short_calls import row_slices


def run_rounds(core: MetricCore, rows: Rows, predictions: Predictions) -> CoreParts:
    """Predict and learn rows within a phase, and return the parts of the core afterwards.

    Parameters
    ----------
    core : MetricCore
        Core, which is updated. It must have room for all rows.
    rows : Rows
        Rows, after checks.
    predictions : Predictions
        Predictions and intervals, which are filled in.

    Returns
    -------
    after : CoreParts
    """
    (X, y, keys), (values, bounds), clock = rows, predictions, core.clock
    for part in row_slices(len(X), rounds_per_call(core)):
        size = part.stop - part.start
        if core.learn(X, keys, y, values, bounds, first=part.start, count=size) < size:
            raise RuntimeError(f"a core must have room for all rows of a shard, got {len(X)} rows after {clock} rounds")
    return core.parts()
