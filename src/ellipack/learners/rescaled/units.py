"""What a learner of the paper has learned, seen in other units."""

from typing import TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import PackingCore, project
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedParts, PhasedState, Samples
from ellipack.learners.rescaled.box import Change
from ellipack.metric import Metric
from ellipack.validation import Floats

Inner = TypeVar("Inner", bound=PackingState | PhasedState)
"""The states of learners that want instances in the unit ball and labels in [0, 1]."""


def converted(inner: Inner, change: Change) -> Inner:
    """Return the state in other units, counts and clocks as they were, in arrays of its own.

    Metrics stay what they are, on rows in the unit ball. So do phases that are over: in the units of their time.
    """
    if isinstance(inner, PackingState):
        return cast(Inner, _packing(inner, change))
    samples = Samples(_rows(inner.rows, change), _labels(inner.labels, 1, change))
    return cast(Inner, PhasedState(PhasedParts(_packing(inner.packing, change), inner.phases, samples)))


def _packing(inner: PackingState, change: Change) -> PackingState:
    metric, core = inner.parts
    coordinates, sums, counts, founded, rank_starts, clock = core.to_arrays()
    if len(coordinates) == 0:
        return inner.copy()
    moved = project(_rows(_features(metric, coordinates), change), metric.directions)
    label_sums = _labels(sums, counts, change)
    return PackingState(metric, PackingCore(moved, label_sums, counts, founded, rank_starts, clock))


def _features(metric: Metric, coordinates: Floats) -> Floats:
    """Return rows in feature coordinates, given whitened ones."""
    return project(coordinates, np.ascontiguousarray((metric.eigenvectors / np.sqrt(metric.eigenvalues)).T))


def _rows(rows: Floats, change: Change) -> Floats:
    """Return rows in new units, held to the unit ball's cube by rounding alone."""
    most = 1 / np.sqrt(rows.shape[1])
    return np.clip(change.slope * rows + change.offset, -most, most)


def _labels(sums: Floats, counts: ArrayLike, change: Change) -> Floats:
    """Return sums of so many labels in new units."""
    return np.clip(change.label_slope * sums + change.label_offset * np.asarray(counts), 0.0, counts)
