"""State of `MetricRegressor`: the compiled core, and what Python decides between phases."""

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

from ellipack._core import (
    CenterMemory,
    ExpertAggregation,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricCore,
    MetricParts,
    MetricSettings,
    PackingExpert,
    project,
)
from ellipack.learners.aggregation import uniform_aggregation
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.metric_selection import CandidateScores
from ellipack.learners.metric.subspace import initial_subspace
from ellipack.metric import Metric
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, check_integer

MEAN, SQUARES, LOW, HIGH, OUTLIERS, COUNT = range(6)
"""Rows of the statistics of features, and entries of the statistics of labels.

Mean, sum of squared deviations, minimum, maximum, number of outliers in the phase plus half of the number before, and,
for labels only, the number of labels that were not outliers.
"""

MIN_PHASE_ROUNDS = 4
"""Number of rounds of the first phase, in which features are not standardized, and minimum for the others."""

_MAX_FIT_DIMENSION = 40  # of local linear fits
_MAX_NEIGHBORS = 512  # the cost of kriging is cubic in the number of neighbors
_MIN_PACKING_CENTERS = 64
_PACKING_DIVISOR = 4  # Algorithm 1 has at most max_centers // 4 centers


class PhaseSummary(NamedTuple):
    """Summary of a finished phase. Its metric was selected at the end of the phase and is used in the next one.

    Attributes
    ----------
    number : int
        Number of the phase, from 1.
    end : int
        Its last round.
    n_centers : int
        Number of centers at its end.
    eigenvalues : array of shape (d,)
        Eigenvalues of the metric that was selected for the first view; 0 outside of the subspace.
    feature_weights : array of shape (d,)
        Diagonal of that metric.
    choices : tuple of str
        Name of the selected candidate for each view.
    expert_weights : array of shape (n_experts,)
        Weights of the experts at its end.
    """

    number: int
    end: int
    n_centers: int
    eigenvalues: Floats
    feature_weights: Floats
    choices: tuple[str, ...]
    expert_weights: Floats


@dataclass(frozen=True, eq=False)
class PhaseState:
    """State of a phase.

    Attributes
    ----------
    core : MetricCore
        Compiled core, which runs the rounds.
    metrics : tuple of Metric
        Metric of each view.
    end : int
        Last round of the phase.
    summaries : tuple of PhaseSummary
        Summaries of the finished phases.
    past_scores : tuple of dict
        Scores of candidates for the metric of each view, from earlier phases.
    """

    core: MetricCore
    metrics: tuple[Metric, ...]
    end: int
    summaries: tuple[PhaseSummary, ...]
    past_scores: tuple[CandidateScores, ...]


class MetricState:
    """State of the learner.

    The end of a phase replaces `phase` as a whole. An interrupt leaves the state before or after the last round, and
    threads that predict or save see either phase. A lock serializes threads that learn.

    Attributes
    ----------
    phase : PhaseState
        State of the current phase.
    config : MetricConfig
        Settings.
    random_state : int
        Random seed.
    learn_lock : threading.Lock
        Lock that a thread holds while it learns.
    """

    def __init__(self, phase: PhaseState, config: MetricConfig, random_state: int) -> None:
        self.phase = phase
        self.config = config
        self.random_state = random_state
        self.learn_lock = Lock()

    def __reduce__(self) -> tuple[type["MetricState"], tuple[object, ...]]:
        return MetricState, (self.phase, self.config, self.random_state)

    @property
    def core(self) -> MetricCore:
        """Compiled core of the current phase."""
        return self.phase.core

    @property
    def clock(self) -> int:
        """Number of rounds."""
        return self.core.clock

    @property
    def n_centers(self) -> int:
        """Number of centers."""
        return len(self.core)


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
    """

    views: int
    neighbors: int
    max_centers: int


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
        If a number is out of range.

    Examples
    --------
    >>> state = initial_state(3, LearnerSize(views=1, neighbors=8, max_centers=100), 0, MetricConfig())
    >>> state.clock, state.n_centers, state.phase.end
    (0, 0, 4)
    """
    views, neighbors = (
        check_integer(size.views, "views", 1, 2),
        check_integer(size.neighbors, "neighbors", 2, _MAX_NEIGHBORS),
    )
    most = check_integer(size.max_centers, "max_centers", 16)
    check_integer(random_state, "random_state", 0)
    basis = initial_subspace(d)
    metric = Metric(np.ones(basis.shape[1]), basis, 1.0)
    experts = len(expert_names(views))
    unknown = LeastSquares(np.eye(d + 1), np.zeros(d + 1))
    parts = MetricParts(
        views=[_initial_view(metric)] * views,
        centers=CenterMemory(np.zeros((0, d)), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0)),
        packing=empty_packing(metric.eigenvalues, 1.0, most),
        regressions=GlobalRegressions(unknown, unknown),
        aggregation=ExpertAggregation(
            uniform_aggregation(experts),
            # The prior needs the variance of the labels, unknown so far. An inverse of 0 keeps the coefficients at 0
            # until `_update_stack` sets it.
            LeastSquares(np.zeros((experts, experts)), np.zeros(experts)),
            uniform_aggregation(2),
        ),
        label_statistics=np.zeros(6),
        feature_statistics=np.zeros((5, d)),
        coordinates=[np.zeros((0, metric.rank))] * views,
        clock=0,
    )
    core = MetricCore(MetricSettings(neighbors, most, config.label_margin), parts)
    phase = PhaseState(core, (metric,) * views, MIN_PHASE_ROUNDS, (), ({},) * views)
    return MetricState(phase, config, random_state)


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


def empty_gop(d: int) -> Floats:
    """Return the gradient outer product of a phase without slopes so far."""
    return np.zeros((0, d))


def project_rows(view: FeatureView, rows: Floats) -> Floats:
    """Return the coordinates of rows in a view."""
    return project(view.standardize(rows), view.directions)


def _initial_view(metric: Metric) -> FeatureView:
    d = metric.dimension
    return FeatureView(
        np.zeros((0, d)), np.zeros(d), np.ones(d), metric.directions, empty_gop(d), max_fit_dimension(metric.rank)
    )
