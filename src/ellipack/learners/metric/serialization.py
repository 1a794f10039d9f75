"""Archives of the state of `MetricRegressor`.

Kd-trees are not saved. They are built again from the coordinates of the centers. Search results do not depend on the
shape of a tree, so that a restored learner continues with the same bits, and a file cannot contain an invalid tree.

Everything is checked before a core is built: sizes, orders and sums, and that numbers are within the bounds of a
learner, so that later sums do not overflow.
"""

from dataclasses import asdict, fields
from typing import Any, NamedTuple

import numpy as np

from ellipack._core import (
    BernsteinAggregation,
    CenterMemory,
    ExpertAggregation,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricCore,
    MetricParts,
    MetricSettings,
    PackingExpert,
)
from ellipack.errors import DomainError, ModelFileError
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.metric_selection import CandidateScores, Score
from ellipack.learners.metric.state import (
    COUNT,
    HIGH,
    LOW,
    MEAN,
    MIN_PHASE_ROUNDS,
    SQUARES,
    LearnerSize,
    MetricState,
    PhaseState,
    PhaseSummary,
    initial_state,
    max_fit_dimension,
    max_packing_centers,
)
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats

_MAX_LABEL, _MAX_FEATURE = 2 * MAX_ABS_LABEL, 2 * MAX_ABS_VALUE  # twice, because means, knots and scales may be larger
_MIN_LENGTH, _MAX_COSINE = 1e-5, 1e-6  # of directions: a tenth of the smallest length, and much more than rounding
_MIN_SCALE = 1e-165  # a standard deviation is the square root of a float
_MAX_STANDARD = 1e6  # standard deviations at which a feature is clipped
_MAX_COORDINATE_SCALE = 1e200
_MAX_SCORE = 1e9  # a logarithm, or a number of validation points
_MAX_ROUNDS = 2**52
_MIN_LOG_PRIOR = -50.0  # a prior weight is at least 0.02 / N for N experts
_MIN_REGRET = 1e-290  # if not 0


class _Bounds(NamedTuple):
    """Numbers of features, of rounds, and of rounds of Algorithm 1 in the phase, which limit the arrays of a file."""

    d: int
    rounds: int
    packing_rounds: int


def to_archive(state: MetricState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    phase = state.phase
    parts, settings = phase.core.parts(), phase.core.settings
    facts = {
        "neighbors": settings.neighbors,
        "max_centers": settings.max_centers,
        "random_state": state.random_state,
        "clock": parts.clock,
        "phase_end": phase.end,
        "views": len(parts.views),
        "phases": len(phase.summaries),
        "past_scores": [{name: list(score) for name, score in each.items()} for each in phase.past_scores],
    }
    arrays = {"label_statistics": parts.label_statistics, "feature_statistics": parts.feature_statistics}
    views = {
        f"view{v}": _archive_view(parts.views[v], parts.coordinates[v], phase.metrics[v])
        for v in range(len(parts.views))
    }
    return Archive(facts, arrays).with_parts(
        config=Archive(asdict(state.config)),
        centers=_archive_arrays(parts.centers, "rows", "label_sums", "label_counts", "round_sums"),
        packing=_archive_packing(parts.packing),
        ridge=_archive_arrays(parts.regressions.ridge, "inverse", "coefficients"),
        forgetting=_archive_arrays(parts.regressions.forgetting, "inverse", "coefficients"),
        experts=_archive_aggregation(parts.aggregation.experts),
        stack=_archive_arrays(parts.aggregation.stack, "inverse", "coefficients"),
        top=_archive_aggregation(parts.aggregation.top),
        **views,
        **{f"phase{i}": _archive_phase(each) for i, each in enumerate(phase.summaries)},
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
    if saved.part("view0").shape("directions", 2)[0] != d:  # checked first, before arrays of that size are created
        raise ModelFileError(f"view0/directions must have {d} rows, one for each feature")
    config = config_from_archive(saved.part("config"))
    size = LearnerSize(saved.integer("views", 1, 2), saved.integer("neighbors", 2), saved.integer("max_centers", 16))
    try:
        state = initial_state(d, size, saved.integer("random_state", 0), config)
    except DomainError as error:
        raise ModelFileError(str(error)) from error
    clock = saved.integer("clock", 1, _MAX_ROUNDS)
    bounds = _Bounds(d, clock, saved.part("packing").integer("clock", 0, clock))
    metrics = tuple(_restore_metric(saved.part(f"view{v}"), d) for v in range(size.views))
    parts = _restore_parts(saved, size, bounds, metrics)
    state.phase = PhaseState(
        core=MetricCore(MetricSettings(size.neighbors, size.max_centers, config.label_margin), parts),
        metrics=metrics,
        end=saved.integer("phase_end", clock + 1, int(config.growth * clock) + MIN_PHASE_ROUNDS),
        summaries=tuple(
            _restore_phase(saved.part(f"phase{i}"), d, size.views) for i in range(saved.integer("phases", 0, 10_000))
        ),
        past_scores=_restore_past_scores(saved, size.views),
    )
    return state


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


def _restore_parts(saved: Archive, size: LearnerSize, bounds: _Bounds, metrics: tuple[Metric, ...]) -> MetricParts:
    """Restore the parts of the core."""
    d, experts = bounds.d, len(expert_names(size.views))
    centers = _restore_centers(saved.part("centers"), bounds, size.max_centers)
    views = [saved.part(f"view{v}") for v in range(size.views)]
    label_statistics, feature_statistics = saved.floats("label_statistics", 6), saved.floats("feature_statistics", 5, d)
    _check_statistics(label_statistics, feature_statistics, bounds.rounds)
    farthest = 2 * d * _MAX_STANDARD
    return MetricParts(
        views=[_restore_view(view, d, metric.rank) for view, metric in zip(views, metrics, strict=True)],
        centers=centers,
        packing=_restore_packing(saved.part("packing"), bounds, metrics[0], size.max_centers),
        regressions=GlobalRegressions(
            _restore_least_squares(saved.part("ridge"), d + 1), _restore_least_squares(saved.part("forgetting"), d + 1)
        ),
        aggregation=ExpertAggregation(
            _restore_aggregation(saved.part("experts"), experts, bounds.rounds),
            _restore_least_squares(saved.part("stack"), experts),
            _restore_aggregation(saved.part("top"), 2, bounds.rounds),
        ),
        label_statistics=label_statistics,
        feature_statistics=feature_statistics,
        coordinates=[
            view.floats_between(-farthest, farthest, "coordinates", len(centers), metric.rank)
            for view, metric in zip(views, metrics, strict=True)
        ],
        clock=bounds.rounds,
    )


def _archive_arrays(part: object, *names: str) -> Archive:
    """Return an archive of attributes that are arrays."""
    return Archive(arrays={name: getattr(part, name) for name in names})


def _restore_centers(saved: Archive, bounds: _Bounds, most: int) -> CenterMemory:
    """Restore the centers."""
    count = saved.shape("rows", 2)[0]
    if not 1 <= count < most:
        raise ModelFileError(f"{saved.prefix}rows must have from 1 to max_centers - 1 = {most - 1} rows, got {count}")
    counts = saved.counts("label_counts", count, bounds.rounds, least=1)
    sums = saved.floats("label_sums", count)
    if (np.abs(sums) / counts).max() > _MAX_LABEL:
        raise ModelFileError(f"{saved.prefix}label_sums must be sums of labels of absolute value <= {_MAX_LABEL:g}")
    rounds = saved.floats("round_sums", count)
    if not (rounds.min() >= 0 and (rounds <= counts * float(bounds.rounds)).all()):
        rule = f"sums of label_counts rounds, each at most {bounds.rounds}"
        raise ModelFileError(f"{saved.prefix}round_sums must be {rule}")
    return CenterMemory(
        saved.floats_between(-_MAX_FEATURE, _MAX_FEATURE, "rows", count, bounds.d), sums, counts, rounds
    )


def _archive_packing(packing: PackingExpert) -> Archive:
    """Return an archive of Algorithm 1."""
    arrays = _archive_arrays(packing, "coordinates", "label_sums", "label_counts", "creation_rounds").arrays
    return Archive({"clock": packing.clock, "coordinate_scale": packing.coordinate_scale}, arrays)


def _restore_packing(saved: Archive, bounds: _Bounds, metric: Metric, max_centers: int) -> PackingExpert:
    """Restore Algorithm 1."""
    count, most = saved.shape("coordinates", 2)[0], max_packing_centers(max_centers)
    if not min(1, bounds.packing_rounds) <= count <= most:
        raise ModelFileError(
            f"{saved.prefix}coordinates must have at most {most} rows, and some after the first round, got {count}"
        )
    creation_rounds = saved.ints("creation_rounds", count, least=1, most=bounds.packing_rounds)
    if (np.diff(creation_rounds) <= 0).any():
        raise ModelFileError(f"{saved.prefix}creation_rounds must be strictly increasing")
    sums, counts = (
        saved.floats("label_sums", count),
        saved.counts("label_counts", count, bounds.packing_rounds, least=1),
    )
    if count and (np.abs(sums) / counts).max() > _MAX_LABEL:
        raise ModelFileError(f"{saved.prefix}label_sums must be sums of labels of absolute value <= {_MAX_LABEL:g}")
    coordinate_scale = saved.number("coordinate_scale")
    if not 1 / _MAX_COORDINATE_SCALE <= coordinate_scale <= _MAX_COORDINATE_SCALE:
        raise ModelFileError(
            f"{saved.prefix}coordinate_scale must be from {1 / _MAX_COORDINATE_SCALE:g} to {_MAX_COORDINATE_SCALE:g}"
        )
    coordinates = saved.floats("coordinates", count, metric.rank)
    starts = rank_starts(metric.eigenvalues)
    return PackingExpert(
        coordinates, sums, counts, creation_rounds, starts, bounds.packing_rounds, coordinate_scale, most
    )


def _archive_view(view: FeatureView, coordinates: Floats, metric: Metric) -> Archive:
    """Return an archive of a view."""
    arrays = _archive_arrays(view, "knots", "shift", "scale", "directions", "gop").arrays
    archive = Archive({"fit_dimension": view.fit_dimension}, {**arrays, "coordinates": coordinates})
    return archive.with_parts(metric=metric.to_archive())


def _restore_metric(saved: Archive, d: int) -> Metric:
    """Restore the metric of a view."""
    rank = saved.shape("directions", 2)[1]
    if not 1 <= rank <= d:
        raise ModelFileError(f"{saved.prefix}directions must have from 1 to {d} columns, got {rank}")
    return Metric.from_archive(saved.part("metric"), d, rank)


def _restore_view(saved: Archive, d: int, rank: int) -> FeatureView:
    """Restore a view, except for the coordinates of the centers."""
    count = saved.shape("knots", 2)[0]
    knots = saved.floats_between(-_MAX_FEATURE, _MAX_FEATURE, "knots", count, d)
    if count == 1 or (np.diff(knots, axis=0) < 0).any():
        raise ModelFileError(f"{saved.prefix}knots must be empty or at least two rows in ascending order")
    directions = saved.floats_between(-2.0, 2.0, "directions", d, rank)  # their lengths are at most 1
    lengths = np.sqrt((directions**2).sum(axis=0))
    if not lengths.min() >= _MIN_LENGTH:
        raise ModelFileError(
            f"{saved.prefix}directions must have lengths of at least {_MIN_LENGTH:g}, got {lengths.min():g}"
        )
    cosines = directions.T @ directions / np.outer(lengths, lengths)
    if np.abs(cosines - np.eye(rank)).max() > _MAX_COSINE:
        raise ModelFileError(f"{saved.prefix}directions must be orthogonal")
    if saved.prefix == "view0/" and count:
        raise ModelFileError("view0/knots must be empty: the first view does not use ranks")
    return FeatureView(
        knots=knots,
        shift=saved.floats_between(-_MAX_FEATURE, _MAX_FEATURE, "shift", d),
        scale=saved.floats_between(_MIN_SCALE, _MAX_FEATURE, "scale", d),
        directions=directions,
        gop=_restore_gop(saved, d),
        fit_dimension=saved.integer("fit_dimension", 1, max_fit_dimension(rank)),
    )


def _restore_gop(saved: Archive, d: int) -> Floats:
    """Restore the gradient outer product. It may have overflowed. It is empty before the first slope of a phase."""
    return saved.any_floats("gop", d if saved.shape("gop", 2)[0] else 0, d)


def _restore_least_squares(saved: Archive, count: int) -> LeastSquares:
    """Restore a regression. Its numbers may have overflowed."""
    return LeastSquares(saved.any_floats("inverse", count, count), saved.any_floats("coefficients", count))


def _archive_aggregation(aggregation: BernsteinAggregation) -> Archive:
    """Return an archive of an aggregation."""
    return Archive({"scale": aggregation.scale}, _archive_arrays(aggregation, "log_priors", "gains", "squares").arrays)


def _restore_aggregation(saved: Archive, experts: int, rounds: int) -> BernsteinAggregation:
    """Restore an aggregation."""
    scale, largest = saved.number("scale"), 16 * _MAX_LABEL**2
    if not (scale == 0 or _MIN_REGRET <= scale <= largest):
        raise ModelFileError(f"{saved.prefix}scale must be 0 or from {_MIN_REGRET:g} to {largest:g}, got {scale:g}")
    most = 2 * rounds * scale  # a round adds at most twice the scale to a gain, and its square to the squares
    gains = saved.floats_between(-most, most, "gains", experts)
    squares = saved.floats_between(0.0, most * scale, "squares", experts)
    return BernsteinAggregation(saved.floats_between(_MIN_LOG_PRIOR, 1.0, "log_priors", experts), gains, squares, scale)


def _check_statistics(labels: Floats, features: Floats, rounds: int) -> None:
    """Raise unless statistics of labels and features are possible and not too large."""
    values, others = labels[[LOW, MEAN, HIGH]], np.delete(labels, [LOW, MEAN, HIGH])
    if not (labels[LOW] <= labels[HIGH] and np.abs(values).max() <= _MAX_LABEL and others.min() >= 0):
        raise ModelFileError(
            f"label_statistics must be those of labels of absolute value <= {_MAX_LABEL:g}, got {labels.tolist()}"
        )
    if not (1 <= labels[COUNT] <= rounds and labels[SQUARES] <= 16 * _MAX_LABEL**2 * rounds):
        raise ModelFileError(f"label_statistics must be those of at most {rounds} rounds, got {labels.tolist()}")
    squares, others = features[SQUARES], np.delete(features, SQUARES, axis=0)
    if not (
        squares.min() >= 0 and squares.max() / rounds <= 16 * _MAX_FEATURE**2 and np.abs(others).max() <= _MAX_FEATURE
    ):
        raise ModelFileError(f"feature_statistics must have absolute values <= {_MAX_FEATURE:g}, and squares >= 0")


def _archive_phase(phase: PhaseSummary) -> Archive:
    """Return an archive of the summary of a phase."""
    facts = {"number": phase.number, "end": phase.end, "n_centers": phase.n_centers, "choices": list(phase.choices)}
    return Archive(facts, _archive_arrays(phase, "eigenvalues", "feature_weights", "expert_weights").arrays)


def _restore_phase(saved: Archive, d: int, views: int) -> PhaseSummary:
    """Restore the summary of a phase."""
    return PhaseSummary(
        saved.integer("number", 1),
        saved.integer("end", 1),
        saved.integer("n_centers", 0),
        _restore_eigenvalues(saved, d),
        saved.floats_between(0.0, 2.0, "feature_weights", d),
        tuple(saved.strings("choices", views)),
        saved.floats("expert_weights", len(expert_names(views))),
    )


def _restore_eigenvalues(saved: Archive, d: int) -> Floats:
    """Restore the eigenvalues of a metric."""
    eigenvalues = saved.floats_between(0.0, 1.0, "eigenvalues", d)
    if eigenvalues[0] != 1 or (np.diff(eigenvalues) > 0).any():
        raise ModelFileError(f"{saved.prefix}eigenvalues must be in descending order and start with 1")
    return eigenvalues


def _restore_past_scores(saved: Archive, views: int) -> tuple[CandidateScores, ...]:
    """Restore the scores of candidates for each view."""
    listed = saved.fact("past_scores", list)
    try:
        past_scores = tuple({name: Score(*map(float, pair)) for name, pair in each.items()} for each in listed)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"past_scores must have a pair of numbers for each name: {error}") from error
    scores = [score for each in past_scores for score in each.values()]
    if not all(abs(value) <= _MAX_SCORE and 0 <= weight <= _MAX_SCORE for value, weight in scores):
        raise ModelFileError(f"past_scores must have values of absolute value <= {_MAX_SCORE:g} and weights >= 0")
    if len(past_scores) != views:
        raise ModelFileError(f"past_scores must have an entry for each of {views} views, got {len(past_scores)}")
    return past_scores
