"""Algorithm 1 of the paper: nonparametric online regression over a packing of ellipsoids.

With the identity as metric it is the algorithm of Hazan and Megiddo. The module corrects three errors in the printed
algorithm:

1. For a ball without labels it sets ``y_t = 1/2``. The *prediction* is meant.
2. Its last branch sets ``S + {s}, T_s = {}``. This would empty the active ball, and S would never grow. A new center
   at ``x_t`` is meant.
3. It drops the label of each instance that becomes a center, except the first, but ``T_s`` in the proof includes it.
   Including it is the default, because the proof bounds this version and it predicts better; see
   `keep_founding_label`.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
   Algorithm 1.
.. [2] E. Hazan and N. Megiddo. Online Learning with Prior Knowledge. COLT 2007.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import PackingCore
from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.intervals import (
    NO_INTERVALS,
    Bounds,
    WantedIntervals,
    calibration_from_archive,
    calibration_to_archive,
)
from ellipack.learners.units import UnitChange, insert_features
from ellipack.learners.whitened import WhitenedState, add_features, check_positive_definite, predict, run_rounds
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import radius
from ellipack.theory.spectrum import effective_rank, rank_starts
from ellipack.validation import Floats, Ints

__all__ = [
    "PackingHistory",
    "PackingState",
    "add_features",
    "compute_history",
    "from_archive",
    "history",
    "init",
    "learn",
    "predict",
    "to_archive",
]

_ROUNDS_PER_CALL = 4096  # of the core; between calls, other threads can predict and interrupts are handled
_MAX_ROUNDS = 2**52  # in a file; floats represent them exactly
_SLACK = 1e-6  # tolerance for rounding errors


class PackingState(WhitenedState[PackingCore]):
    """State of Algorithm 1. The core has the centers, their labels, the clock, and the calibration of intervals."""

    def copy(self) -> "PackingState":
        """Return an independent copy."""
        metric, core = self.parts
        return PackingState(metric, core.copy())

    def in_units(self, change: UnitChange) -> "PackingState":
        """Return a copy in other units."""
        metric, core = self.parts
        coordinates, sums, counts, creation_rounds, starts, clock, calibration = core.to_arrays()
        if len(coordinates) == 0:  # of a new phase, which has a calibration all the same
            same = self.copy()
            same.calibration = calibration.in_units(change.label_slope)
            return same
        moved, label_sums = change.convert_whitened(coordinates, metric), change.convert_labels(sums, counts)
        converted = calibration.in_units(change.label_slope)
        return PackingState(metric, PackingCore(moved, label_sums, counts, creation_rounds, starts, clock, converted))

    def with_added_features(self, count: int) -> "PackingState":
        """Return a copy with features added as last columns, each with an eigenvalue of 1.

        Predictions for rows that are 0 in the new features do not change. From the next round on, radius and effective
        rank are those of the larger metric.
        """
        metric, core = self.parts
        coordinates, sums, counts, creation_rounds, _, clock, calibration = core.to_arrays()
        wider, inserted = metric.with_added_features(count), insert_features(coordinates, metric, count)
        starts = rank_starts(wider.eigenvalues)
        return PackingState(wider, PackingCore(inserted, sums, counts, creation_rounds, starts, clock, calibration))


class PackingHistory(NamedTuple):
    """Radius, effective rank and number of centers at the end of rounds.

    Attributes
    ----------
    t : array of int
        Rounds.
    radius : array of float
        Radius of the balls.
    effective_rank : array of int
        Effective rank of the metric.
    n_centers : array of int
        Number of centers.
    """

    t: Ints
    radius: Floats
    effective_rank: Ints
    n_centers: Ints


def init(metric: Metric) -> PackingState:
    """Return the initial state of Algorithm 1.

    Parameters
    ----------
    metric : Metric
        Positive definite metric of spectral norm 1.

    Returns
    -------
    state : PackingState

    Raises
    ------
    MetricError
        If the metric is singular.

    Examples
    --------
    >>> state = init(Metric.identity(2))
    >>> learn(state, [[0.5, 0.0], [0.5, 0.1]], [0.25, 0.75]).tolist()
    [0.5, 0.25]
    >>> predict(state, [[0.5, 0.0]]).tolist()
    [0.5]
    """
    core = PackingCore(metric.dimension, rank_starts(check_positive_definite(metric).eigenvalues))
    return PackingState(metric, core)


def to_archive(state: PackingState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    metric, core = state.parts
    coordinates, label_sums, label_counts, creation_rounds, _, clock, calibration = core.to_arrays()
    arrays = {
        "coordinates": coordinates,
        "label_sums": label_sums,
        "label_counts": label_counts,
        "creation_rounds": creation_rounds,
    }
    return Archive({"clock": clock}).with_parts(
        metric=metric.to_archive().copy(),
        centers=Archive(arrays=arrays),
        intervals=calibration_to_archive(calibration),
    )


def from_archive(saved: Archive, d: int, least: int = 1) -> PackingState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.
    least : int, default 1
        Smallest number of rounds that is valid.

    Returns
    -------
    state : PackingState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    metric, clock = Metric.from_archive(saved.part("metric"), d), saved.integer("clock", least, _MAX_ROUNDS)
    centers = saved.part("centers")
    count = centers.shape("coordinates", 2)[0]
    if bool(count) != bool(clock):
        raise ModelFileError(f"{saved.prefix}centers must exist after the first round, got {count} at clock {clock}")
    coordinates = centers.floats_between(-1.0 - _SLACK, 1.0 + _SLACK, "coordinates", count, d)
    label_counts = centers.counts("label_counts", count, clock)
    label_sums = centers.floats("label_sums", count)
    if (label_sums < 0).any() or (label_sums > label_counts * (1 + _SLACK)).any():
        raise ModelFileError(f"{centers.prefix}label_sums must be sums of labels in [0, 1]")
    creation_rounds = centers.ints("creation_rounds", count, least=1, most=clock)
    if (np.diff(creation_rounds) <= 0).any():
        raise ModelFileError(f"{centers.prefix}creation_rounds must be strictly increasing")
    calibration = calibration_from_archive(saved.part("intervals"), _MAX_ROUNDS)
    starts = rank_starts(metric.eigenvalues)
    core = PackingCore(coordinates, label_sums, label_counts, creation_rounds, starts, clock, calibration)
    return PackingState(metric, core)


def learn(
    state: PackingState,
    X: ArrayLike,
    y: ArrayLike,
    intervals: WantedIntervals = NO_INTERVALS,
    *,
    keep_founding_label: bool = True,
) -> Floats:
    """Run one round for each row: predict, then learn the label.

    Predictions and state do not depend on how rows are grouped into calls, bit for bit. An interrupt leaves the state
    of a completed round.

    Parameters
    ----------
    state : PackingState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    y : array-like of shape (n,)
        Labels in [0, 1].
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance.

    Returns
    -------
    predictions : array of shape (n,)
        Predictions, each made before its label was learned.
    """
    keep = bool(keep_founding_label)

    def learn_rows(core: PackingCore, rows: Floats, labels: Floats, bounds: Bounds, positions: Floats) -> Floats:
        return core.learn(rows, labels, keep, bounds, positions)

    return run_rounds(state, X, y, learn_rows, _ROUNDS_PER_CALL, intervals)


def history(state: PackingState, t: ArrayLike | None = None) -> PackingHistory:
    """Return radius, effective rank and number of centers at the end of rounds.

    They are computed from the current metric and the round in which each center was added. After `add_features`, radius
    and effective rank are those of the larger metric at every round.

    Parameters
    ----------
    state : PackingState
        The state.
    t : array-like of int, optional
        Rounds. The default is all rounds.

    Returns
    -------
    history : PackingHistory

    Raises
    ------
    DomainError
        If `t` contains other numbers than rounds so far.
    """
    metric, core = state.parts
    _, _, _, creation_rounds, _, clock, _ = core.to_arrays()
    rounds = np.arange(1, clock + 1)
    at = rounds if t is None else np.atleast_1d(np.asarray(t))
    if not np.isin(at, rounds).all():
        raise DomainError(f"t must be rounds from 1 to {clock}, got {at}")
    return compute_history(metric, creation_rounds, at.astype(np.int64))


def compute_history(metric: Metric, creation_rounds: Ints, at: Ints) -> PackingHistory:
    """Return the history of rounds `at`, given the metric and the round in which each center was added."""
    spectrum = metric.eigenvalues
    count = np.searchsorted(creation_rounds, at, side="right").astype(np.int64)
    return PackingHistory(at, radius(spectrum, at), effective_rank(spectrum, at), count)
