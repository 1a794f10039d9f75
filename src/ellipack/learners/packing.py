"""Algorithm 1: nonparametric online regression over a packing of ellipsoids. With the identity, Hazan and Megiddo's.

The paper's errata that this settles:

1. Where the printed algorithm sets ``y_t = 1/2`` for a ball without labels, the *prediction* is meant.
2. Its last branch prints ``S + {s}, T_s = {}``, which would empty the active ball while S never grows. A new
   centre at ``x_t`` is meant.
3. It drops the label of the instance that founds a centre; the proof's ``T_s`` includes it. Including it is the
   default, because it is what the proof bounds and it predicts better; `keep_founding_label` chooses.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.learners._kernels import predict_rows, run_rounds
from ellipack.metric import Metric
from ellipack.packing.centers import Centers
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank, rank_starts
from ellipack.validation import Floats, Ints, in_unit_ball, in_unit_interval, labels, rows


@dataclass(eq=False)
class PackingState:
    """What Algorithm 1 carries from round to round: its metric, its centres and how many rounds there were."""

    metric: Metric
    centers: Centers
    clock: int = 0
    rank_starts: Ints = field(init=False)  # of the metric, worked out once

    def __post_init__(self) -> None:
        self.rank_starts = rank_starts(self.metric.eigenvalues)


class PackingHistory(NamedTuple):
    """What happened along the way, an entry for each round asked for."""

    t: Ints
    radius: Floats
    effective_rank: Ints
    n_centers: Ints


def init(metric: Metric) -> PackingState:
    """Return Algorithm 1 before its first round."""
    return PackingState(metric, Centers.init(metric.dimension))


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
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        rest = slice(done, None)
        ahead = run_rounds(
            state.centers,
            state.rank_starts,
            state.clock,
            int(bool(keep_founding_label)),
            coordinates[rest],
            targets[rest],
            predictions[rest],
        )
        state.clock += ahead
        done += ahead
        if done < len(table):
            state.centers = state.centers.grown()
    return predictions


def history(state: PackingState, t: ArrayLike | None = None) -> PackingHistory:
    """Return radius, effective rank and number of centres at the end of rounds `t`, of all rounds if not given.

    Nothing is recorded for this: the first two depend on time alone, and every centre knows when it was founded.
    """
    rounds = np.arange(1, state.clock + 1)
    at = rounds if t is None else np.atleast_1d(np.asarray(t))
    if not np.isin(at, rounds).all():
        raise DomainError(f"t must be rounds from 1 to {state.clock}, got {at}")
    return look_back(state.metric, state.centers.founded[: state.centers.size], at.astype(np.int64))


def look_back(metric: Metric, founded: Ints, at: Ints) -> PackingHistory:
    """Return what `history` does, for any metric and rounds of founding."""
    spectrum = metric.eigenvalues
    count = np.searchsorted(founded, at, side="right").astype(np.int64)
    return PackingHistory(at, radius(spectrum, at), effective_rank(spectrum, at), count)
