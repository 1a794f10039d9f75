"""Initial state of `MetricRegressor`."""

from typing import Final, NamedTuple

import numpy as np

from ellipack import validation
from ellipack._core import (
    BernsteinAggregation,
    CenterIndex,
    CenterMemory,
    ConformalIntervals,
    CoreParts,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricCore,
    MetricParts,
    MetricSettings,
    PackingExpert,
    PastFeatures,
    PastParts,
    StackedAggregation,
)
from ellipack.learners.aggregation import uniform_aggregation
from ellipack.learners.metric.column_groups import initial_importance
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.past import MAX_PAST_LABELS
from ellipack.learners.metric.state import (
    MIN_PHASE_ROUNDS,
    MetricState,
    PhaseState,
    SelectedMetrics,
    empty_gop,
    max_slopes,
)
from ellipack.learners.metric.subspace import MANY_FEATURES, initial_subspace
from ellipack.metric import Metric
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, check_integer

MAX_FEATURES: Final = validation.MAX_FEATURES
"""Largest number of features.

The regressions and the gradient outer product have one entry per pair of features: 0.2 GB each for 5,000 features. The
end of a phase needs about ten such matrices. With more features, signals would wait for more than a second.
"""

MAX_SEED: Final = 2**62
"""Largest random seed: the largest integer in files."""

_PAST_PRIOR = np.array([0.8, 0.2])  # initial weights without and with the past, whose learner is worse at first
_MAX_FIT_DIMENSION = 40  # of local linear fits
_MAX_NEIGHBORS = 512  # the cost of kriging is cubic in the number of neighbors
_MAX_CENTERS = 2**31 - 1  # positions in a kd-tree are 32-bit integers
_MAX_KEYS = 2**40
_DEFAULT_CENTERS, _DEFAULT_ENTRIES = 100_000, 6_000_000  # entries of rows, which take 48 MB
_MIN_PACKING_CENTERS = 64
_PACKING_DIVISOR = 4  # Algorithm 1 has at most max_centers // 4 centers


class LearnerSize(NamedTuple):
    """Parameters of a learner that determine its size.

    Attributes
    ----------
    views : int
        Number of views of the features, 1 or 2.
    neighbors : int
        Number of neighbors that kriging uses.
    max_centers : int
        Number of centers at which a quarter of them is evicted; there are always fewer.
    past_labels : int, default 0
        Number of last labels that the learner sees; 0 if it does not see the past.
    max_keys : int, default 0
        Number of keys whose labels are remembered; 0 if rows have no keys.
    """

    views: int
    neighbors: int
    max_centers: int
    past_labels: int = 0
    max_keys: int = 0

    def checked(self) -> "LearnerSize":
        """Return the same numbers as Python integers, or raise `DomainError` if one is out of range."""
        return LearnerSize(
            check_integer(self.views, "views", 1, 2),
            check_integer(self.neighbors, "neighbors", 2, _MAX_NEIGHBORS),
            check_integer(self.max_centers, "max_centers", 16, _MAX_CENTERS),
            check_integer(self.past_labels, "past", 0, MAX_PAST_LABELS),
            check_integer(self.max_keys, "max_keys", 0, _MAX_KEYS),
        )


def default_max_centers(d: int) -> int:
    """Return the default of `max_centers` for a number of features.

    Memory, and the time for the end of a phase, are proportional to centers times features.

    Examples
    --------
    >>> default_max_centers(10), default_max_centers(2_000)
    (100000, 3000)
    """
    return min(_DEFAULT_CENTERS, _DEFAULT_ENTRIES // d)


def check_feature_count(d: int) -> None:
    """Raise `DomainError` if there are too many features."""
    validation.check_feature_count(d, "MetricRegressor", MAX_FEATURES)


def initial_state(d: int, size: LearnerSize, random_state: int, config: MetricConfig) -> MetricState:
    """Return the initial state.

    Parameters
    ----------
    d : int
        Number of features.
    size : LearnerSize
        Numbers of views, neighbors and centers.
    random_state : int
        Random seed.
    config : MetricConfig
        Settings.

    Returns
    -------
    state : MetricState

    Raises
    ------
    DomainError
        If a number is out of range, or there are too many features.

    Examples
    --------
    >>> state = initial_state(3, LearnerSize(views=1, neighbors=8, max_centers=100), 0, MetricConfig())
    >>> state.clock, state.n_centers, state.phase.end
    (0, 0, 4)
    """
    check_feature_count(d)
    size, seed = size.checked(), check_integer(random_state, "random_state", 0, MAX_SEED)
    settings = MetricSettings(size.neighbors, size.max_centers, config.label_margin)
    plain, selected = _initial_learner(d, size.views, size.max_centers)
    past, past_selected = (None, None) if size.past_labels == 0 else _initial_past(d, size)
    importance, layout = initial_importance(tuple(range(d)), 0 if past is None else past.features.dimension, seed)
    core = MetricCore(settings, CoreParts(plain, past, importance if config.importance else None))
    return MetricState(PhaseState(core, selected, past_selected, MIN_PHASE_ROUNDS, (), layout), config, seed)


def _initial_past(d: int, size: LearnerSize) -> tuple[PastParts, SelectedMetrics]:
    """Return the initial state of the learner that sees the past, and its metrics.

    It also sees the features, unless there are many. Then the prediction from the features stands in for them.
    """
    none = np.zeros(0, dtype=np.int64)
    length = PastFeatures.history_size
    features = PastFeatures(size.past_labels, size.max_keys, np.zeros(length), none, np.zeros((0, length)))
    seen = features.dimension + (d if d <= MANY_FEATURES else 0)
    rounds, selected = _initial_learner(seen, size.views, size.max_centers)
    return PastParts(rounds, features, _initial_aggregation(_PAST_PRIOR), 0, (0, 0.0, 0.0), (0, 0.0, 0.0)), selected


def _initial_learner(d: int, views: int, max_centers: int) -> tuple[MetricParts, SelectedMetrics]:
    """Return the initial state of a learner that sees d features, and its metrics."""
    basis = initial_subspace(d)
    metric = Metric(np.ones(basis.shape[1]), basis, 1.0)
    none = np.zeros(d + 1)
    unknown = LeastSquares.from_low_rank(np.ones(d + 1), none, np.zeros((0, d + 1)), none)
    experts = len(expert_names(views))
    parts = MetricParts(
        views=[_initial_view(metric)] * views,
        centers=CenterMemory(np.zeros((0, d)), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)),
        packing=empty_packing(metric.eigenvalues, 1.0, max_centers),
        regressions=GlobalRegressions(unknown, unknown),
        aggregation=_initial_aggregation(np.full(experts, 1 / experts)),
        label_statistics=np.zeros(6),
        feature_statistics=np.zeros((5, d)),
        intervals=ConformalIntervals(),
        index=CenterIndex([np.zeros((0, metric.rank))] * views),
        clock=0,
    )
    return parts, SelectedMetrics((metric,) * views, ({},) * views)


def _initial_aggregation(weights: Floats) -> StackedAggregation:
    """Return an aggregation with these weights.

    The prior of the stack needs the variance of the labels, unknown so far. An inverse of 0 keeps the coefficients at 0
    until the first phase with different labels ends.
    """
    experts, none = len(weights), np.zeros(len(weights))
    return StackedAggregation(
        BernsteinAggregation(np.log(weights), none, none, 0.0),
        LeastSquares(np.zeros((experts, experts)), np.zeros(experts)),
        uniform_aggregation(2),
    )


def empty_packing(eigenvalues: Floats, coordinate_scale: float, max_centers: int) -> PackingExpert:
    """Return the initial state of Algorithm 1 as an expert.

    Parameters
    ----------
    eigenvalues : array of shape (rank,)
        Eigenvalues of the metric.
    coordinate_scale : float
        Divisor of whitened coordinates, which puts them into the unit ball.
    max_centers : int
        Number of centers at which the learner evicts a quarter of them.

    Returns
    -------
    packing : PackingExpert
    """
    none = np.zeros(0, dtype=np.int64)
    most = max_packing_centers(max_centers)
    coordinates = np.zeros((0, len(eigenvalues)))
    return PackingExpert(
        coordinates,
        np.zeros(0),
        none,
        none,
        rank_starts(eigenvalues),
        clock=0,
        coordinate_scale=coordinate_scale,
        max_centers=most,
    )


def max_packing_centers(max_centers: int) -> int:
    """Return the largest number of centers of Algorithm 1, which bounds its memory."""
    return max(_MIN_PACKING_CENTERS, max_centers // _PACKING_DIVISOR)


def max_fit_dimension(rank: int) -> int:
    """Return the largest number of coordinates for local linear fits."""
    return min(rank, _MAX_FIT_DIMENSION)


def _initial_view(metric: Metric) -> FeatureView:
    d = metric.dimension
    return FeatureView(
        np.zeros((0, d)),
        np.zeros(d),
        np.ones(d),
        metric.directions,
        empty_gop(d),
        max_fit_dimension(metric.rank),
        max_slopes(d, MIN_PHASE_ROUNDS),
    )
