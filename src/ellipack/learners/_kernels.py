"""Compiled loops of the learners: Algorithm 1's rounds and its predictions."""

import math

import numpy as np
from numpy.typing import NDArray

from ellipack._kernels import kernel
from ellipack.packing._kernels import append, nearest
from ellipack.packing.centers import Centers
from ellipack.validation import Floats

Ints = NDArray[np.int64]


@kernel
def run_rounds(
    centers: Centers, starts: Ints, clock: int, kept: int, coordinates: Floats, labels: Floats, predictions: Floats
) -> int:
    """Play rounds ``clock + 1, ...`` of Algorithm 1, until the rows or the room for centres run out; say how many.

    `starts` are the rounds at which the effective rank goes up. `kept` is how many labels a new centre starts
    with: its founder's (1) or none (0). See `ellipack.learners.packing` for the paper's errata.
    """
    rank = 1
    for row in range(len(coordinates)):
        if centers.points.size[0] == len(centers.founded):
            return row
        t = clock + row + 1
        while rank <= len(starts) and starts[rank - 1] <= t:
            rank += 1
        radius = float(t) ** (-1.0 / (1.0 + rank))
        if centers.points.size[0] == 0:
            _found(centers, coordinates[row], t)
        active, squared = nearest(centers.points, coordinates[row])
        predictions[row] = _mean(centers, active)
        if math.sqrt(squared) <= radius:
            centers.label_sums[active] += labels[row]
            centers.label_counts[active] += 1
        else:
            new = _found(centers, coordinates[row], t)
            centers.label_sums[new] = kept * labels[row]
            centers.label_counts[new] = kept
    return len(coordinates)


@kernel
def predict_rows(centers: Centers, coordinates: Floats, predictions: Floats) -> None:
    """Fill in the mean label of the centre nearest to each row."""
    for row in range(len(coordinates)):
        active, _ = nearest(centers.points, coordinates[row])
        predictions[row] = _mean(centers, active)


@kernel
def _found(centers: Centers, point: Floats, t: int) -> int:
    """Add a centre that has taken in no label yet; return its position."""
    new = centers.points.size[0]
    append(centers.points, point)
    centers.label_sums[new] = 0.0
    centers.label_counts[new] = 0
    centers.founded[new] = t
    return int(new)


@kernel
def _mean(centers: Centers, active: int) -> float:
    """Return the mean label of a centre, or 1/2 if there is no centre or it has taken in no label."""
    if active < 0 or centers.label_counts[active] == 0:
        return 0.5
    return float(centers.label_sums[active] / centers.label_counts[active])
