"""
Compiled core of ellipack: arrays, rounds, neighbor search and scoring.
"""

from collections.abc import Sequence
from typing import Annotated, Final, overload

import numpy
from numpy.typing import NDArray


class BernsteinAggregation:
    """Bernstein online aggregation of experts."""

    def __init__(self, log_priors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], gains: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], squares: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: float) -> None: ...

    @property
    def log_priors(self) -> NDArray[numpy.float64]: ...

    @property
    def gains(self) -> NDArray[numpy.float64]: ...

    @property
    def squares(self) -> NDArray[numpy.float64]: ...

    @property
    def scale(self) -> float: ...

    def weights(self) -> NDArray[numpy.float64]:
        """Return the weights of the experts, which add up to 1."""

    def update(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], prediction: float, label: float) -> None:
        """
        Update by the label of a round in which the experts predicted `predictions` and the aggregation `prediction`.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

class LeastSquares:
    """Recursive least squares."""

    def __init__(self, inverse: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @staticmethod
    def from_low_rank(variances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], link: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> LeastSquares:
        """
        Return the regression whose inverse is `diag(variances) + link link' - rows' rows`.
        """

    @property
    def inverse(self) -> NDArray[numpy.float64]: ...

    @property
    def coefficients(self) -> NDArray[numpy.float64]: ...

    def convert(self, ratio: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Convert the regression to rescaled features. The old features are `ratio * new + shift`; the last one is the constant, with a ratio and a shift of 1.
        """

    def update(self, features: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: float) -> None:
        """Update the regression by one row."""

    def discount(self, span: float) -> None:
        """
        Discount the past: rows that are `span` rounds old keep the fraction 1/e of their weight.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

class StackedAggregation:
    """Aggregation of experts, a stack that corrects it, and weights of both."""

    def __init__(self, experts: BernsteinAggregation, stack: LeastSquares, top: BernsteinAggregation) -> None: ...

    @property
    def experts(self) -> BernsteinAggregation: ...

    @property
    def stack(self) -> LeastSquares: ...

    @property
    def top(self) -> BernsteinAggregation: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class ConformalIntervals:
    """Prediction intervals by adaptive conformal inference."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, mean_error: float, labels: int, rounds: int, widths: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale_losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], excess_misses: float) -> None: ...

    coverages: Final[NDArray[numpy.float64]] = ...
    """Coverages of the intervals, in ascending order."""

    smallest_width: Final[float] = ...
    """Smallest width, in units of the scale."""

    largest_width: Final[float] = ...
    """Largest width."""

    largest_scale_loss: Final[float] = ...
    """Largest loss in size."""

    largest_excess: Final[float] = ...
    """Largest `excess_misses` in size."""

    @property
    def mean_error(self) -> float: ...

    @property
    def labels(self) -> int: ...

    @property
    def rounds(self) -> int: ...

    @property
    def widths(self) -> NDArray[numpy.float64]:
        """
        Widths of the lower sides, then of the upper ones, in units of the scale.
        """

    @property
    def scale_losses(self) -> NDArray[numpy.float64]:
        """
        Losses of the powers 0, 1/2 and 1 of the relative scale in the last rounds.
        """

    @property
    def excess_misses(self) -> float: ...

    @staticmethod
    def select(bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return the intervals at positions among the coverages, from those of all coverages. The position 3.25 is a quarter of the way from the interval of index 3 to the next.
        """

    def around(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], relative_scale: float = 1.0) -> NDArray[numpy.float64]:
        """Return the intervals around predictions: lower ends, then upper ends."""

    def learn_label(self, label: float, published: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Move the widths by a label and the intervals that were published for it.
        """

    def learn_error(self, error: float, relative_scale: float) -> None:
        """
        Add the error of a prediction to the mean error and to the losses of relative scales.
        """

    def learn(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return the intervals around predictions, and learn their labels one after the other.
        """

    def learn_misses(self, label: float, published: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """
        Add how many of the published intervals a label missed, by which the scale is changed.
        """

    def __eq__(self, other: object, /) -> bool: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class DeferredCalibration:
    """Calibration of intervals that is put off until they are asked for."""

    @overload
    def __init__(self) -> None: ...

    @overload
    def __init__(self, calibrated: ConformalIntervals) -> None: ...

    @overload
    def __init__(self, calibrated: ConformalIntervals, errors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    most_errors: Final[int] = ...
    """Largest number of errors."""

    @property
    def calibrated(self) -> ConformalIntervals:
        """Calibration without the deferred rounds."""

    @property
    def errors(self) -> NDArray[numpy.float64]:
        """Errors of the deferred rounds, from the oldest to the newest."""

    @property
    def intervals(self) -> ConformalIntervals:
        """Calibration after the deferred rounds."""

    def learn(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return the intervals around predictions, and learn their labels one after the other, all after the deferred rounds.
        """

    def defer(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Defer one round for each prediction and its label."""

    def in_units(self, slope: float) -> DeferredCalibration:
        """Return the calibration for labels that are multiplied by a slope."""

    def __eq__(self, other: object, /) -> bool: ...

    def __reduce__(self) -> tuple[object, ...]: ...

def project(rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], directions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    Return rows @ directions. The order of each sum is fixed, so that results do not depend on batches.
    """

class DifferenceEstimator:
    """
    Gradient estimator of appendix A: central differences of a kernel regression.
    """

    def __init__(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bandwidth_and_step: tuple[float, float], mass_threshold: float, powers: tuple[int, int]) -> None: ...

    def build_index(self) -> None:
        """
        Build a kd-tree, so that each anchor visits only rows in the support of its kernels. Results do not change.
        """

    def gradients(self, anchors: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.float64], NDArray[numpy.bool_]]:
        """
        Return the gradient at each anchor, and for each entry whether both shifted balls contain enough rows.
        """

def local_slopes(tree: KdTree, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], neighbors: int, ridge: float) -> NDArray[numpy.float64]:
    """
    Return the slope of a weighted ridge regression on the nearest points of each query.
    """

class FeatureGroup:
    """Features that are replaced together, and what was measured."""

    def __init__(self, features: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], uses_past: bool, priority: float, count: int, fraction: float, change: tuple[float, float], size: tuple[float, float], sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    sum_count: Final[int] = ...
    """Number of sums over all rounds."""

    @property
    def features(self) -> NDArray[numpy.int64]: ...

    @property
    def uses_past(self) -> bool: ...

    @property
    def priority(self) -> float: ...

    @property
    def count(self) -> int: ...

    @property
    def fraction(self) -> float: ...

    @property
    def change(self) -> tuple[float, float]:
        """Weight and mean of the changes of the surrogates."""

    @property
    def size(self) -> tuple[float, float]:
        """Weight and mean of the size of the rises."""

    @property
    def differing(self) -> tuple[float, float]:
        """
        Number of rounds, and the fraction of those in which the earlier row had different values.
        """

    @property
    def sums(self) -> NDArray[numpy.float64]:
        """Sums over all rounds and over the recent ones."""

    @property
    def estimate(self) -> tuple[float, float, float]:
        """
        Estimate of the mean rise, its variance and the effective number of measurements.
        """

    @property
    def recent_estimate(self) -> tuple[float, float, float]:
        """The same over the recent rounds."""

    def __reduce__(self) -> tuple[object, ...]: ...

class ImportanceParts:
    """What was measured about the importance of columns."""

    def __init__(self, seed: int, groups: Sequence[FeatureGroup], seen: int, sample: tuple[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]], errors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], last_row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], moves: tuple[Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]], slope_model: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    max_rows: Final[int] = ...
    """Largest number of rows of the sample."""

    @property
    def seed(self) -> int: ...

    @property
    def groups(self) -> list[FeatureGroup]: ...

    @property
    def seen(self) -> int: ...

    @property
    def dimension(self) -> int:
        """Number of features."""

    @property
    def past_dimension(self) -> int:
        """Number of features of the past."""

    def with_slope_model(self, view: FeatureView) -> ImportanceParts:
        """
        Return the same with the regression of the gradients on the rows, in the units of a view.
        """

    def with_groups(self, groups: Sequence[FeatureGroup]) -> ImportanceParts:
        """Return the same with other groups."""

    @property
    def sample(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.float64]]:
        """Earlier rows, the gradients at them, and their features of the past."""

    @property
    def errors(self) -> NDArray[numpy.float64]:
        """
        Weight and mean of the squared errors of all rounds, the same of the recent ones, and the factor by which the weights of recent measurements are still to be multiplied.
        """

    @property
    def last_row(self) -> NDArray[numpy.float64]: ...

    @property
    def moves(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        """Numbers of increases and decreases of each feature."""

    @property
    def slope_model(self) -> NDArray[numpy.float64]:
        """
        Regression of the gradients on the standardized rows, one row per feature, then the intercepts; may be empty.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

def standardized_columns(centers: CenterMemory, most: int) -> NDArray[numpy.float64]:
    """
    Return mean rounds, mean labels and each feature of some centers, evenly spaced: rows of mean 0 and length 1, 0 for constants.
    """

def rank_correlation(one: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], other: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """
    Return the correlation of the ranks of two arrays, 0 if one of them is constant.
    """

class IntrinsicDimensionCore:
    """
    Algorithm 1 in whitened coordinates, with radii that adapt to the dimension of the rows. Threads may predict while one learns.
    """

    @overload
    def __init__(self, dimension: int, offset: int) -> None: ...

    @overload
    def __init__(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], creation_rounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: int, intrinsic_dimension: int, phase_centers: int, calibration: DeferredCalibration = ...) -> None: ...

    @property
    def calibration(self) -> DeferredCalibration:
        """Calibration of prediction intervals."""

    @calibration.setter
    def calibration(self, arg: DeferredCalibration, /) -> None: ...

    def learn(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def predict(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def copy(self) -> IntrinsicDimensionCore:
        """Return an independent copy."""

    def __deepcopy__(self, memo: object) -> IntrinsicDimensionCore: ...

    def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], int, int, int, DeferredCalibration]:
        """
        Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, offset, intrinsic_dimension, phase_centers and calibration.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

    @property
    def dimension(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def size(self) -> int:
        """Number of centers."""

    @property
    def clock(self) -> int:
        """Number of rounds."""

    @property
    def intrinsic_dimension(self) -> int:
        """Estimate of the dimension of the rows."""

class KdTree:
    """
    Exact nearest neighbor index: a kd-tree over points with float64 coordinates.
    """

    def __init__(self, dimension: int) -> None:
        """Create a tree without points."""

    @staticmethod
    def build(points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> KdTree:
        """Build a balanced tree over points, one per row."""

    def insert(self, points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None:
        """Insert points, one per row, at the next positions."""

    def copy(self) -> KdTree:
        """Return an independent copy."""

    def points(self) -> NDArray[numpy.float64]:
        """
        Return the coordinates of all points, one per row, in the order of insertion.
        """

    def __len__(self) -> int: ...

    @property
    def dimension(self) -> int:
        """Number of coordinates."""

    @property
    def memory_bytes(self) -> int:
        """Memory of all arrays in bytes, including reserved memory."""

    @property
    def leaf_count(self) -> int:
        """Number of leaves."""

    @property
    def depth(self) -> int:
        """Number of splits above the deepest leaf."""

    def nearest(self, queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]:
        """Return positions and squared distances of the nearest points."""

    def k_nearest(self, queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], k: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]:
        """
        Return sorted positions and squared distances of the k nearest points, padded with -1 and inf.
        """

    def within(self, queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], radius_squared: float) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.float64]]:
        """
        Return offsets, positions and squared distances of all points within a radius, sorted for each query.
        """

    def nearest_later_in_leaf(self, points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> tuple[NDArray[numpy.int64], NDArray[numpy.float64]]:
        """
        Return positions and squared distances of the nearest later point in the same leaf, -1 and inf if none.
        """

    def leaf_positions(self, leaf: int) -> NDArray[numpy.int32]:
        """Return the positions of the points in a leaf."""

    def near_leaves(self, query: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius_squared: float) -> NDArray[numpy.int32]:
        """Return the leaves that pass the filter of boxes."""

    def near_in_leaf(self, leaf: int, query: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], radius_squared: float) -> NDArray[numpy.int32]:
        """
        Return the positions of the points in a leaf that pass the filter of codes.
        """

    def check(self) -> None:
        """Raise RuntimeError unless all invariants of the tree hold."""

def local_predictions(squared_distances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], ages: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], trend: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], forgetting_trend: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], neighbors: int, fit_dimension: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """
    Return the predictions of all local experts from one neighborhood, and the slope of the first linear fit.
    """

def factor_double(systems: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
    """
    Return the Cholesky factors of interleaved positive definite matrices: entry (i, j, k) belongs to matrix k. Columns beyond the matrix are right-hand sides.
    """

def factor_single(systems: Annotated[NDArray[numpy.float32], dict(shape=(None, None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float32]:
    """
    Return the Cholesky factors of interleaved positive definite matrices: entry (i, j, k) belongs to matrix k. Columns beyond the matrix are right-hand sides.
    """

class FeatureView:
    """View of the features with a metric."""

    def __init__(self, knots: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], shift: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], directions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], gop: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], fit_dimension: int, max_slopes: int = 0) -> None: ...

    largest_standard: Final[float] = ...
    """Largest standardized feature in size."""

    @property
    def knots(self) -> NDArray[numpy.float64]: ...

    @property
    def shift(self) -> NDArray[numpy.float64]: ...

    @property
    def scale(self) -> NDArray[numpy.float64]: ...

    @property
    def directions(self) -> NDArray[numpy.float64]: ...

    @property
    def gop(self) -> NDArray[numpy.float64]:
        """
        Sum of outer products of slopes, or at most `max_slopes` slopes, one per row.
        """

    @property
    def fit_dimension(self) -> int: ...

    @property
    def max_slopes(self) -> int: ...

    def standardize(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """Return standardized rows."""

    def convert_gop(self, ratio: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """Return `gop` in units that are `ratio` times as large."""

    def __reduce__(self) -> tuple[object, ...]: ...

class CenterMemory:
    """Centers, shared by all views."""

    def __init__(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], round_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], error_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def rows(self) -> NDArray[numpy.float64]: ...

    @property
    def dimension(self) -> int:
        """Number of features."""

    @property
    def label_sums(self) -> NDArray[numpy.float64]: ...

    @property
    def label_counts(self) -> NDArray[numpy.int64]: ...

    @property
    def round_sums(self) -> NDArray[numpy.float64]: ...

    @property
    def error_sums(self) -> NDArray[numpy.float64]: ...

    def __len__(self) -> int: ...

    def take(self, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> CenterMemory:
        """Return some of the centers."""

    def project(self, view: FeatureView, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], directions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return the products of some of the centers, standardized by a view, and directions.
        """

    def replace(self, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], others: CenterMemory) -> CenterMemory:
        """Return centers of which some are replaced by others."""

    def append(self, others: CenterMemory) -> CenterMemory:
        """Return these centers and others."""

    def __reduce__(self) -> tuple[object, ...]: ...

class CenterIndex:
    """
    Index of centers by their coordinates in each view. Copies share it until one changes.
    """

    def __init__(self, coordinates: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]]) -> None: ...

    @property
    def coordinates(self) -> list[NDArray[numpy.float64]]:
        """Coordinates of the centers in each view."""

    def take(self, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> list[NDArray[numpy.float64]]:
        """Return the coordinates of some of the centers in each view."""

    def append(self, coordinates: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]]) -> CenterIndex:
        """Return an index with more centers."""

    def __reduce__(self) -> tuple[object, ...]: ...

class PackingExpert:
    """State of Algorithm 1 as an expert."""

    def __init__(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], creation_rounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], clock: int, coordinate_scale: float, max_centers: int) -> None: ...

    @property
    def coordinates(self) -> NDArray[numpy.float64]: ...

    @property
    def label_sums(self) -> NDArray[numpy.float64]: ...

    @property
    def label_counts(self) -> NDArray[numpy.int64]: ...

    @property
    def creation_rounds(self) -> NDArray[numpy.int64]: ...

    @property
    def rank_starts(self) -> NDArray[numpy.int64]: ...

    @property
    def clock(self) -> int: ...

    @property
    def coordinate_scale(self) -> float: ...

    @property
    def max_centers(self) -> int: ...

    def at_round(self, clock: int) -> PackingExpert:
        """Return the same state in another round."""

    def __reduce__(self) -> tuple[object, ...]: ...

class GlobalRegressions:
    """Ridge regressions on all features, without and with forgetting."""

    def __init__(self, ridge: LeastSquares, forgetting: LeastSquares) -> None: ...

    @property
    def ridge(self) -> LeastSquares: ...

    @property
    def forgetting(self) -> LeastSquares: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class MetricParts:
    """State of a learner with a metric."""

    def __init__(self, views: Sequence[FeatureView], centers: CenterMemory, packing: PackingExpert, regressions: GlobalRegressions, aggregation: StackedAggregation, label_statistics: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], feature_statistics: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], intervals: ConformalIntervals, index: CenterIndex, clock: int) -> None: ...

    @property
    def views(self) -> list[FeatureView]: ...

    @property
    def centers(self) -> CenterMemory: ...

    @property
    def packing(self) -> PackingExpert: ...

    @property
    def regressions(self) -> GlobalRegressions: ...

    @property
    def aggregation(self) -> StackedAggregation: ...

    @property
    def label_statistics(self) -> NDArray[numpy.float64]: ...

    @property
    def feature_statistics(self) -> NDArray[numpy.float64]: ...

    @property
    def intervals(self) -> ConformalIntervals: ...

    @property
    def clock(self) -> int: ...

    @property
    def index(self) -> CenterIndex: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class PastFeatures:
    """Features that summarize earlier labels."""

    def __init__(self, labels: int, max_keys: int, stream: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], histories: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    history_size: Final[int] = ...
    """Number of values of a history."""

    max_labels: Final[int] = ...
    """Largest number of last labels."""

    largest_value: Final[float] = ...
    """Largest feature in size."""

    @property
    def labels(self) -> int: ...

    @property
    def max_keys(self) -> int: ...

    @property
    def dimension(self) -> int:
        """Number of features."""

    @property
    def stream(self) -> NDArray[numpy.float64]:
        """History of the stream: count, mean, error, labels."""

    @property
    def keys(self) -> NDArray[numpy.int64]:
        """Keys, in the order in which they were learned last."""

    @property
    def histories(self) -> NDArray[numpy.float64]:
        """History of each key."""

    def add(self, key: int, label: float, prediction: float) -> None:
        """Learn the label of a row."""

    def __reduce__(self) -> tuple[object, ...]: ...

class PastParts:
    """State of the learner that sees the past."""

    def __init__(self, rounds: MetricParts, features: PastFeatures, combination: StackedAggregation, active_from: int, active_errors: tuple[int, float, float], total_errors: tuple[int, float, float]) -> None: ...

    @property
    def rounds(self) -> MetricParts: ...

    @property
    def features(self) -> PastFeatures: ...

    @property
    def combination(self) -> StackedAggregation: ...

    @property
    def active_from(self) -> int: ...

    @property
    def active_errors(self) -> tuple[int, float, float]:
        """
        Rounds of this phase that used the past, and sums of squared errors without and with it.
        """

    @property
    def total_errors(self) -> tuple[int, float, float]:
        """The same for all rounds."""

    def __reduce__(self) -> tuple[object, ...]: ...

class CoreParts:
    """Complete state of a MetricCore."""

    def __init__(self, plain: MetricParts, past: PastParts | None, importance: ImportanceParts | None = None) -> None: ...

    @property
    def plain(self) -> MetricParts: ...

    @property
    def past(self) -> PastParts | None: ...

    @property
    def importance(self) -> ImportanceParts | None: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class MetricSettings:
    """Settings of a MetricCore."""

    def __init__(self, neighbors: int, max_centers: int, label_margin: float) -> None: ...

    @property
    def neighbors(self) -> int: ...

    @property
    def max_centers(self) -> int: ...

    @property
    def past_max_centers(self) -> int:
        """Number of centers at which the learner that sees the past evicts some."""

    @property
    def label_margin(self) -> float: ...

    def __reduce__(self) -> tuple[object, ...]: ...

class MetricCore:
    """Rounds of MetricRegressor within a phase."""

    def __init__(self, settings: MetricSettings, parts: CoreParts) -> None: ...

    @property
    def settings(self) -> MetricSettings: ...

    @property
    def dimension(self) -> int: ...

    @property
    def has_past(self) -> bool:
        """Whether the core sees the past."""

    @property
    def past_labels(self) -> int:
        """Number of last labels that the core sees."""

    @property
    def has_keys(self) -> bool:
        """Whether rows have keys."""

    @property
    def clock(self) -> int:
        """Number of rounds."""

    def __len__(self) -> int: ...

    def expert_weights(self) -> NDArray[numpy.float64]:
        """Return the weight of each expert in the aggregation; they add up to 1."""

    def feature_scales(self) -> NDArray[numpy.float64]:
        """Return the scale of each feature in the first view."""

    def past_feature_scales(self) -> NDArray[numpy.float64]:
        """Return the same for the learner that sees the past."""

    def past_errors(self) -> tuple[int, float, float]:
        """
        Return the number of rounds, and the sums of squared errors without and with the past.
        """

    def parts(self) -> CoreParts:
        """Return a copy of all parts."""

    def accepts_rows(self, rows: NDArray[numpy.generic]) -> bool:
        """
        Return whether an array contains valid rows that need no conversion: finite doubles in C order, not too large.
        """

    def accepts_rounds(self, rows: NDArray[numpy.generic], labels: NDArray[numpy.generic]) -> bool:
        """
        Return whether arrays contain valid rows and as many valid labels, and need no conversion.
        """

    def predict(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], threads: int = 1) -> None:
        """
        Fill in the prediction for each row and, unless `bounds` is empty, its intervals, all from the same state.
        """

    def past_features(self) -> PastFeatures:
        """Return a copy of the past."""

    def predict_next(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], features: PastFeatures | None, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], follows_unknown: bool) -> None:
        """
        Fill in the prediction for each of the rows that follow, one after the other, and unless `bounds` is empty, its intervals. `features` holds the past before them, and is updated; None stands for a copy of that of the core. A label that is NaN is unknown, and the prediction stands in for it. `follows_unknown` tells whether the label before the first row is unknown.
        """

    def learn(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], keys: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], plain_predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None, plain_bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, first: int = 0, count: int | None = None, phase_end: int = 9223372036854775807) -> int:
        """
        Run one round for each of `count` rows from `first` on, by default for all. Fill in the predictions and, unless `bounds` is empty, their intervals. Fill in the predictions from the features alone, too, unless `plain_predictions` is None. Stop before the round `phase_end`, and before a round that would fill the memory. Return the number of rounds run.
        """

    def expert_predictions(self, row: Sequence[float]) -> tuple[NDArray[numpy.float64], tuple[float, float]]:
        """
        Return the predictions of all experts for a row from the features alone, and those of the aggregation and the stack.
        """

    def predict_one(self, row: Sequence[float]) -> float:
        """Return the prediction for a row from the features alone."""

    def predict_next_one(self, row: Sequence[float], key: int = 0) -> tuple[float, list[float]]:
        """
        Return the prediction of the row that follows, and the features of the past that it used.
        """

    def predict_next_interval_one(self, row: Sequence[float], key: int = 0) -> tuple[float, list[float], list[float]]:
        """Return the same, and the intervals of the prediction."""

    def learn_one(self, row: Sequence[float], label: float, key: int = 0, past: Sequence[float] = [], bounds: Sequence[float] = []) -> bool:
        """
        Run a round. Return False, without a change, if the round would fill the memory. If the label comes late, `past` has the features of the past at the time of the prediction, and `bounds` its intervals.
        """

    def round_on_copy(self, row: Sequence[float], label: float, key: int = 0, past: Sequence[float] = [], bounds: Sequence[float] = []) -> tuple[CoreParts, float, list[float]]:
        """
        Return the parts after one more round, its prediction and its intervals, without changing the core.
        """

    def round_before_refit(self, row: Sequence[float], label: float, key: int = 0, past: Sequence[float] = [], bounds: Sequence[float] = []) -> tuple[CoreParts, float, list[float]]:
        """
        Do the same as `round_on_copy`, but return empty global regressions, which must be fitted again. With many features, it is faster.
        """

    def copy(self) -> MetricCore:
        """Return an independent copy."""

    def __reduce__(self) -> tuple[object, ...]: ...

class LeaveOneOutScorer:
    """Leave-one-out scores of candidate metrics."""

    def __init__(self, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], validation: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], neighbors: int) -> None: ...

    def score(self, projected: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scales: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
        """
        Return the sum of squared errors for the coordinates `projected * scales`.
        """

class PackingCore:
    """
    Algorithm 1 in whitened coordinates. Threads may predict while one learns.
    """

    @overload
    def __init__(self, dimension: int, rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], creation_rounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], clock: int, calibration: DeferredCalibration = ...) -> None: ...

    @property
    def calibration(self) -> DeferredCalibration:
        """Calibration of prediction intervals."""

    @calibration.setter
    def calibration(self, arg: DeferredCalibration, /) -> None: ...

    def learn(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], keep_founding_label: bool, bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def predict(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def copy(self) -> PackingCore:
        """Return an independent copy."""

    def __deepcopy__(self, memo: object) -> PackingCore: ...

    def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], int, DeferredCalibration]:
        """
        Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, rank_starts, clock and calibration.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

    @property
    def coordinates(self) -> NDArray[numpy.float64]:
        """Whitened coordinates of the centers, one per row."""

    @property
    def label_sums(self) -> NDArray[numpy.float64]:
        """Sum of the labels of each center."""

    @property
    def label_counts(self) -> NDArray[numpy.int64]:
        """Number of labels of each center."""

    @property
    def creation_rounds(self) -> NDArray[numpy.int64]:
        """Round in which each center was added."""

    @property
    def rank_starts(self) -> NDArray[numpy.int64]:
        """Rounds in which the effective rank increases."""

    @property
    def dimension(self) -> int: ...

    @property
    def size(self) -> int:
        """Number of centers."""

    @property
    def clock(self) -> int:
        """Number of rounds."""

class UnitBox:
    """
    Ranges of the features and of the label. An empty range has low > high.
    """

    def __init__(self, low: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], high: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def first_outside(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], start: int) -> int:
        """
        Return the first row from `start` on that is outside of the box or has a label outside, or the number of rows.
        """

    def rows_to_units(self, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return rows scaled into the unit ball. Rows outside of the box are clipped to its edge.
        """

    def labels_to_units(self, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """Return labels scaled to [0, 1]."""

    def labels_from_units(self, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Return labels in their own units, given scaled labels; 0 before the first label.
        """

    def bounds_from_units(self, predictions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """
        Convert the intervals of scaled predictions to units of the label, in place.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

    @property
    def low(self) -> NDArray[numpy.float64]: ...

    @property
    def high(self) -> NDArray[numpy.float64]: ...

    @property
    def label(self) -> NDArray[numpy.float64]:
        """Lower and upper end of the range of labels."""

class RescaledPacking:
    """Algorithm 1 on single rows, scaled by a box."""

    def __init__(self, core: PackingCore, box: UnitBox, directions: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    def predict(self, row: Sequence[float]) -> float:
        """
        Return the prediction for a row. A row outside of the box is clipped to its edge.
        """

    def learn(self, row: Sequence[float], label: float, keep_founding_label: bool) -> bool:
        """
        Run a round. Return False, without a change, if the row or its label is outside of the box.
        """

class PackingClassifierCore:
    """
    Mistake-driven classification in whitened coordinates. Threads may predict while one learns.
    """

    @overload
    def __init__(self, dimension: int, rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], packings: int, ball_clocks: bool) -> None: ...

    @overload
    def __init__(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], creation_rounds: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], sizes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], ball_clocks: bool) -> None: ...

    def learn(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """
        Run one round per row, where `labels` holds the packing of the class of each row, or -1. Return the predictions (row, packing), each made before its label was learned.
        """

    def predict(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]:
        """Return the predictions (row, packing); 1/2 before the first mistake."""

    def copy(self) -> PackingClassifierCore:
        """Return an independent copy."""

    def __deepcopy__(self, memo: object) -> PackingClassifierCore: ...

    def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64], bool]:
        """
        Return the arguments of an equal core: coordinates, label_sums, label_counts, creation_rounds, sizes, rank_starts and ball_clocks.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

    @property
    def mistakes(self) -> NDArray[numpy.int64]:
        """Number of mistakes of each packing."""

    @property
    def packing_count(self) -> int: ...

    @property
    def dimension(self) -> int: ...

    @property
    def ball_clocks(self) -> bool:
        """Whether the radius of a ball depends on its own mistakes."""

class PackingTreeCore:
    """
    Locally adaptive regression in whitened coordinates. Threads may predict while one learns.
    """

    @overload
    def __init__(self, lipschitz: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dimensions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, points: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], parents: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], label_counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], log_weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lipschitz: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dimensions: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rank_starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], calibration: DeferredCalibration = ...) -> None: ...

    @property
    def calibration(self) -> DeferredCalibration:
        """Calibration of prediction intervals."""

    @calibration.setter
    def calibration(self, arg: DeferredCalibration, /) -> None: ...

    def learn(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Run one round per row. Return the predictions, each made before its label was learned, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def predict(self, coordinates: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bounds: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None = None, positions: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]:
        """
        Return the prediction for each row, 1/2 before the first round, and fill `bounds` with their intervals at `positions` among the coverages.
        """

    def copy(self) -> PackingTreeCore:
        """Return an independent copy."""

    def __deepcopy__(self, memo: object) -> PackingTreeCore: ...

    def to_arrays(self) -> tuple[NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.float64], NDArray[numpy.float64], NDArray[numpy.int64], NDArray[numpy.int64], DeferredCalibration]:
        """
        Return the arguments of an equal core: points, parents, label_sums, label_counts, log_weights, lipschitz, dimensions, rank_starts and calibration.
        """

    def __reduce__(self) -> tuple[object, ...]: ...

    @property
    def dimension(self) -> int: ...

    @property
    def size(self) -> int:
        """Number of nodes."""

    @property
    def clock(self) -> int:
        """Number of rounds."""

def all_between(array: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], least: float, most: float) -> bool:
    """
    Return whether all entries of an array are finite and from `least` to `most`.
    """

def close_fork_gate() -> None:
    """
    Wait until no thread is in a core, and keep threads out until the gate is open.
    """

def open_fork_gate() -> None:
    """Open the gate in the parent after a fork."""

def open_fork_gate_in_child() -> None:
    """Open the gate in a forked child."""
