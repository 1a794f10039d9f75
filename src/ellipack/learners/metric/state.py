"""The practical learner's state: the compiled core, and what Python decides between phases."""

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
"""Rows of the statistics of features, and entries of those of labels: mean, sum of squared deviations, least, greatest,
outliers of the phase (and half of those before); for labels also the count of all that were no outliers."""

MIN_PHASE_ROUNDS = 4
"""Rounds of the first phase, and the fewest of any: until its end, features count by their raw size."""

_MOST_FITTED = 40  # leading coordinates that local linear fits use
_MOST_NEIGHBORS = 512  # the cost of kriging grows with their cube
_LEAST_PACKING_CENTERS = 64
_PACKING_PART = 4  # Algorithm 1 has at most this part of max_centers, so that its memory is bounded too


class MetricPhase(NamedTuple):
    """Summary of a finished phase, and what was chosen at its end."""

    number: int
    end: int  # its last round
    n_centers: int
    eigenvalues: Floats  # of the metric that was chosen for the first view; 0 along directions that were cut off
    feature_weights: Floats  # the diagonal of that metric
    choices: tuple[str, ...]  # names of the chosen candidates
    expert_weights: Floats  # at its end


@dataclass(frozen=True, eq=False)
class PhaseState:
    """Everything that a phase fixes, and the core that plays its rounds."""

    core: MetricCore
    metrics: tuple[Metric, ...]
    end: int
    finished: tuple[MetricPhase, ...]
    past_scores: tuple[CandidateScores, ...]  # of candidates for the metric, in each view


class MetricState:
    """What the practical learner carries from round to round.

    The phase is replaced as a whole: whatever interrupts its last round, the state is that of before or of after.
    Threads that predict or save see one phase or the other; threads that learn take turns.
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
        """The core that plays the rounds of the present phase."""
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
    """Bounds on the size of a learner."""

    views: int
    neighbors: int
    max_centers: int


def initial_state(d: int, size: LearnerSize, random_state: int, config: MetricConfig) -> MetricState:
    """Return the practical learner before its first round, for d features."""
    views, neighbors = (
        check_integer(size.views, "views", 1, 2),
        check_integer(size.neighbors, "neighbors", 2, _MOST_NEIGHBORS),
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
            # A stack that cannot move until the labels have shown a variance to set its prior by.
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
    """Return Algorithm 1 before its first round, in the coordinates of a metric, divided by `coordinate_scale`."""
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
    """Return the largest number of centers of Algorithm 1."""
    return max(_LEAST_PACKING_CENTERS, max_centers // _PACKING_PART)


def max_fit_dimension(rank: int) -> int:
    """Return how many of the coordinates local linear fits use."""
    return min(rank, _MOST_FITTED)


def empty_gop(d: int) -> Floats:
    """Return the gradient outer product of a phase before its first slope."""
    return np.zeros((0, d))


def project_rows(view: FeatureView, rows: Floats) -> Floats:
    """Return the coordinates of rows in a view."""
    return project(view.standardize(rows), view.directions)


def _initial_view(metric: Metric) -> FeatureView:
    d = metric.dimension
    return FeatureView(
        np.zeros((0, d)), np.zeros(d), np.ones(d), metric.directions, empty_gop(d), max_fit_dimension(metric.rank)
    )
