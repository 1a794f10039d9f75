"""Rounds of a shard: they evict centers where memory is full, and never end the phase."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import CoreParts, MetricCore
from ellipack.learners.intervals import Predictions
from ellipack.learners.metric.call_sizes import rounds_per_call
from ellipack.learners.metric.eviction import keep_centers, select_kept
from ellipack.learners.metric.learner import NO_KEYS, checked_keys, checked_labels, checked_rows
from ellipack.learners.metric.merging.learned import CenterCounts, Origins
from ellipack.learners.metric.past import with_rounds
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


def run_rounds(core: MetricCore, rows: Rows, predictions: Predictions) -> tuple[CoreParts, Origins]:
    """Predict and learn rows within a phase.

    Parameters
    ----------
    core : MetricCore
        Core, which is updated as long as there is room for centers.
    rows : Rows
        Rows, after checks.
    predictions : Predictions
        Predictions and intervals, which are filled in.

    Returns
    -------
    after : CoreParts
        Parts of the core after the rows.
    origins : Origins
        Where its centers come from.
    """
    settings, most, done = core.settings, rounds_per_call(core), 0
    X, y, keys = rows
    counts = CenterCounts.of(core.parts())
    origins = Origins(np.arange(counts.plain), np.arange(counts.past))
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
    return np.append(origins, np.full(len(kept) - len(origins), -1))[kept]
