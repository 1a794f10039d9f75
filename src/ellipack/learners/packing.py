"""Algorithm 1: nonparametric online regression over a packing of ellipsoids. With the identity, Hazan and Megiddo's.

The paper's errata that this settles:

1. Where the printed algorithm sets ``y_t = 1/2`` for a ball without labels, the *prediction* is meant.
2. Its last branch prints ``S + {s}, T_s = {}``, which would empty the active ball while S never grows. A new
   center at ``x_t`` is meant.
3. It drops the label of the instance that founds a center; the proof's ``T_s`` includes it. Including it is the
   default, because it is what the proof bounds and it predicts better; `keep_founding_label` chooses.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import PackingCore
from ellipack.errors import CheckpointError, DomainError, MetricError
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank, rank_starts
from ellipack.validation import Floats, Ints, check_in_unit_ball, check_in_unit_interval, check_labels, check_rows

_ROUNDS_PER_CALL = 4096  # rounds a call: between calls, other threads predict and interrupts are handled
_MAX_ROUNDS = 2**52  # that a file may claim: a float counts them
_SLACK = 1e-6  # for rounding


class PackingState:
    """A metric, and Algorithm 1 in the coordinates in which the metric is Euclidean.

    Both are kept in one attribute, so that threads and interrupts never find one without the other.
    """

    def __init__(self, metric: Metric, core: PackingCore) -> None:
        self.parts = metric, core

    @property
    def metric(self) -> Metric:
        """The metric, of spectral norm 1."""
        return self.parts[0]

    @property
    def core(self) -> PackingCore:
        """The compiled state: centers, their labels, and the clock."""
        return self.parts[1]

    @property
    def clock(self) -> int:
        """The number of rounds played."""
        return self.core.clock

    def copy(self) -> "PackingState":
        """Return a copy that learns on its own."""
        metric, core = self.parts
        return PackingState(metric, core.copy())


class PackingHistory(NamedTuple):
    """What happened along the way, an entry for each round asked for."""

    t: Ints
    radius: Floats
    effective_rank: Ints
    n_centers: Ints


def init(metric: Metric) -> PackingState:
    """Return Algorithm 1 before its first round."""
    if metric.rank < metric.dimension:
        raise MetricError(f"metric must be positive definite, got rank {metric.rank} of {metric.dimension}")
    return PackingState(metric, PackingCore(metric.dimension, rank_starts(metric.eigenvalues)))


def to_archive(state: PackingState) -> Archive:
    """Return what is saved of a state, in arrays of its own."""
    metric, core = state.parts
    coordinates, label_sums, label_counts, creation_rounds, _, clock = core.to_arrays()
    arrays = {
        "coordinates": coordinates,
        "label_sums": label_sums,
        "label_counts": label_counts,
        "creation_rounds": creation_rounds,
    }
    return Archive({"clock": clock}).with_parts(metric=metric.to_archive().copy(), centers=Archive(arrays=arrays))


def from_archive(saved: Archive, d: int, least: int = 1) -> PackingState:
    """Return the state for d features that was saved as this archive, after so many rounds at least."""
    metric, clock = Metric.from_archive(saved.part("metric"), d), saved.integer("clock", least, _MAX_ROUNDS)
    centers = saved.part("centers")
    count = centers.shape("coordinates", 2)[0]
    if bool(count) != bool(clock):
        raise CheckpointError(f"{saved.prefix}centers must exist after the first round, got {count} at clock {clock}")
    coordinates = centers.floats_between(-1.0 - _SLACK, 1.0 + _SLACK, "coordinates", count, d)
    label_counts = centers.counts("label_counts", count, clock)
    label_sums = centers.floats("label_sums", count)
    if (label_sums < 0).any() or (label_sums > label_counts * (1 + _SLACK)).any():
        raise CheckpointError(f"{centers.prefix}label_sums must be sums of labels in [0, 1]")
    creation_rounds = centers.ints("creation_rounds", count, least=1, most=clock)
    if (np.diff(creation_rounds) <= 0).any():
        raise CheckpointError(f"{centers.prefix}creation_rounds must rise")
    starts = rank_starts(metric.eigenvalues)
    return PackingState(metric, PackingCore(coordinates, label_sums, label_counts, creation_rounds, starts, clock))


def predict(state: PackingState, X: ArrayLike) -> Floats:
    """Return what would be predicted for each row now, 1/2 before the first round; nothing changes."""
    metric, core = state.parts
    return core.predict(metric.whiten(check_in_unit_ball(check_rows(X, metric.dimension))))


def learn(state: PackingState, X: ArrayLike, y: ArrayLike, *, keep_founding_label: bool = True) -> Floats:
    """Play one round a row; return the predictions, each made before its label was seen.

    Instances must lie in the unit ball and labels in [0, 1]. However rows are grouped into calls, predictions and
    state have the same bits. An interrupt leaves the state after a whole round.
    """
    metric, core = state.parts
    table = check_in_unit_ball(check_rows(X, metric.dimension))
    targets = check_in_unit_interval(check_labels(y, len(table)))
    batches = [slice(start, start + _ROUNDS_PER_CALL) for start in range(0, len(table), _ROUNDS_PER_CALL)]
    predictions = [core.learn(metric.whiten(table[b]), targets[b], bool(keep_founding_label)) for b in batches]
    return predictions[0] if len(predictions) == 1 else np.concatenate(predictions)


def add_features(state: PackingState, count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far, with an eigenvalue of 1 each.

    Rows that are 0 there are predicted as before. From the next round on, radius and effective rank are the wider
    metric's.
    """
    state.parts = with_added_features(state, count).parts


def with_added_features(state: PackingState, count: int) -> PackingState:
    """Return what `add_features` makes of a state."""
    metric, core = state.parts
    coordinates, label_sums, label_counts, creation_rounds, _, clock = core.to_arrays()
    # New axes come after all that have an eigenvalue of 1.
    place = int(np.sum(metric.eigenvalues >= 1))
    wider, inserted = metric.with_added_features(count), np.insert(coordinates, [place] * count, 0.0, axis=1)
    starts = rank_starts(wider.eigenvalues)
    return PackingState(wider, PackingCore(inserted, label_sums, label_counts, creation_rounds, starts, clock))


def history(state: PackingState, t: ArrayLike | None = None) -> PackingHistory:
    """Return radius, effective rank and number of centers at the end of rounds `t`, of all rounds if not given.

    Nothing is recorded for this: radius and rank depend on time alone, and the round of each founding is known.
    (After a widening they are those of the metric as it is now, at every round.)
    """
    metric, core = state.parts
    _, _, _, creation_rounds, _, clock = core.to_arrays()
    rounds = np.arange(1, clock + 1)
    at = rounds if t is None else np.atleast_1d(np.asarray(t))
    if not np.isin(at, rounds).all():
        raise DomainError(f"t must be rounds from 1 to {clock}, got {at}")
    return compute_history(metric, creation_rounds, at.astype(np.int64))


def compute_history(metric: Metric, creation_rounds: Ints, at: Ints) -> PackingHistory:
    """Return what `history` does, for any metric and rounds of founding."""
    spectrum = metric.eigenvalues
    count = np.searchsorted(creation_rounds, at, side="right").astype(np.int64)
    return PackingHistory(at, radius(spectrum, at), effective_rank(spectrum, at), count)
