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

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError, DomainError
from ellipack.learners._kernels import run_rounds
from ellipack.metric import Metric
from ellipack.packing.centers import Centers
from ellipack.packing.index import Index
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank, rank_starts
from ellipack.threads import Gate
from ellipack.validation import Floats, Ints, in_unit_ball, in_unit_interval, labels, rows

_AT_A_TIME = 4096  # rounds, between which those who predict on other threads have their turn
_LONGEST = 2**52  # rounds that a file may claim: a float counts them, and there is no end of them in sight
_SLACK = 1e-6  # for rounding


@dataclass(eq=False)
class PackingState:
    """What Algorithm 1 carries from round to round: its metric, its centres and how many rounds there were."""

    metric: Metric
    centers: Centers
    clock: int = 0
    rank_starts: Ints = field(init=False)  # of the metric, worked out once
    gate: Gate = field(default_factory=Gate)

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


def contents(state: PackingState) -> Contents:
    """Return what is saved of a state, in arrays of its own."""
    with state.gate.looking():
        parts = {"metric": state.metric.contents(), "centers": state.centers.contents()}
        return Contents({"clock": state.clock}).having(**parts).copy()


def restore(saved: Contents, d: int, least: int = 1) -> PackingState:
    """Return the state for d features that was saved as these contents, after so many rounds at least."""
    metric, clock = Metric.restore(saved.part("metric"), d), saved.whole("clock", least, _LONGEST)
    centers = Centers.restore(saved.part("centers"), d, clock)
    size, place = centers.size, f"{saved.place}centers"
    if bool(size) != bool(clock):
        raise CheckpointError(f"{place} must be there from the first round on, got {size} after {clock} rounds")
    if size and np.abs(centers.coordinates).max() > 1 + _SLACK:
        raise CheckpointError(f"{place}/coordinates must lie in the unit ball")
    sums, most = centers.label_sums[:size], centers.label_counts[:size] * (1 + _SLACK)
    if (sums < 0).any() or (sums > most).any():
        raise CheckpointError(f"{place}/label_sums must be those of labels in [0, 1]")
    return PackingState(metric, centers, clock)


def predict(state: PackingState, X: ArrayLike) -> Floats:
    """Return what would be predicted for each row now, 1/2 before the first round; nothing changes."""
    with state.gate.looking():
        coordinates = state.metric.whiten(in_unit_ball(rows(X, state.metric.dimension)))
        active, _ = Index(state.centers.points).nearest(coordinates)
        return state.centers.means(active)


def learn(state: PackingState, X: ArrayLike, y: ArrayLike, *, keep_founding_label: bool = True) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    Instances must lie in the unit ball and labels in [0, 1]. However rows are grouped into calls, predictions and
    state have the same bits.
    """
    table = in_unit_ball(rows(X, state.metric.dimension))
    targets = in_unit_interval(labels(y, len(table)))
    predictions = np.empty(len(table))
    for start in range(0, len(table), _AT_A_TIME):
        part = slice(start, start + _AT_A_TIME)
        _play(state, state.metric.whiten(table[part]), targets[part], int(bool(keep_founding_label)), predictions[part])
    return predictions


def _play(state: PackingState, coordinates: Floats, targets: Floats, kept: int, predictions: Floats) -> None:
    """Play a round a row; `kept` is how many labels a new centre starts with."""
    done = 0
    while done < len(coordinates):
        left = slice(done, None)
        with state.gate.changing():
            rest = coordinates[left], targets[left], predictions[left]
            ahead = run_rounds(state.centers, state.rank_starts, state.clock, kept, *rest)
            state.clock += ahead
            done += ahead
            if done < len(coordinates):
                state.centers = state.centers.grown()


def widen(state: PackingState, count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far, with an eigenvalue of 1 each.

    Rows that are 0 there are predicted as before. From the next round on, radius and effective rank are the wider
    metric's.
    """
    moved = widened(state, count)
    with state.gate.changing():
        state.metric, state.centers, state.rank_starts = moved.metric, moved.centers, moved.rank_starts


def widened(state: PackingState, count: int) -> PackingState:
    """Return what `widen` makes of a state."""
    metric = state.metric.widened(count)
    # New axes stand behind all that had an eigenvalue of 1.
    place = int(np.sum(state.metric.eigenvalues >= 1))
    coordinates = np.insert(state.centers.coordinates, [place] * count, 0.0, axis=1)
    return PackingState(metric, state.centers.re_embedded(coordinates), state.clock)


def history(state: PackingState, t: ArrayLike | None = None) -> PackingHistory:
    """Return radius, effective rank and number of centres at the end of rounds `t`, of all rounds if not given.

    Nothing is recorded for this: the first two depend on time alone, and every centre knows when it was founded.
    (After a widening they are those of the metric as it is now, at every round.)
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
