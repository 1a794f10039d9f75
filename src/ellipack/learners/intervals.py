"""Prediction intervals with a guaranteed coverage on any stream.

A learner publishes an interval around each prediction, ``[p - a s, p + b s]``. The scale ``s`` is the error to expect,
and the widths ``a`` and ``b`` of the two sides are calibrated by adaptive conformal inference: after each label, a side
that missed it becomes wider by a factor, and the other side by about the root of this factor. After a hit, both become
narrower by a much smaller factor. The factors are such that they balance if each side misses the fraction
``(1 - coverage) / 2`` of the labels.

**Scale.** `MetricRegressor` remembers the error of each prediction, in units of the mean error of its time, with its
row. The relative scale of a row is a weighted mean of the remembered errors at its neighbors. The scale is the mean
error of about the last 200 rounds, times a weighted mean of 1, the relative scale and its root; the weights fall
exponentially with their losses in these rounds. Intervals are narrow where errors are small, and equally wide if errors
are equally large everywhere. If the labels of about the last 400 rounds missed more intervals than they should, the
scale is larger: it is multiplied by ``exp(x**3)``, where x is the excess of missed intervals of all eight coverages,
divided by 32 and at most 1 in size. The paper's learners use the mean error alone.

**Rounds without intervals.** `MetricRegressor` and `KeyedRegressor` calibrate by every round. The paper's learners
calibrate by the rounds in which intervals are asked for. Other rounds are deferred: the learner remembers the errors of
the last 2,048 of them, and calibrates by these before the next interval is published. So `predict_interval` works after
any `fit`, and intervals cost nothing in rounds that do not ask for them. The calibration depends on which rounds asked
for intervals, but not on how rounds are grouped into calls.

**Theorem.** Consider T rounds with intervals of a coverage c. Let B be the largest of the scores ``|label - p| / s`` of
these rounds and of the initial widths, and let ``C = 8/3 (ln(1000 B) + 0.32) / h``, where
``h = 0.04 sqrt(0.2 / (1 - c))`` is the size of a step. Then at most

    T (1 - c) + C

labels are outside of their intervals: the coverage is at least ``c - C / T``. It is also at most ``c + C / T``, and
each side misses the fraction ``(1 - c) / 2`` of the labels up to ``C / T``, unless a width had to be kept at the
smallest one, 0.001 scales: then more labels than wanted equal their predictions, or lie on one side of them. This holds
on every stream, whatever the labels, the predictions and the scales are. No distribution is assumed; an adversary who
sees the interval may choose the label. If a label is learned up to D rounds after its interval was published, 0.32 is
replaced by ``0.32 (D + 1)``. The proof is in ``cpp/conformal.hpp``.

For the paper's learners, the T rounds are those with intervals and the deferred ones by which the intervals were
calibrated. The theorem also holds for consecutive rounds with intervals alone: the initial widths are then those before
the first of these rounds.

The theorem needs finite scores only. B enters by its logarithm, so that intervals stay finite: methods whose bound does
not depend on B must publish infinite intervals at times.

**First rounds.** The first two intervals are infinite, because no error is known. They do not count as rounds of the
theorem, nor do rounds in which no prediction had an error so far: then the interval is a single point.

The theorem applies to intervals of the coverages 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98 and 0.99. Those of other coverages
are interpolated, and lie between the intervals of the two nearest of them.

References
----------
.. [1] I. Gibbs and E. Candes. Adaptive Conformal Inference Under Distribution Shift. NeurIPS 2021.
.. [2] A. Angelopoulos, R. F. Barber and S. Bates. Online Conformal Prediction with Decaying Step Sizes. ICML 2024.
   The proof is that of their Theorem 2, for sums of logarithms of widths.
"""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import ConformalIntervals, DeferredCalibration
from ellipack.errors import DomainError, ModelFileError, ShapeError
from ellipack.serialization import Archive
from ellipack.validation import MAX_ABS_LABEL, Floats, as_floats

Bounds = NDArray[np.float64]
"""Ends of intervals, one row for each prediction: lower ends of all or of the wanted coverages, then upper ends."""

COVERAGES: Final[tuple[float, ...]] = tuple(ConformalIntervals.coverages.tolist())
"""Coverages to which the theorem applies."""

_COUNT = len(COVERAGES)

NO_BOUNDS: Final[Bounds] = np.empty((0, 2 * _COUNT))
"""Intervals of predictions for which they are not wanted."""

ALL_POSITIONS: Final[Floats] = np.arange(float(_COUNT))
"""Positions of all coverages of the theorem."""

NO_POSITIONS: Final[Floats] = np.empty(0)
"""Positions of no coverage, if intervals are not wanted."""

_MAX_ERROR = 4 * MAX_ABS_LABEL


def _quantile(coverage: float) -> float:
    """Return the half-width of the interval of a standard normal distribution."""
    return NormalDist().inv_cdf(0.5 + coverage / 2)


_QUANTILES = np.array([_quantile(coverage) for coverage in COVERAGES])


class WantedIntervals(NamedTuple):
    """Array that a core fills with the intervals of the wanted coverages.

    Attributes
    ----------
    bounds : array of shape (n, 2 * k)
        Ends of the intervals at k positions. If none are wanted, it is empty.
    positions : array of shape (k,)
        Result of `coverage_positions`.
    """

    bounds: Bounds
    positions: Floats

    @classmethod
    def empty(cls, rows: int, positions: Floats) -> "WantedIntervals":
        """Return an array for the intervals of a number of rows, which is not filled."""
        return cls(np.empty((rows, 2 * len(positions))), positions)

    def part(self, rows: slice) -> "WantedIntervals":
        """Return a view of the intervals of some rows."""
        return WantedIntervals(self.bounds[rows], self.positions)


NO_INTERVALS: Final = WantedIntervals.empty(0, NO_POSITIONS)
"""Intervals that are not wanted."""


class Predictions(NamedTuple):
    """Predictions with the intervals of all or of the wanted coverages.

    Attributes
    ----------
    values : array of shape (n,)
        Predictions.
    bounds : array of shape (n, 2 * n_coverages)
        Intervals. If they are not wanted, it is empty.
    """

    values: Floats
    bounds: Bounds

    def part(self, rows: slice) -> "Predictions":
        """Return views of the predictions of some rows."""
        return Predictions(self.values[rows], self.bounds[rows])

    def select(self, positions: Floats) -> "Predictions":
        """Return the predictions with the intervals at positions, from the intervals of all coverages."""
        return Predictions(self.values, ConformalIntervals.select(self.bounds, positions))


class RowPredictions(NamedTuple):
    """Predictions of rows, each as if it were the next one, with what is needed to learn the rows later.

    Attributes
    ----------
    values : array of shape (n,)
        Predictions.
    bounds : array of shape (n, 2 * n_coverages)
        Intervals of all coverages; `intervals` selects from them.
    past : array of shape (n, n_past_features)
        Features of the past that the predictions used. There are none if the past is not used.
    """

    values: Floats
    bounds: Bounds
    past: Floats

    def intervals(self, coverage: float | Sequence[float]) -> "Intervals":
        """Return the intervals of given coverages."""
        return select_intervals(self.bounds, check_coverage(coverage))


class Intervals(NamedTuple):
    """Prediction intervals.

    Attributes
    ----------
    lower, upper : array of shape (n,), or (n, k) for a sequence of k coverages
        Ends of the intervals. The first two predictions of a learner have infinite ones.
    """

    lower: Floats
    upper: Floats


def check_coverage(coverage: float | Sequence[float]) -> Floats:
    """Return coverages as an array of one dimension, or of none for a single number; raise if one is out of range.

    Examples
    --------
    >>> check_coverage([0.5, 0.95]).tolist()
    [0.5, 0.95]
    >>> check_coverage(95)
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: coverage must be from 0.5 to 0.99, got 95.0
    """
    wanted = np.array(coverage) if type(coverage) is float else as_floats(coverage, "coverage")
    if wanted.ndim > 1 or not wanted.size:
        raise ShapeError(f"coverage must be a number or a sequence of numbers, got shape {wanted.shape}")
    for each in wanted.flat:
        if not COVERAGES[0] <= each <= COVERAGES[-1]:
            raise DomainError(f"coverage must be from {COVERAGES[0]} to {COVERAGES[-1]}, got {each}")
    return wanted


def check_bounds(bounds: ArrayLike, rows: int) -> Bounds:
    """Return the intervals of all coverages as an array; raise `InputError` unless there is one row per prediction."""
    ends = np.asarray(bounds, dtype=np.float64)
    if ends.shape != (rows, 2 * _COUNT):
        raise ShapeError(f"bounds must have shape ({rows}, {2 * _COUNT}), got {ends.shape}")
    if np.isnan(ends).any():
        raise DomainError("bounds must not be NaN")
    return ends


def coverage_positions(coverage: Floats) -> Floats:
    """Return the positions of coverages among those of the theorem, whose positions are 0, 1, 2 and so on.

    Between two coverages of the theorem, the position is linear in the quantile of a normal distribution.

    Parameters
    ----------
    coverage : array
        Result of `check_coverage`.

    Returns
    -------
    positions : array of shape (k,)

    Examples
    --------
    >>> coverage_positions(check_coverage([0.5, 0.8, 0.85])).round(2)
    array([0.  , 3.  , 3.43])
    """
    return np.array([_position(each) for each in coverage.ravel().tolist()])


@lru_cache
def _position(coverage: float) -> float:
    """Return the position of one coverage."""
    return float(np.interp(_quantile(coverage), _QUANTILES, ALL_POSITIONS))


def select_intervals(bounds: Bounds, coverage: Floats) -> Intervals:
    """Return the intervals of given coverages, from those of all coverages.

    Between two coverages of the theorem, ends are interpolated linearly; see `coverage_positions`.

    Parameters
    ----------
    bounds : array of shape (n, 2 * n_coverages)
        Intervals of all coverages.
    coverage : array
        Result of `check_coverage`.

    Returns
    -------
    intervals : Intervals

    Examples
    --------
    >>> bounds = np.concatenate([-np.arange(1.0, 9.0), np.arange(1.0, 9.0)])[None]
    >>> select_intervals(bounds, check_coverage(0.8))
    Intervals(lower=array([-4.]), upper=array([4.]))
    >>> select_intervals(bounds, check_coverage([0.5, 0.85])).upper.round(2)
    array([[1.  , 4.43]])
    """
    return split_bounds(ConformalIntervals.select(bounds, coverage_positions(coverage)), coverage)


def split_bounds(bounds: Bounds, coverage: Floats) -> Intervals:
    """Return intervals from their ends.

    Parameters
    ----------
    bounds : array of shape (n, 2 * k)
        Ends of the intervals of k coverages.
    coverage : array
        Result of `check_coverage` for these coverages.

    Returns
    -------
    intervals : Intervals
    """
    ends = bounds.reshape(len(bounds), 2, *coverage.shape)
    return Intervals(ends[:, 0], ends[:, 1])


def empty_predictions(rows: int, with_intervals: bool) -> Predictions:
    """Return arrays for predictions and, if wanted, their intervals, which are not filled."""
    return Predictions(np.empty(rows), np.empty((rows, 2 * _COUNT)) if with_intervals else NO_BOUNDS)


def with_widths(calibration: DeferredCalibration, moved: ConformalIntervals) -> DeferredCalibration:
    """Return a calibration with the widths of another, which was moved by labels and their published intervals."""
    intervals = calibration.intervals
    return DeferredCalibration(
        ConformalIntervals(
            intervals.mean_error,
            intervals.labels,
            moved.rounds,
            moved.widths,
            intervals.scale_losses,
            intervals.excess_misses,
        )
    )


def intervals_to_archive(intervals: ConformalIntervals) -> Archive:
    """Return an archive of the calibration."""
    facts = {
        "mean_error": intervals.mean_error,
        "labels": intervals.labels,
        "rounds": intervals.rounds,
        "excess_misses": intervals.excess_misses,
    }
    return Archive(facts, {"widths": intervals.widths, "scale_losses": intervals.scale_losses})


def intervals_from_archive(saved: Archive, rounds: int) -> ConformalIntervals:
    """Restore the calibration after a number of rounds from its archive; raise `ModelFileError` if it is not valid."""
    mean_error = saved.number_between(0.0, _MAX_ERROR, "mean_error")
    labels, counted = saved.integer("labels", 0, rounds), saved.integer("rounds", 0, rounds)
    narrowest, widest = ConformalIntervals.smallest_width, ConformalIntervals.largest_width
    widths = saved.floats_between(narrowest, widest, "widths", 2 * _COUNT)
    most_loss, most_excess = ConformalIntervals.largest_scale_loss, ConformalIntervals.largest_excess
    scale_losses = saved.floats_between(-most_loss, most_loss, "scale_losses", 3)
    excess_misses = saved.number_between(-most_excess, most_excess, "excess_misses")
    return ConformalIntervals(mean_error, labels, counted, widths, scale_losses, excess_misses)


def calibration_to_archive(calibration: DeferredCalibration) -> Archive:
    """Return an archive of the calibration, with the errors of deferred rounds."""
    saved = intervals_to_archive(calibration.calibrated)
    return Archive(saved.facts, {**saved.arrays, "deferred_errors": calibration.errors})


def calibration_from_archive(saved: Archive, rounds: int) -> DeferredCalibration:
    """Restore the calibration after a number of rounds from its archive; raise `ModelFileError` if it is not valid."""
    (count,) = saved.shape("deferred_errors", 1)
    if count > DeferredCalibration.most_errors:
        most = DeferredCalibration.most_errors
        raise ModelFileError(f"{saved.prefix}deferred_errors must have at most {most} entries, got {count}")
    errors = saved.floats_between(-_MAX_ERROR, _MAX_ERROR, "deferred_errors", count)
    return DeferredCalibration(intervals_from_archive(saved, rounds), errors)
