"""The practical learner's state as arrays and facts of an archive.

Trees are not saved: they are built again from the coordinates of the points, and no answer depends on which tree holds
them. So a restored learner goes on with the same bits, and no file can bring in a tree that leads a search astray.

Everything is checked before a core is built: sizes, orders and sums, and that numbers lie within the bounds that rounds
keep, so that no later sum overflows.
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
from ellipack.errors import CheckpointError, DomainError
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
    MetricPhase,
    MetricState,
    PhaseState,
    initial_state,
    max_fit_dimension,
    max_packing_centers,
)
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats

_LABEL, _FEATURE = 2e60, 2e140  # twice the largest that is taken: means and knots are rounded, scales are doubled
_LEAST_LENGTH, _LARGEST_COSINE = 1e-5, 1e-6  # of directions: a tenth of the least there are; far beyond rounding
_LEAST_SCALE = 1e-165  # a deviation is the root of a float
_FARTHEST_STANDARD = 1e6  # deviations at which a feature is clipped
_LARGEST_SCALE = 1e200
_LARGEST_SCORE = 1e9  # a logarithm, or validation points
_MOST_ROUNDS = 2**52
_LEAST_LOG_PRIOR = -50.0  # a prior weight is at least 0.02 / N for N experts
_LEAST_REGRET = 1e-290  # other than 0


class _Bounds(NamedTuple):
    """Numbers of features, of rounds, and of rounds of Algorithm 1 in the phase, which limit the arrays of a file."""

    d: int
    rounds: int
    packing_rounds: int


def to_archive(state: MetricState) -> Archive:
    """Return what is saved of a state, in arrays of its own."""
    phase = state.phase
    parts, settings = phase.core.parts(), phase.core.settings
    facts = {
        "neighbors": settings.neighbors,
        "max_centers": settings.max_centers,
        "random_state": state.random_state,
        "clock": parts.clock,
        "phase_end": phase.end,
        "views": len(parts.views),
        "phases": len(phase.finished),
        "past_scores": [{name: list(score) for name, score in each.items()} for each in phase.past_scores],
    }
    arrays = {"label_statistics": parts.label_statistics, "feature_statistics": parts.feature_statistics}
    views = {
        f"view{v}": _view_archive(parts.views[v], parts.coordinates[v], phase.metrics[v])
        for v in range(len(parts.views))
    }
    return Archive(facts, arrays).with_parts(
        config=Archive(asdict(state.config)),
        centers=_arrays_of(parts.centers, "rows", "label_sums", "label_counts", "round_sums"),
        packing=_packing_archive(parts.packing),
        ridge=_arrays_of(parts.regressions.ridge, "inverse", "coefficients"),
        forgetting=_arrays_of(parts.regressions.forgetting, "inverse", "coefficients"),
        experts=_aggregation_archive(parts.aggregation.experts),
        stack=_arrays_of(parts.aggregation.stack, "inverse", "coefficients"),
        top=_aggregation_archive(parts.aggregation.top),
        **views,
        **{f"phase{i}": _phase_archive(each) for i, each in enumerate(phase.finished)},
    )


def from_archive(saved: Archive, d: int) -> MetricState:
    """Return the state for d features that was saved as this archive."""
    if saved.part("view0").shape("directions", 2)[0] != d:  # before anything is made that large
        raise CheckpointError(f"view0/directions must have {d} rows, one a feature")
    config = config_from_archive(saved.part("config"))
    size = LearnerSize(saved.integer("views", 1, 2), saved.integer("neighbors", 2), saved.integer("max_centers", 16))
    try:
        state = initial_state(d, size, saved.integer("random_state", 0), config)
    except DomainError as error:
        raise CheckpointError(str(error)) from error
    clock = saved.integer("clock", 1, _MOST_ROUNDS)
    bounds = _Bounds(d, clock, saved.part("packing").integer("clock", 0, clock))
    metrics = tuple(_metric(saved.part(f"view{v}"), d) for v in range(size.views))
    parts = _parts(saved, size, bounds, metrics)
    state.phase = PhaseState(
        core=MetricCore(MetricSettings(size.neighbors, size.max_centers, config.label_margin), parts),
        metrics=metrics,
        end=saved.integer("phase_end", clock + 1, int(config.growth * clock) + MIN_PHASE_ROUNDS),
        finished=tuple(
            _phase(saved.part(f"phase{i}"), d, size.views) for i in range(saved.integer("phases", 0, 10_000))
        ),
        past_scores=_past_scores(saved, size.views),
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
        raise CheckpointError(f"{saved.prefix}{error}") from error


def _parts(saved: Archive, size: LearnerSize, bounds: _Bounds, metrics: tuple[Metric, ...]) -> MetricParts:
    d, experts = bounds.d, len(expert_names(size.views))
    centers = _centers(saved.part("centers"), bounds, size.max_centers)
    views = [saved.part(f"view{v}") for v in range(size.views)]
    label_statistics, feature_statistics = saved.floats("label_statistics", 6), saved.floats("feature_statistics", 5, d)
    _check_statistics(label_statistics, feature_statistics, bounds.rounds)
    farthest = 2 * d * _FARTHEST_STANDARD
    return MetricParts(
        views=[_view(view, d, metric.rank) for view, metric in zip(views, metrics, strict=True)],
        centers=centers,
        packing=_packing(saved.part("packing"), bounds, metrics[0], size.max_centers),
        regressions=GlobalRegressions(
            _least_squares(saved.part("ridge"), d + 1), _least_squares(saved.part("forgetting"), d + 1)
        ),
        aggregation=ExpertAggregation(
            _aggregation(saved.part("experts"), experts, bounds.rounds),
            _least_squares(saved.part("stack"), experts),
            _aggregation(saved.part("top"), 2, bounds.rounds),
        ),
        label_statistics=label_statistics,
        feature_statistics=feature_statistics,
        coordinates=[
            view.floats_between(-farthest, farthest, "coordinates", len(centers), metric.rank)
            for view, metric in zip(views, metrics, strict=True)
        ],
        clock=bounds.rounds,
    )


def _arrays_of(part: object, *names: str) -> Archive:
    return Archive(arrays={name: getattr(part, name) for name in names})


def _centers(saved: Archive, bounds: _Bounds, most: int) -> CenterMemory:
    count = saved.shape("rows", 2)[0]
    if not 1 <= count < most:
        raise CheckpointError(f"{saved.prefix}rows must be from 1 to max_centers - 1, {most - 1}, got {count}")
    counts = saved.counts("label_counts", count, bounds.rounds, least=1)
    sums = saved.floats("label_sums", count)
    if (np.abs(sums) / counts).max() > _LABEL:
        raise CheckpointError(f"{saved.prefix}label_sums must be those of labels of at most {_LABEL:g}")
    rounds = saved.floats("round_sums", count)
    if not (rounds.min() >= 0 and (rounds <= counts * float(bounds.rounds)).all()):
        rule = f"those of label_counts rounds of at most {bounds.rounds}"
        raise CheckpointError(f"{saved.prefix}round_sums must be {rule}")
    return CenterMemory(saved.floats_between(-_FEATURE, _FEATURE, "rows", count, bounds.d), sums, counts, rounds)


def _packing_archive(packing: PackingExpert) -> Archive:
    arrays = _arrays_of(packing, "coordinates", "label_sums", "label_counts", "creation_rounds").arrays
    return Archive({"clock": packing.clock, "coordinate_scale": packing.coordinate_scale}, arrays)


def _packing(saved: Archive, bounds: _Bounds, metric: Metric, max_centers: int) -> PackingExpert:
    count, most = saved.shape("coordinates", 2)[0], max_packing_centers(max_centers)
    if not min(1, bounds.packing_rounds) <= count <= most:
        raise CheckpointError(f"{saved.prefix}coordinates must be of at most {most} centers, got {count}")
    creation_rounds = saved.ints("creation_rounds", count, least=1, most=bounds.packing_rounds)
    if (np.diff(creation_rounds) <= 0).any():
        raise CheckpointError(f"{saved.prefix}creation_rounds must be strictly increasing")
    sums, counts = (
        saved.floats("label_sums", count),
        saved.counts("label_counts", count, bounds.packing_rounds, least=1),
    )
    if count and (np.abs(sums) / counts).max() > _LABEL:
        raise CheckpointError(f"{saved.prefix}label_sums must be those of labels of at most {_LABEL:g}")
    coordinate_scale = saved.number("coordinate_scale")
    if not 1 / _LARGEST_SCALE <= coordinate_scale <= _LARGEST_SCALE:
        raise CheckpointError(
            f"{saved.prefix}coordinate_scale must be from {1 / _LARGEST_SCALE:g} to {_LARGEST_SCALE:g}"
        )
    coordinates = saved.floats("coordinates", count, metric.rank)
    starts = rank_starts(metric.eigenvalues)
    return PackingExpert(
        coordinates, sums, counts, creation_rounds, starts, bounds.packing_rounds, coordinate_scale, most
    )


def _view_archive(view: FeatureView, coordinates: Floats, metric: Metric) -> Archive:
    arrays = _arrays_of(view, "knots", "shift", "scale", "directions", "gop").arrays
    archive = Archive({"fit_dimension": view.fit_dimension}, {**arrays, "coordinates": coordinates})
    return archive.with_parts(metric=metric.to_archive())


def _metric(saved: Archive, d: int) -> Metric:
    """Return the metric of a view, with as many directions as the view has coordinates."""
    rank = saved.shape("directions", 2)[1]
    if not 1 <= rank <= d:
        raise CheckpointError(f"{saved.prefix}directions must have from 1 to {d} columns, got {rank}")
    return Metric.from_archive(saved.part("metric"), d, rank)


def _view(saved: Archive, d: int, rank: int) -> FeatureView:
    count = saved.shape("knots", 2)[0]
    knots = saved.floats_between(-_FEATURE, _FEATURE, "knots", count, d)
    if count == 1 or (np.diff(knots, axis=0) < 0).any():
        raise CheckpointError(f"{saved.prefix}knots must be none, or two and more that rise")
    directions = saved.floats_between(-2.0, 2.0, "directions", d, rank)  # none is longer than 1
    lengths = np.sqrt((directions**2).sum(axis=0))
    if not lengths.min() >= _LEAST_LENGTH:
        raise CheckpointError(
            f"{saved.prefix}directions must be at least {_LEAST_LENGTH:g} long, got {lengths.min():g}"
        )
    cosines = directions.T @ directions / np.outer(lengths, lengths)
    if np.abs(cosines - np.eye(rank)).max() > _LARGEST_COSINE:
        raise CheckpointError(f"{saved.prefix}directions must be orthogonal")
    if saved.prefix == "view0/" and count:
        raise CheckpointError("view0/knots must be none: the first view takes features as they are")
    return FeatureView(
        knots=knots,
        shift=saved.floats_between(-_FEATURE, _FEATURE, "shift", d),
        scale=saved.floats_between(_LEAST_SCALE, _FEATURE, "scale", d),
        directions=directions,
        gop=_gop(saved, d),
        fit_dimension=saved.integer("fit_dimension", 1, max_fit_dimension(rank)),
    )


def _gop(saved: Archive, d: int) -> Floats:
    """Return the gradient outer product. It may have overflowed; before the first slope of a phase it is empty."""
    return saved.any_floats("gop", d if saved.shape("gop", 2)[0] else 0, d)


def _least_squares(saved: Archive, count: int) -> LeastSquares:
    return LeastSquares(saved.any_floats("inverse", count, count), saved.any_floats("coefficients", count))


def _aggregation_archive(aggregation: BernsteinAggregation) -> Archive:
    return Archive({"scale": aggregation.scale}, _arrays_of(aggregation, "log_priors", "gains", "squares").arrays)


def _aggregation(saved: Archive, experts: int, rounds: int) -> BernsteinAggregation:
    scale, largest = saved.number("scale"), 16 * _LABEL**2
    if not (scale == 0 or _LEAST_REGRET <= scale <= largest):
        raise CheckpointError(f"{saved.prefix}scale must be 0 or from {_LEAST_REGRET:g} to {largest:g}, got {scale:g}")
    most = 2 * rounds * scale  # a round adds less than twice the scale to a gain, and its square to the squares
    gains = saved.floats_between(-most, most, "gains", experts)
    squares = saved.floats_between(0.0, most * scale, "squares", experts)
    return BernsteinAggregation(
        saved.floats_between(_LEAST_LOG_PRIOR, 1.0, "log_priors", experts), gains, squares, scale
    )


def _check_statistics(labels: Floats, features: Floats, rounds: int) -> None:
    """Raise unless statistics of labels and features are possible: neither they nor their squares may be too large."""
    values, others = labels[[LOW, MEAN, HIGH]], np.delete(labels, [LOW, MEAN, HIGH])
    if not (labels[LOW] <= labels[HIGH] and np.abs(values).max() <= _LABEL and others.min() >= 0):
        raise CheckpointError(f"label_statistics must be of labels of at most {_LABEL:g}, got {labels.tolist()}")
    if not (1 <= labels[COUNT] <= rounds and labels[SQUARES] <= 16 * _LABEL**2 * rounds):
        raise CheckpointError(f"label_statistics must be of at most {rounds} rounds, got {labels.tolist()}")
    squares, others = features[SQUARES], np.delete(features, SQUARES, axis=0)
    if not (squares.min() >= 0 and squares.max() / rounds <= 16 * _FEATURE**2 and np.abs(others).max() <= _FEATURE):
        raise CheckpointError(f"feature_statistics must be of at most {_FEATURE:g}, and squares not negative")


def _phase_archive(phase: MetricPhase) -> Archive:
    facts = {"number": phase.number, "end": phase.end, "n_centers": phase.n_centers, "choices": list(phase.choices)}
    return Archive(facts, _arrays_of(phase, "eigenvalues", "feature_weights", "expert_weights").arrays)


def _phase(saved: Archive, d: int, views: int) -> MetricPhase:
    return MetricPhase(
        saved.integer("number", 1),
        saved.integer("end", 1),
        saved.integer("n_centers", 0),
        _eigenvalues(saved, d),
        saved.floats_between(0.0, 2.0, "feature_weights", d),
        tuple(saved.strings("choices", views)),
        saved.floats("expert_weights", len(expert_names(views))),
    )


def _eigenvalues(saved: Archive, d: int) -> Floats:
    eigenvalues = saved.floats_between(0.0, 1.0, "eigenvalues", d)
    if eigenvalues[0] != 1 or (np.diff(eigenvalues) > 0).any():
        raise CheckpointError(f"{saved.prefix}eigenvalues must be in descending order, the first 1")
    return eigenvalues


def _past_scores(saved: Archive, views: int) -> tuple[CandidateScores, ...]:
    listed = saved.fact("past_scores", list)
    try:
        past_scores = tuple({name: Score(*map(float, pair)) for name, pair in each.items()} for each in listed)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"past_scores must hold a pair of numbers for each name: {error}") from error
    scores = [score for each in past_scores for score in each.values()]
    if not all(abs(value) <= _LARGEST_SCORE and 0 <= weight <= _LARGEST_SCORE for value, weight in scores):
        raise CheckpointError(f"past_scores must be of at most {_LARGEST_SCORE:g}, with weights not negative")
    if len(past_scores) != views:
        raise CheckpointError(f"past_scores must be one set for each of {views} views, got {len(past_scores)}")
    return past_scores
