"""Algorithm 1 with radii that adapt to the dimension of the manifold on which the rows lie.

Algorithm 1 needs the dimension for its radii: those of the ambient dimension stay large if rows lie on a manifold of a
lower one. This learner estimates the dimension D from the number of its own centers, as Kpotufe and Orabona [1]_ do. It
starts with D = 1. The radius in round t is ``t**(-1/(2+D))`` for labels with noise, as in their work, and
``t**(-1/(1+D))`` for arbitrary labels, as in Algorithm 1. A set of dimension D in the unit ball has at most
``(3/eps)**D`` points that are farther than eps apart. If the centers that were added since the last change of D are
more than that, the dimension is higher: D increases by 1. Centers and their labels are kept.

Kpotufe and Orabona build a new tree in each phase, and analyze independent rows. Here D grows by 1 at a time, and the
bound holds for any sequence of rows; see `ellipack.theory.manifolds`.

References
----------
.. [1] S. Kpotufe and F. Orabona. Regression-tree Tuning in a Streaming Setting. NeurIPS 2013.
"""

from typing import NamedTuple

from numpy.typing import ArrayLike

from ellipack._core import DeferredCalibration, IntrinsicDimensionCore
from ellipack.errors import ModelFileError
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals, calibration_from_archive, calibration_to_archive
from ellipack.learners.units import UnitChange, insert_features
from ellipack.learners.whitened import WhitenedState, add_features, check_positive_definite, predict, run_rounds
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats, Ints

__all__ = ["IntrinsicDimensionState", "add_features", "from_archive", "init", "learn", "predict", "to_archive"]

_ROUNDS_PER_CALL = 4096  # of the core; between calls, other threads can predict and interrupts are handled
_MAX_ROUNDS = 2**52  # in a file; floats represent them exactly
_SLACK = 1e-6  # tolerance for rounding errors


class DimensionArrays(NamedTuple):
    """State of the core: centers in order of their creation, the estimate of the dimension, and the calibration.

    Attributes
    ----------
    coordinates : array of shape (n_centers, d)
        Whitened coordinates.
    label_sums : array of float, shape (n_centers,)
        Sum of the labels.
    label_counts : array of int, shape (n_centers,)
        Number of labels.
    creation_rounds : array of int, shape (n_centers,)
        Round in which the center was added.
    offset : {1, 2}
        The radius is ``t**(-1/(offset + D))``.
    intrinsic_dimension : int
        Estimate D of the dimension.
    phase_centers : int
        Number of centers that were added since the last change of the estimate.
    calibration : DeferredCalibration
        Calibration of prediction intervals.
    """

    coordinates: Floats
    label_sums: Floats
    label_counts: Ints
    creation_rounds: Ints
    offset: int
    intrinsic_dimension: int
    phase_centers: int
    calibration: DeferredCalibration


class IntrinsicDimensionState(WhitenedState[IntrinsicDimensionCore]):
    """State of the learner. The core has what `DimensionArrays` lists, and the clock."""

    @property
    def arrays(self) -> DimensionArrays:
        """Copy of the state of the core."""
        return DimensionArrays(*self.core.to_arrays())

    def in_units(self, change: UnitChange) -> "IntrinsicDimensionState":
        """Return a copy in other units."""
        metric, core = self.parts
        arrays = DimensionArrays(*core.to_arrays())
        moved = arrays._replace(
            coordinates=change.convert_whitened(arrays.coordinates, metric),
            label_sums=change.convert_labels(arrays.label_sums, arrays.label_counts),
            calibration=arrays.calibration.in_units(change.label_slope),
        )
        return IntrinsicDimensionState(metric, IntrinsicDimensionCore(*moved))

    def with_added_features(self, count: int) -> "IntrinsicDimensionState":
        """Return a copy with features added as last columns, each with an eigenvalue of 1."""
        metric, arrays = self.metric, self.arrays
        inserted = arrays._replace(coordinates=insert_features(arrays.coordinates, metric, count))
        return IntrinsicDimensionState(metric.with_added_features(count), IntrinsicDimensionCore(*inserted))


def init(metric: Metric, offset: int) -> IntrinsicDimensionState:
    """Return the initial state.

    Parameters
    ----------
    metric : Metric
        Positive definite metric of spectral norm 1.
    offset : {1, 2}
        The radius is ``t**(-1/(offset + D))``.

    Returns
    -------
    state : IntrinsicDimensionState

    Examples
    --------
    >>> state = init(Metric.identity(2), offset=1)
    >>> learn(state, [[0.5, 0.0], [0.5, 0.1]], [0.25, 0.75]).tolist()
    [0.5, 0.25]
    """
    return IntrinsicDimensionState(check_positive_definite(metric), IntrinsicDimensionCore(metric.dimension, offset))


def learn(
    state: IntrinsicDimensionState, X: ArrayLike, y: ArrayLike, intervals: WantedIntervals = NO_INTERVALS
) -> Floats:
    """Run one round for each row: predict, then learn the label. See `run_rounds`."""
    return run_rounds(state, X, y, IntrinsicDimensionCore.learn, _ROUNDS_PER_CALL, intervals)


def to_archive(state: IntrinsicDimensionState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    metric, core = state.parts
    saved = DimensionArrays(*core.to_arrays())
    facts = {
        "offset": saved.offset,
        "intrinsic_dimension": saved.intrinsic_dimension,
        "phase_centers": saved.phase_centers,
    }
    arrays = {
        "coordinates": saved.coordinates,
        "label_sums": saved.label_sums,
        "label_counts": saved.label_counts,
        "creation_rounds": saved.creation_rounds,
    }
    return Archive(facts).with_parts(
        metric=metric.to_archive().copy(),
        centers=Archive(arrays=arrays),
        intervals=calibration_to_archive(saved.calibration),
    )


def from_archive(saved: Archive, d: int) -> IntrinsicDimensionState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.

    Returns
    -------
    state : IntrinsicDimensionState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    metric, centers = Metric.from_archive(saved.part("metric"), d), saved.part("centers")
    count = centers.shape("coordinates", 2)[0]
    if count == 0:
        raise ModelFileError(f"{centers.prefix}coordinates must not be empty")
    arrays = DimensionArrays(
        coordinates=centers.floats_between(-1.0 - _SLACK, 1.0 + _SLACK, "coordinates", count, d),
        label_sums=centers.floats("label_sums", count),
        label_counts=centers.counts("label_counts", count, _MAX_ROUNDS, least=1),
        creation_rounds=centers.ints("creation_rounds", count, least=1, most=_MAX_ROUNDS),
        offset=saved.integer("offset", 1, 2),
        intrinsic_dimension=saved.integer("intrinsic_dimension", 1, d),
        phase_centers=saved.integer("phase_centers", 0, count),
        calibration=calibration_from_archive(saved.part("intervals"), _MAX_ROUNDS),
    )
    if (arrays.label_sums < 0).any() or (arrays.label_sums > arrays.label_counts * (1 + _SLACK)).any():
        raise ModelFileError(f"{centers.prefix}label_sums must be sums of labels in [0, 1]")
    try:
        return IntrinsicDimensionState(metric, IntrinsicDimensionCore(*arrays))
    except ValueError as error:
        raise ModelFileError(f"{centers.prefix}{error}") from error
