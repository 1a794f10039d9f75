"""Affine changes of units, of features in the unit ball and of labels in [0, 1]."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import project
from ellipack.metric import Metric
from ellipack.validation import Floats


class UnitChange(NamedTuple):
    """Affine change of units, of features in the unit ball and of labels in [0, 1].

    Attributes
    ----------
    slope, offset : array of shape (d,)
        A feature x becomes ``slope * x + offset``.
    label_slope, label_offset : float
        A label y becomes ``label_slope * y + label_offset``.
    """

    slope: Floats
    offset: Floats
    label_slope: float
    label_offset: float

    def convert_rows(self, rows: Floats) -> Floats:
        """Return rows in other units. Clipping corrects rounding errors only."""
        bound = 1 / np.sqrt(rows.shape[1])
        return np.clip(self.slope * rows + self.offset, -bound, bound)

    def convert_whitened(self, coordinates: Floats, metric: Metric) -> Floats:
        """Return whitened coordinates in other units; the metric stays the same matrix."""
        if len(coordinates) == 0:
            return coordinates
        rows = project(coordinates, np.ascontiguousarray((metric.eigenvectors / np.sqrt(metric.eigenvalues)).T))
        return project(self.convert_rows(rows), metric.directions)

    def convert_labels(self, sums: Floats, counts: ArrayLike) -> Floats:
        """Return sums of labels in other units, given the number of labels of each sum."""
        return np.clip(self.label_slope * sums + self.label_offset * np.asarray(counts), 0.0, counts)


def insert_features(coordinates: Floats, metric: Metric, count: int) -> Floats:
    """Return whitened coordinates after `Metric.with_added_features`: the new features are 0.

    Parameters
    ----------
    coordinates : array of shape (n, d)
        Whitened coordinates in the metric.
    metric : Metric
        The metric before features are added.
    count : int
        Number of new features.

    Returns
    -------
    coordinates : array of shape (n, d + count)
    """
    # Eigenvalues are in descending order: new ones of 1 come after the existing ones of 1.
    position = int(np.sum(metric.eigenvalues >= 1))
    return np.insert(coordinates, [position] * count, 0.0, axis=1)
