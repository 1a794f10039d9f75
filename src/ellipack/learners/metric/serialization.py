"""Archives of the state of `MetricRegressor`.

Everything is checked before a core is built: sizes, orders and sums, and that numbers are within the bounds of a
learner, so that later sums do not overflow.
"""

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ellipack._core import CoreParts, MetricCore, MetricSettings, PastFeatures, PastParts
from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.importance_archive import importance_from_archive, importance_to_archive
from ellipack.learners.metric.initial_state import MAX_SEED, LearnerSize, check_feature_count
from ellipack.learners.metric.learner_archive import (
    aggregation_from_archive,
    aggregation_parts,
    learner_from_archive,
    learner_to_archive,
)
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.learners.metric.phase_archive import phases_from_archive, phases_to_archive
from ellipack.learners.metric.state import MIN_PHASE_ROUNDS, MetricState, PhaseState, SelectedMetrics
from ellipack.learners.metric.subspace import has_slopes
from ellipack.serialization import Archive

_MAX_ROUNDS = 2**52
_PAST_ERRORS = ("active_errors", "total_errors")


def to_archive(state: MetricState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    phase = state.phase
    parts, settings = phase.core.parts(), phase.core.settings
    past = parts.past
    facts = {
        "neighbors": settings.neighbors,
        "max_centers": settings.max_centers,
        "past_labels": 0 if past is None else past.features.labels,
        "max_keys": 0 if past is None else past.features.max_keys,
        "random_state": state.random_state,
        "clock": parts.plain.clock,
        "phase_end": phase.end,
        "views": len(parts.plain.views),
    }
    archives = {"phases": phases_to_archive(phase.summaries, phase.core.dimension, len(parts.plain.views))}
    if past is not None and phase.past is not None:
        archives["past"] = _archive_past(past, phase.past)
    archives["importance"] = importance_to_archive(parts.importance, phase.layout)
    return Archive(facts).with_parts(
        config=Archive(asdict(state.config)), plain=learner_to_archive(parts.plain, phase.plain), **archives
    )


def from_archive(saved: Archive, d: int) -> MetricState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.

    Returns
    -------
    state : MetricState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    if saved.part("plain").part("view0").shape("directions", 2)[0] != d:  # before arrays of that size are created
        raise ModelFileError(f"plain/view0/directions must have {d} rows, one for each feature")
    config = config_from_archive(saved.part("config"))
    size = LearnerSize(
        views=saved.integer("views", 1, 2),
        neighbors=saved.integer("neighbors", 2),
        max_centers=saved.integer("max_centers", 16),
        past_labels=saved.integer("past_labels", 0),
        max_keys=saved.integer("max_keys", 0),
    )
    try:
        check_feature_count(d)
        size = size.checked()
    except DomainError as error:
        raise ModelFileError(str(error)) from error
    clock = saved.integer("clock", 1, _MAX_ROUNDS)
    plain, selected = learner_from_archive(saved.part("plain"), d, size, clock)
    past, past_selected = _restore_past(saved.part("past"), d, size, clock) if size.past_labels else (None, None)
    past_dimension = 0 if past is None else past.features.dimension
    importance, layout = importance_from_archive(saved.part("importance"), d, past_dimension, clock)
    if (importance is None) == config.importance:
        raise ModelFileError("importance/measured must be that of the configuration")
    end = saved.integer("phase_end", clock + 1, int(config.growth * clock) + MIN_PHASE_ROUNDS)
    for rounds in [plain] if past is None else [plain, past.rounds]:
        for view in rounds.views:
            if has_slopes(view.gop) and 0 < view.max_slopes < len(view.gop) + end - clock:
                raise ModelFileError(f"max_slopes must be enough for the rest of the phase, got {view.max_slopes}")
    settings = MetricSettings(size.neighbors, size.max_centers, config.label_margin)
    phase = PhaseState(
        core=MetricCore(settings, CoreParts(plain, past, importance)),
        plain=selected,
        past=past_selected,
        end=end,
        summaries=phases_from_archive(saved.part("phases"), d, size.views),
        layout=layout,
    )
    return MetricState(phase, config, saved.integer("random_state", 0, MAX_SEED))


def config_from_archive(saved: Archive) -> MetricConfig:
    """Return the configuration that was saved as this archive."""
    values: dict[str, Any] = {}
    for each in fields(MetricConfig):
        value = saved.facts.get(each.name)
        values[each.name] = tuple(value) if isinstance(value, list) else value
    try:
        return MetricConfig(**values)
    except (DomainError, TypeError) as error:
        raise ModelFileError(f"{saved.prefix}{error}") from error


def _archive_past(past: PastParts, selected: SelectedMetrics) -> Archive:
    """Return an archive of the learner that sees the past."""
    features = past.features
    facts: dict[str, Any] = {"active_from": past.active_from}
    facts |= {f"{name}_rounds": getattr(past, name)[0] for name in _PAST_ERRORS}
    arrays = {name: np.array(getattr(past, name)[1:]) for name in _PAST_ERRORS}
    histories = Archive(arrays={name: getattr(features, name) for name in ("stream", "keys", "histories")})
    return Archive(facts, arrays).with_parts(
        learner=learner_to_archive(past.rounds, selected),
        features=histories,
        combination=Archive().with_parts(**aggregation_parts(past.combination)),
    )


def _restore_past(saved: Archive, d: int, size: LearnerSize, clock: int) -> tuple[PastParts, SelectedMetrics]:
    """Restore the learner that sees the past."""
    features = _restore_past_features(saved.part("features"), size, clock)
    learner, own = saved.part("learner"), features.dimension
    seen = learner.part("view0").shape("directions", 2)[0]
    if seen not in (own, own + d):
        raise ModelFileError(
            f"{learner.prefix}view0/directions must have {own} rows, one for each feature of the past, "
            f"or {own + d}, got {seen}"
        )
    rounds, selected = learner_from_archive(learner, seen, size, clock)
    most = MAX_PAST_VALUE**2 * clock
    errors = [
        (saved.integer(f"{name}_rounds", 0, clock), *saved.floats_between(0.0, most, name, 2).tolist())
        for name in _PAST_ERRORS
    ]
    past = PastParts(
        rounds,
        features,
        aggregation_from_archive(saved.part("combination"), 2, clock),
        saved.integer("active_from", 0, _MAX_ROUNDS),
        *errors,
    )
    return past, selected


def _restore_past_features(saved: Archive, size: LearnerSize, clock: int) -> PastFeatures:
    """Restore the labels that the features of the past summarize."""
    length, count = PastFeatures.history_size, saved.shape("keys", 1)[0]
    if count > size.max_keys:
        raise ModelFileError(f"{saved.prefix}keys must have at most max_keys = {size.max_keys} entries, got {count}")
    keys = saved.ints("keys", count, least=-(2**63), most=2**63 - 1)
    if len(np.unique(keys)) < count:
        raise ModelFileError(f"{saved.prefix}keys must be different")
    most = max(MAX_PAST_VALUE, float(clock))
    stream = saved.floats_between(-most, most, "stream", length)
    histories = saved.floats_between(-most, most, "histories", count, length)
    counts = np.append(histories[:, 0], stream[0])
    if not ((counts >= 0) & (counts <= clock) & (counts % 1 == 0)).all() or (histories[:, 0] < 1).any():
        raise ModelFileError(
            f"{saved.prefix}histories must begin with numbers of labels from 1 to {clock}, and stream with one from 0"
        )
    return PastFeatures(size.past_labels, size.max_keys, stream, keys, histories)
