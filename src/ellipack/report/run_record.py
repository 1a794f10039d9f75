"""The record of a run: what its learner, its encoder and its scores have to say."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ellipack._version import __version__
from ellipack.estimators import MetricRegressor, PhasedRegressor
from ellipack.evaluation.run import Run
from ellipack.evaluation.scores import Scores
from ellipack.report.record import Column, Direction, Experts, Phase, Progress, Record, Residuals, Summary
from ellipack.validation import Floats

_DIRECTIONS = 5
_SPECTRUM = 64  # eigenvalues kept of each phase: beyond, nothing is to be seen


def build_record(run: Run, speed: Sequence[tuple[int, float]] = ()) -> Record:
    """Return what is shown of a run that has learned at least one row, with how fast it went, if that is known."""
    columns = [Column(*column) for column in run.encoder.column_summaries()]
    info = RunInfo(run.source, run.encoder.target, run.scores, run.skipped, columns, list(speed))
    return build_learner_record(run.learner, run.encoder.feature_names, info)


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run besides its learner."""

    source: str
    target: str
    scores: Scores = field(default_factory=Scores)
    skipped: int = 0
    columns: list[Column] = field(default_factory=list)
    speed: list[tuple[int, float]] = field(default_factory=list)


def build_learner_record(learner: Any, features: list[str], info: RunInfo) -> Record:
    """Return what is shown of a learner that has learned at least one row, and of the run in which it has."""
    inner, metric = getattr(learner, "regressor_", learner), learner.metric_
    diagonal = np.diag(metric.matrix)
    directions = zip(metric.eigenvalues[:_DIRECTIONS].tolist(), metric.eigenvectors.T.tolist(), strict=False)
    return Record(
        source=info.source,
        target=info.target,
        learner=type(inner).__name__,
        parameters={name: _plain(value) for name, value in inner.get_params(deep=False).items()},
        version=__version__,
        summary=build_summary(info.scores, info.skipped),
        progress=_progress(info.scores),
        features=features,
        importances=(diagonal / diagonal.sum()).tolist(),
        eigenvalues=metric.eigenvalues.tolist(),
        effective_rank=int(learner.effective_rank_),
        n_centers=int(learner.n_centers_),
        directions=[Direction(value, loadings) for value, loadings in directions],
        phases=_phases(inner),
        experts=_experts(learner),
        residuals=Residuals(info.scores.sample_rows.tolist(), *info.scores.sample_pairs.T.tolist()),
        columns=info.columns,
        speed=info.speed,
    )


def build_summary(scores: Scores, skipped: int) -> Summary:
    """Return how good the predictions were so far."""
    return Summary(
        rows=scores.n_rows,
        skipped=skipped,
        rmse=scores.rmse,
        mae=scores.mae,
        r2=scores.r2,
        skill=scores.skill,
        mean_rmse=scores.mean_rmse,
        last_rmse=scores.last_rmse,
        label_mean=scores.label_mean if scores.n_rows else None,
        label_std=float(np.sqrt(scores.label_variance)) if scores.n_rows else None,
    )


def _progress(scores: Scores) -> Progress:
    learner, mean, last = scores.bin_errors().T.tolist()
    return Progress(scores.bin_ends().tolist(), learner, mean, last)


def _experts(learner: Any) -> Experts:
    if not isinstance(learner, MetricRegressor):
        return Experts([], [])
    return Experts(learner.expert_names_, learner.expert_weights_.tolist())


def _phases(learner: Any) -> list[Phase]:
    """Return what was known at the end of each phase, where a learner has any."""
    if isinstance(learner, MetricRegressor):
        past = learner.history()
        columns = zip(
            past.end.tolist(),
            past.n_centers.tolist(),
            past.effective_rank.tolist(),
            map(_spectrum, past.eigenvalues),
            past.expert_weights.tolist(),
            [", ".join(choices) for choices in past.choices],
            strict=True,
        )
        return [Phase(*column) for column in columns]
    if isinstance(learner, PhasedRegressor):
        ends = np.cumsum([phase.rounds for phase in learner.phases_]).tolist()
        return [
            Phase(end, phase.n_centers, phase.effective_rank, _spectrum(phase.metric.eigenvalues), [], "")
            for end, phase in zip(ends, learner.phases_, strict=True)
        ]
    return []


def _spectrum(eigenvalues: Floats) -> list[float]:
    values: list[float] = eigenvalues[:_SPECTRUM].tolist()
    return values


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
