"""What `MetricRegressor` had learned by the end of each phase."""

from typing import NamedTuple

import numpy as np

from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.state import PhaseState
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Ints


class MetricHistory(NamedTuple):
    """What had been learned by the end of each phase; arrays have one entry or row per phase.

    Attributes
    ----------
    end : array of int, shape (n_phases,)
        Last round of the phase.
    n_centers : array of int, shape (n_phases,)
        Number of centers.
    effective_rank : array of int, shape (n_phases,)
        Effective rank of the metric chosen at the end of the phase.
    eigenvalues : array of float, shape (n_phases, n_features)
        Eigenvalues of that metric; 0 along directions in which it does not measure.
    feature_weights : array of float, shape (n_phases, n_features)
        Diagonal of that metric, divided by its sum.
    expert_weights : array of float, shape (n_phases, n_experts)
        Weights of the experts in the aggregation.
    choices : list of tuple of str
        The chosen candidate for the metric, for each view.
    past_choices : list of tuple of str
        The same for the learner that sees the past; empty tuples if there is none.
    """

    end: Ints
    n_centers: Ints
    effective_rank: Ints
    eigenvalues: Floats
    feature_weights: Floats
    expert_weights: Floats
    choices: list[tuple[str, ...]]
    past_choices: list[tuple[str, ...]]


def summarize_phases(phase: PhaseState) -> MetricHistory:
    """Return what had been learned by the end of each phase before this one."""
    phases = phase.summaries
    d = phase.plain.metrics[0].dimension
    experts = len(expert_names(len(phase.plain.metrics)))
    return MetricHistory(
        end=np.array([each.end for each in phases], dtype=np.int64),
        n_centers=np.array([each.n_centers for each in phases], dtype=np.int64),
        effective_rank=np.array(
            [int(effective_rank(each.eigenvalues[each.eigenvalues > 0], each.end)) for each in phases],
            dtype=np.int64,
        ),
        eigenvalues=np.array([each.eigenvalues for each in phases]).reshape(-1, d),
        feature_weights=np.array([normalized_weights(each.feature_weights) for each in phases]).reshape(-1, d),
        expert_weights=np.array([each.expert_weights for each in phases]).reshape(-1, experts),
        choices=[each.choices for each in phases],
        past_choices=[each.past_choices for each in phases],
    )


def normalized_weights(weights: Floats) -> Floats:
    """Return weights divided by their sum."""
    return np.asarray(weights / weights.sum())
