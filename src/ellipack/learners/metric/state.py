"""State of `MetricRegressor`: the compiled core, and what Python decides between phases."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ellipack._core import FeatureView, MetricCore, MetricParts, project
from ellipack.learners.metric.column_groups import GroupLayout
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.metric_selection import CandidateScores
from ellipack.learners.metric.subspace import MANY_FEATURES
from ellipack.locks import LearnLock
from ellipack.metric import Metric
from ellipack.validation import Floats

MEAN, SQUARES, LOW, HIGH, OUTLIERS, COUNT = range(6)
"""Rows of the statistics of features, and entries of the statistics of labels.

Mean, sum of squared deviations, minimum, maximum, number of outliers in the phase plus half of the number before, and,
for labels only, the number of labels that were not outliers.
"""

MIN_PHASE_ROUNDS = 4
"""Number of rounds of the first phase, in which features are not standardized, and minimum for the others."""


class PhaseSummary(NamedTuple):
    """Summary of a finished phase of the learner that sees the features alone.

    Its metric was selected at the end of the phase and is used in the next one.

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
    past_choices : tuple of str
        Name of the selected candidate for each view of the learner that sees the past; empty if there is none.
    """

    number: int
    end: int
    n_centers: int
    eigenvalues: Floats
    feature_weights: Floats
    choices: tuple[str, ...]
    expert_weights: Floats
    past_choices: tuple[str, ...]


class SelectedMetrics(NamedTuple):
    """Metrics that a learner uses in a phase.

    Attributes
    ----------
    metrics : tuple of Metric
        Metric of each view.
    scores : tuple of dict
        Scores of candidates for the metric of each view, from earlier phases.
    """

    metrics: tuple[Metric, ...]
    scores: tuple[CandidateScores, ...]


@dataclass(frozen=True, eq=False)
class PhaseState:
    """State of a phase.

    Attributes
    ----------
    core : MetricCore
        Compiled core, which runs the rounds.
    plain : SelectedMetrics
        Metrics of the learner that sees the features alone.
    past : SelectedMetrics or None
        Metrics of the learner that sees the past.
    end : int
        Last round of the phase.
    summaries : tuple of PhaseSummary
        Summaries of the finished phases.
    layout : GroupLayout
        Groups of features whose importance is measured.
    """

    core: MetricCore
    plain: SelectedMetrics
    past: SelectedMetrics | None
    end: int
    summaries: tuple[PhaseSummary, ...]
    layout: GroupLayout

    def ends_with(self, clock: int) -> bool:
        """Return whether a round is the last one of the phase; raise `RuntimeError` if it is beyond the end."""
        if clock > self.end:
            raise RuntimeError(f"the phase must end with round {self.end}, got round {clock}")
        return clock == self.end


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
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    def __init__(self, phase: PhaseState, config: MetricConfig, random_state: int) -> None:
        self.phase = phase
        self.config = config
        self.random_state = random_state
        self.learn_lock = LearnLock()

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


_PARTS = (
    "views",
    "centers",
    "packing",
    "regressions",
    "aggregation",
    "label_statistics",
    "feature_statistics",
    "intervals",
    "index",
    "clock",
)


def replace_parts(parts: MetricParts, **changes: Any) -> MetricParts:
    """Return the parts of a learner with some of them replaced; see `MetricParts`."""
    return MetricParts(**({name: getattr(parts, name) for name in _PARTS if name not in changes} | changes))


def empty_gop(d: int) -> Floats:
    """Return the gradient outer product of a phase without slopes so far."""
    return np.zeros((0, d))


def max_slopes(d: int, rounds: int) -> int:
    """Return how many slopes a view keeps instead of the sum of their outer products.

    With many features, a phase of few rounds keeps all of them: they take less memory and time than the sum.
    """
    return rounds if d > MANY_FEATURES and rounds < d else 0


def project_rows(view: FeatureView, rows: Floats) -> Floats:
    """Return the coordinates of rows in a view."""
    return project(view.standardize(rows), view.directions)
