"""Algorithm 1: nonparametric online regression over a packing of ellipsoids. With the identity, Hazan and Megiddo's.

The paper's errata that this settles:

1. Where the printed algorithm sets ``y_t = 1/2`` for a ball without labels, the *prediction* is meant.
2. Its last branch prints ``S + {s}, T_s = {}``, which would empty the active ball while S never grows. A new
   centre at ``x_t`` is meant.
3. It drops the label of the instance that founds a centre; the proof's ``T_s`` includes it. Including it is the
   default, because it is what the proof bounds and it predicts better; `keep_founding_label` chooses.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.learners._kernels import predict_rows, run_rounds
from ellipack.metric import Metric
from ellipack.packing.centers import Centers
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank, rank_starts
from ellipack.validation import Floats, in_unit_ball, in_unit_interval, labels, rows


@dataclass(eq=False)
class PackingState:
    """What Algorithm 1 carries from round to round: its metric, its centres and how many rounds there were."""

    metric: Metric
    centers: Centers
    clock: int


class PackingHistory(NamedTuple):
    """What happened along the way, an entry for each round asked for."""

    t: NDArray[np.int64]
    radius: Floats
    effective_rank: NDArray[np.int64]
    n_centers: NDArray[np.int64]


def init(metric: Metric) -> PackingState:
    """Return Algorithm 1 before its first round."""
    return PackingState(metric, Centers.init(metric.dimension), 0)


def predict(state: PackingState, X: ArrayLike) -> Floats:
    """Return what would be predicted for each row now, 1/2 before the first round; nothing changes."""
    coordinates = state.metric.whiten(in_unit_ball(rows(X, state.metric.dimension)))
    predictions = np.empty(len(coordinates))
    predict_rows(state.centers, coordinates, predictions)
    return predictions


def learn(state: PackingState, X: ArrayLike, y: ArrayLike, *, keep_founding_label: bool = True) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    Instances must lie in the unit ball and labels in [0, 1]. However rows are grouped into calls, predictions and
    state have the same bits.
    """
    table = in_unit_ball(rows(X, state.metric.dimension))
    targets = in_unit_interval(labels(y, len(table)))
    coordinates = state.metric.whiten(table)
    starts = rank_starts(state.metric.eigenvalues)
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        if state.centers.size == state.centers.capacity:
            state.centers = state.centers.grown()
        rest = slice(done, None)
        ahead = run_rounds(
            state.centers,
            starts,
            state.clock,
            int(keep_founding_label),
            coordinates[rest],
            targets[rest],
            predictions[rest],
        )
        state.clock += ahead
        done += ahead
    return predictions


def history(state: PackingState, t: ArrayLike | None = None) -> PackingHistory:
    """Return radius, effective rank and number of centres at the end of rounds `t`, of all rounds if not given.

    Nothing is recorded for this: the first two depend on time alone, and every centre knows when it was founded.
    """
    at = np.arange(1, state.clock + 1) if t is None else np.asarray(t, dtype=np.int64)
    spectrum = state.metric.eigenvalues
    founded = state.centers.founded[: state.centers.size]
    count = np.searchsorted(founded, at, side="right").astype(np.int64)
    return PackingHistory(at, radius(spectrum, at), effective_rank(spectrum, at), count)
