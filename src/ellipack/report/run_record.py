"""Construction of the record of a run from its learner, encoder and scores."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ellipack._version import __version__
from ellipack.estimators import KeyedRegressor, MetricRegressor, PhasedRegressor
from ellipack.evaluation.drivers import column_effects, column_importances
from ellipack.evaluation.interval_scores import IntervalScores
from ellipack.evaluation.run import Run
from ellipack.evaluation.scores import Scores
from ellipack.learners.metric.effects import Effect
from ellipack.learners.metric.importances import ColumnImportance, Importances, summarize_importances
from ellipack.learners.metric.past import past_feature_names
from ellipack.report.record import (
    ColumnRecord,
    ColumnShare,
    Direction,
    EffectRecord,
    Experts,
    ImportanceRecord,
    IntervalRecord,
    KeysRecord,
    PastRecord,
    PhaseRecord,
    Progress,
    Record,
    SampledRows,
    Summary,
    TimeShare,
)
from ellipack.validation import Floats

_N_DIRECTIONS = 5
_MAX_KEYS = 20  # whose errors are listed
_MAX_EFFECTS = 8  # columns whose effects are computed
_MIN_PART_OF_EFFECT = 0.1  # of the largest effect of a column, below which one of its parts is not described
_MAX_DISORDER = 0.02  # of the time from first to last, between the date of a row and its place in order
_MAX_SHARE_OUT_OF_ORDER = 0.05  # of the rows that may be further away
_LATEST = 253_402_300_800 * 10**6  # the year 9999, in microseconds
_MAX_EIGENVALUES = 64  # of each phase; the charts show the largest 40


def build_record(run: Run, speed: Sequence[tuple[int, float]] = ()) -> Record:
    """Return the record of a run.

    Parameters
    ----------
    run : Run
        Run that has learned at least one row.
    speed : sequence of (int, float), default ()
        Row number and rows per second.

    Returns
    -------
    Record
        Results of the run.
    """
    columns = [ColumnRecord(*column) for column in run.encoder.column_summaries()]
    used = {column.name for column in columns}
    columns += [
        ColumnRecord(each.name, "left out", each.reason, 0) for each in run.encoder.left_out if each.name not in used
    ]
    info = RunInfo(run.source, run.encoder.target, run.scores, run.skipped, columns, list(speed), run)
    record = build_learner_record(run.learner, run.encoder.feature_names, info)
    summary = replace(record.summary, unlabeled=run.unlabeled, late_labels=run.late_labels)
    return replace(record, summary=summary, intervals=_build_intervals(run.interval_scores))


@dataclass(frozen=True)
class RunInfo:
    """Facts about a run besides its learner."""

    source: str
    target: str
    scores: Scores = field(default_factory=Scores)
    skipped: int = 0
    columns: list[ColumnRecord] = field(default_factory=list)
    speed: list[tuple[int, float]] = field(default_factory=list)
    run: Run | None = None


def build_learner_record(learner: Any, features: list[str], info: RunInfo) -> Record:
    """Return the record of a learner and of the run that trained it.

    Parameters
    ----------
    learner : estimator
        Regressor that has learned at least one row.
    features : list of str
        Names of the features.
    info : RunInfo
        Facts about the run.

    Returns
    -------
    Record
        Results of the run.
    """
    outer = learner
    if isinstance(learner, KeyedRegressor):
        learner = learner.pooled_
    inner, metric = getattr(learner, "regressor_", outer), learner.metric_
    directions = zip(metric.eigenvalues[:_N_DIRECTIONS].tolist(), metric.eigenvectors.T.tolist(), strict=False)
    return Record(
        source=info.source,
        target=info.target,
        learner=type(inner).__name__,
        parameters=_build_parameters(inner),
        version=__version__,
        summary=build_summary(info.scores, info.skipped),
        progress=_build_progress(info.scores),
        features=features,
        importance=_build_importance(learner, features, info.run),
        eigenvalues=metric.eigenvalues.tolist(),
        effective_rank=int(learner.effective_rank_),
        n_centers=int(learner.n_centers_),
        directions=[Direction(value, loadings) for value, loadings in directions],
        phases=_build_phases(learner if inner is outer else inner),
        experts=_build_experts(learner),
        past=_build_past(learner, features, info.target),
        residuals=_build_sample(info.scores),
        columns=info.columns,
        speed=info.speed,
        keys=_build_keys(outer),
    )


def _build_parameters(learner: Any) -> dict[str, Any]:
    """Return the parameters of a learner, with the bound of its memory that is in use."""
    parameters = {name: _json_value(value) for name, value in learner.get_params(deep=False).items()}
    if isinstance(learner, MetricRegressor):
        parameters["max_centers"] = learner.max_centers_
    return parameters


def _build_keys(learner: Any) -> KeysRecord | None:
    """Return the errors by key, if there is one learner per key."""
    if not isinstance(learner, KeyedRegressor):
        return None
    every = learner.key_errors()
    rmse, pooled_rmse = (
        float(np.sqrt(np.average(errors**2, weights=every.rows))) for errors in (every.rmse, every.pooled_rmse)
    )
    shown = [each[:_MAX_KEYS] for each in every]
    return KeysRecord(
        learner.key_name_,
        learner.n_keys_,
        learner.n_keys_on_disk_,
        rmse,
        pooled_rmse,
        list(shown[0]),
        *(np.asarray(each).tolist() for each in shown[1:]),
    )


def _build_sample(scores: Scores) -> SampledRows:
    """Return the sampled rows, with their dates if all have one and the dates ascend, apart from a few rows."""
    times, dates = scores.sample_times, list[str]()
    if len(times) and (np.abs(times) < _LATEST).all():
        ordered = np.sort(times)
        out_of_order = np.abs(ordered - times) > _MAX_DISORDER * np.ptp(times)
        if out_of_order.mean() <= _MAX_SHARE_OUT_OF_ORDER:
            dates = _format_dates(ordered.astype("datetime64[us]"))
    predictions, labels = scores.sample_pairs.T.tolist()
    return SampledRows(scores.sample_rows.tolist(), predictions, labels, dates)


def _format_dates(times: Any) -> list[str]:
    """Return dates in ISO format, no more precise than needed, which keeps the page small."""
    units = (each for each in ("D", "m", "s") if (times == times.astype(f"datetime64[{each}]")).all())
    return [str(each) for each in times.astype(f"datetime64[{next(units, 's')}]")]


def build_summary(scores: Scores, skipped: int) -> Summary:
    """Return the errors over all rows so far."""
    late = scores.late_errors() or (None, None, None)
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
        warm_up=scores.warm_up,
        late_rmse=late[0],
        late_mean_rmse=late[1],
        late_last_rmse=late[2],
    )


def _build_intervals(scores: IntervalScores) -> list[IntervalRecord]:
    bins, recent = scores.bin_means(), scores.recent
    covered, widths, values = map(_finite, (scores.covered(), scores.mean_widths(), scores.interval_scores()))
    return [
        IntervalRecord(
            coverage=coverage,
            covered=covered[k],
            mean_width=widths[k],
            score=values[k],
            bin_end=scores.bin_ends().tolist(),
            bin_covered=_finite(bins[:, k, 0]),
            bin_width=_finite(bins[:, k, 1]),
            recent_rows=list(range(scores.n_rows - len(recent) + 1, scores.n_rows + 1)),
            recent_labels=recent[:, 0].tolist(),
            recent_lower=_finite(recent[:, 1 + 2 * k]),
            recent_upper=_finite(recent[:, 2 + 2 * k]),
        )
        for k, coverage in enumerate(scores.coverages)
    ]


def _finite(values: Floats) -> list[float | None]:
    """Return numbers, with None for those that are not finite."""
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _build_progress(scores: Scores) -> Progress:
    learner, mean, last = scores.bin_errors().T.tolist()
    return Progress(scores.bin_ends().tolist(), learner, mean, last)


def _build_importance(learner: Any, features: list[str], run: Run | None) -> ImportanceRecord | None:
    """Return what drives the predictions, if the learner measures it."""
    if not isinstance(learner, MetricRegressor):
        return None
    measured = _summarize(learner, features, run)
    if measured is None:
        return None
    split, drivers = measured.split, [name for each in measured.drivers for name in each.columns]
    effects = {name: _effects(learner, features, run, name) for name in drivers[:_MAX_EFFECTS]}
    return ImportanceRecord(
        [_column_share(each) for each in measured.columns],
        [replace(_column_share(each), effect=_describe(each, effects)) for each in measured.groups],
        list(measured.time_columns),
        None if split is None else TimeShare(*split),
        measured.rmse,
        [_effect_record(name, each) for name in effects for each in effects[name] if len(each.values) > 1],
    )


def _summarize(learner: MetricRegressor, features: list[str], run: Run | None) -> Importances | None:
    """Return the importances with the names of the columns of the run; without one, of the features."""
    if run is not None:
        return column_importances(run)
    state = learner.state_
    if state.phase.layout.columns == tuple(range(len(features))):
        return summarize_importances(state, features)
    return learner.importances_


def _effects(learner: MetricRegressor, features: list[str], run: Run | None, column: str) -> list[Effect]:
    """Return the effects of a column of the run; without one, of a feature."""
    if run is not None:
        return column_effects(run, column)
    return [learner.partial_dependence(features.index(column))] if column in features else []


def _describe(measured: ColumnImportance, effects: dict[str, list[Effect]]) -> str:
    """Return the effect of a driver in words, by its parts if it has several. Correlated columns have none as one.

    Parts with a small effect beside the largest one are left out: it may be chance.
    """
    known = effects.get(measured.columns[0], []) if len(measured.columns) == 1 else []
    least = _MIN_PART_OF_EFFECT * max((each.size for each in known), default=0.0)
    varying = [each for each in known if len(each.values) > 1 and each.size >= least]
    if len(varying) == 1:
        return varying[0].describe()
    return "; ".join(f"{each.name}: {each.describe()}" for each in varying)


def _effect_record(column: str, effect: Effect) -> EffectRecord:
    numbers = [each.tolist() for each in (effect.values, effect.mean, effect.low, effect.high)]
    part = "" if effect.name in ("", column) else effect.name
    return EffectRecord(column, part, numbers[0], list(effect.labels), *numbers[1:])


def _column_share(measured: ColumnImportance) -> ColumnShare:
    return ColumnShare(
        columns=list(measured.columns),
        measurements=measured.count,
        rise=_known(measured.rise),
        rise_std=_known(measured.rise_std),
        rmse_rise=_known(measured.rmse_rise),
        share=_known(measured.share),
        share_std=_known(measured.share_std),
        recent_share=_known(measured.recent_share),
        recent_share_std=_known(measured.recent_share_std),
        is_driver=measured.is_driver,
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _build_experts(learner: Any) -> Experts:
    if not isinstance(learner, MetricRegressor):
        return Experts([], [])
    return Experts(learner.expert_names_, learner.expert_weights_.tolist())


def _build_past(learner: Any, features: list[str], target: str) -> PastRecord | None:
    """Return what the past is worth, if the learner uses it and has made predictions."""
    errors = learner.past_errors_ if isinstance(learner, MetricRegressor) else None
    metric = getattr(learner, "past_metric_", None)
    if errors is None or metric is None or errors.rounds == 0:
        return None
    weights, core = metric.feature_weights, learner.state_.core
    names = [
        *past_feature_names(core.past_labels, (learner.key_name_ or "key") if core.has_keys else None, target),
        *features,
    ]
    return PastRecord(
        float(np.sqrt(errors.without_past / errors.rounds)),
        float(np.sqrt(errors.with_past / errors.rounds)),
        names[: metric.dimension],
        (weights / weights.sum()).tolist(),
    )


def _build_phases(learner: Any) -> list[PhaseRecord]:
    """Return the phases that have ended, or an empty list for a learner without phases."""
    if isinstance(learner, MetricRegressor):
        history = learner.history()
        columns = zip(
            history.end.tolist(),
            history.n_centers.tolist(),
            history.effective_rank.tolist(),
            map(_leading_eigenvalues, history.eigenvalues),
            history.expert_weights.tolist(),
            [", ".join(choices) for choices in history.choices],
            strict=True,
        )
        return [PhaseRecord(*column) for column in columns]
    if isinstance(learner, PhasedRegressor):
        ends = np.cumsum([phase.rounds for phase in learner.phases_]).tolist()
        return [
            PhaseRecord(
                end, phase.n_centers, phase.effective_rank, _leading_eigenvalues(phase.metric.eigenvalues), [], ""
            )
            for end, phase in zip(ends, learner.phases_, strict=True)
        ]
    return []


def _leading_eigenvalues(eigenvalues: Floats) -> list[float]:
    values: list[float] = eigenvalues[:_MAX_EIGENVALUES].tolist()
    return values


def _json_value(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
