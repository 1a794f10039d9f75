"""Rounds of a shard, within a phase."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import CoreParts, MetricCore
from ellipack.learners.intervals import Predictions
from ellipack.learners.metric.call_sizes import rounds_per_call
from ellipack.learners.metric.row_checks import NO_KEYS, checked_keys, checked_labels, checked_rows
from ellipack.learners.short_calls import row_slices
from ellipack.validation import Floats, Ints


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


def check_all(core: MetricCore, X: ArrayLike, y: ArrayLike, keys: Ints) -> Rows:
    """Return rows, labels and keys that a core accepts, or raise `InputError`."""
    table = np.ascontiguousarray(checked_rows(core, X))
    return Rows(table, checked_labels(core, y, len(table)), checked_keys(core, keys, len(table)))


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
    (X, y, keys), clock = rows, core.clock
    for part in row_slices(len(X), rounds_per_call(core)):
        if core.learn(X[part], keys[part], y[part], *predictions.part(part)) < part.stop - part.start:
            raise RuntimeError(f"a core must have room for all rows of a shard, got {len(X)} rows after {clock} rounds")
    return core.parts()
