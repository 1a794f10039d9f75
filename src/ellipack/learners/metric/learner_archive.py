"""Archives of one learner of `MetricRegressor`: the one that sees the features alone, or the one that sees the past.

Kd-trees are not saved. They are built again from the coordinates of the centers. Search results do not depend on the
shape of a tree, so that a restored learner continues with the same bits, and a file cannot contain an invalid tree.
"""

from typing import NamedTuple

import numpy as np

from ellipack._core import (
    CenterIndex,
    CenterMemory,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricParts,
    PackingExpert,
    StackedAggregation,
)
from ellipack.errors import ModelFileError
from ellipack.learners.aggregation import weights_from_archive, weights_to_archive
from ellipack.learners.intervals import intervals_from_archive, intervals_to_archive
from ellipack.learners.metric.experts import expert_names
from ellipack.learners.metric.initial_state import LearnerSize, max_fit_dimension, max_packing_centers
from ellipack.learners.metric.metric_selection import CandidateScores, Score
from ellipack.learners.metric.state import COUNT, HIGH, LOW, MEAN, SQUARES, SelectedMetrics
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats

_MAX_LABEL, _MAX_FEATURE = 2 * MAX_ABS_LABEL, 2 * MAX_ABS_VALUE  # twice, because means, knots and scales may be larger
_MIN_LENGTH, _MAX_COSINE = 1e-5, 1e-6  # of directions: a tenth of the smallest length, and much more than rounding
_MIN_SCALE = 1e-165  # a standard deviation is the square root of a float
_MAX_COORDINATE_SCALE = 1e200
_MAX_ERROR = 10 * (1 + 1e-9)  # of a prediction, in units of the mean error; a little more, for sums are rounded
_MAX_SCORE = 1e9  # a logarithm, or a number of validation points


class _Bounds(NamedTuple):
    """Numbers of features, of rounds, and of rounds of Algorithm 1 in the phase, which limit the arrays of a file."""

    d: int
    rounds: int
    packing_rounds: int


def learner_to_archive(parts: MetricParts, selected: SelectedMetrics) -> Archive:
    """Return an archive of a learner, with copies of its arrays."""
    facts = {"scores": [{name: list(score) for name, score in each.items()} for each in selected.scores]}
    arrays = {"label_statistics": parts.label_statistics, "feature_statistics": parts.feature_statistics}
    coordinates = parts.index.coordinates
    views = {
        f"view{v}": _archive_view(parts.views[v], coordinates[v], selected.metrics[v]) for v in range(len(parts.views))
    }
    return Archive(facts, arrays).with_parts(
        centers=_archive_arrays(parts.centers, "rows", "label_sums", "label_counts", "round_sums", "error_sums"),
        intervals=intervals_to_archive(parts.intervals),
        packing=_archive_packing(parts.packing),
        ridge=_archive_arrays(parts.regressions.ridge, "inverse", "coefficients"),
        forgetting=_archive_arrays(parts.regressions.forgetting, "inverse", "coefficients"),
        **aggregation_parts(parts.aggregation),
        **views,
    )


def learner_from_archive(saved: Archive, d: int, size: LearnerSize, rounds: int) -> tuple[MetricParts, SelectedMetrics]:
    """Restore a learner from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features that the learner sees.
    size : LearnerSize
        Numbers of views and centers.
    rounds : int
        Number of rounds.

    Returns
    -------
    parts : MetricParts
        State of the learner.
    selected : SelectedMetrics
        Its metrics.

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    bounds = _Bounds(d, rounds, saved.part("packing").integer("clock", 0, rounds))
    metrics = tuple(_restore_metric(saved.part(f"view{v}"), d) for v in range(size.views))
    return _restore_parts(saved, size, bounds, metrics), SelectedMetrics(metrics, _restore_scores(saved, size.views))


def aggregation_parts(aggregation: StackedAggregation) -> dict[str, Archive]:
    """Return archives of the parts of an aggregation, by name."""
    return {
        "experts": weights_to_archive(aggregation.experts),
        "stack": _archive_arrays(aggregation.stack, "inverse", "coefficients"),
        "top": weights_to_archive(aggregation.top),
    }


def aggregation_from_archive(saved: Archive, experts: int, rounds: int) -> StackedAggregation:
    """Restore an aggregation from an archive with the parts of `aggregation_parts`."""
    return StackedAggregation(
        weights_from_archive(saved.part("experts"), experts, rounds),
        _restore_least_squares(saved.part("stack"), experts),
        weights_from_archive(saved.part("top"), 2, rounds),
    )


def _restore_parts(saved: Archive, size: LearnerSize, bounds: _Bounds, metrics: tuple[Metric, ...]) -> MetricParts:
    """Restore the parts of a learner."""
    d, experts = bounds.d, len(expert_names(size.views))
    centers = _restore_centers(saved.part("centers"), bounds, size.max_centers)
    views = [saved.part(f"view{v}") for v in range(size.views)]
    label_statistics, feature_statistics = saved.floats("label_statistics", 6), saved.floats("feature_statistics", 5, d)
    _check_statistics(saved.prefix, label_statistics, feature_statistics, bounds.rounds)
    farthest = 2 * d * FeatureView.largest_standard
    return MetricParts(
        views=[_restore_view(views[v], v, d, metrics[v].rank) for v in range(size.views)],
        centers=centers,
        packing=_restore_packing(saved.part("packing"), bounds, metrics[0], size.max_centers),
        regressions=GlobalRegressions(
            _restore_least_squares(saved.part("ridge"), d + 1), _restore_least_squares(saved.part("forgetting"), d + 1)
        ),
        aggregation=aggregation_from_archive(saved, experts, bounds.rounds),
        label_statistics=label_statistics,
        feature_statistics=feature_statistics,
        intervals=intervals_from_archive(saved.part("intervals"), bounds.rounds),
        index=CenterIndex(
            [
                view.floats_between(-farthest, farthest, "coordinates", len(centers), metric.rank)
                for view, metric in zip(views, metrics, strict=True)
            ]
        ),
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
    errors = saved.floats("error_sums", count)
    if not (errors.min() >= 0 and (errors <= counts * _MAX_ERROR).all()):
        raise ModelFileError(f"{saved.prefix}error_sums must be sums of label_counts numbers from 0 to 10")
    return CenterMemory(
        saved.floats_between(-_MAX_FEATURE, _MAX_FEATURE, "rows", count, bounds.d), sums, counts, rounds, errors
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
    facts = {"fit_dimension": view.fit_dimension, "max_slopes": view.max_slopes}
    archive = Archive(facts, {**arrays, "coordinates": coordinates})
    return archive.with_parts(metric=metric.to_archive())


def _restore_metric(saved: Archive, d: int) -> Metric:
    """Restore the metric of a view."""
    rank = saved.shape("directions", 2)[1]
    if not 1 <= rank <= d:
        raise ModelFileError(f"{saved.prefix}directions must have from 1 to {d} columns, got {rank}")
    return Metric.from_archive(saved.part("metric"), d, rank)


def _restore_view(saved: Archive, v: int, d: int, rank: int) -> FeatureView:
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
    if v == 0 and count:
        raise ModelFileError(f"{saved.prefix}knots must be empty: the first view does not use ranks")
    max_slopes = saved.integer("max_slopes", 0, d - 1)
    return FeatureView(
        knots=knots,
        shift=saved.floats_between(-_MAX_FEATURE, _MAX_FEATURE, "shift", d),
        scale=saved.floats_between(_MIN_SCALE, _MAX_FEATURE, "scale", d),
        directions=directions,
        gop=_restore_gop(saved, d, max_slopes),
        fit_dimension=saved.integer("fit_dimension", 1, max_fit_dimension(rank)),
        max_slopes=max_slopes,
    )


def _restore_gop(saved: Archive, d: int, max_slopes: int) -> Floats:
    """Restore the gradient outer product, or the slopes if there are few. It may have overflowed."""
    count = saved.shape("gop", 2)[0]
    return saved.any_floats("gop", count if count <= max_slopes else d, d)


def _restore_least_squares(saved: Archive, count: int) -> LeastSquares:
    """Restore a regression. Its numbers may have overflowed."""
    return LeastSquares(saved.any_floats("inverse", count, count), saved.any_floats("coefficients", count))


def _check_statistics(prefix: str, labels: Floats, features: Floats, rounds: int) -> None:
    """Raise unless statistics of labels and features are possible and not too large."""
    values, others = labels[[LOW, MEAN, HIGH]], np.delete(labels, [LOW, MEAN, HIGH])
    if not (labels[LOW] <= labels[HIGH] and np.abs(values).max() <= _MAX_LABEL and others.min() >= 0):
        rule = f"label_statistics must be those of labels of absolute value <= {_MAX_LABEL:g}"
        raise ModelFileError(f"{prefix}{rule}, got {labels.tolist()}")
    if not (1 <= labels[COUNT] <= rounds and labels[SQUARES] <= 16 * _MAX_LABEL**2 * rounds):
        raise ModelFileError(
            f"{prefix}label_statistics must be those of at most {rounds} rounds, got {labels.tolist()}"
        )
    squares, others = features[SQUARES], np.delete(features, SQUARES, axis=0)
    if not (
        squares.min() >= 0 and squares.max() / rounds <= 16 * _MAX_FEATURE**2 and np.abs(others).max() <= _MAX_FEATURE
    ):
        raise ModelFileError(
            f"{prefix}feature_statistics must have absolute values <= {_MAX_FEATURE:g}, and squares >= 0"
        )


def _restore_scores(saved: Archive, views: int) -> tuple[CandidateScores, ...]:
    """Restore the scores of candidates for each view."""
    listed = saved.fact("scores", list)
    try:
        scores = tuple({name: Score(*map(float, pair)) for name, pair in each.items()} for each in listed)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{saved.prefix}scores must have a pair of numbers for each name: {error}") from error
    pairs = [score for each in scores for score in each.values()]
    if not all(abs(value) <= _MAX_SCORE and 0 <= weight <= _MAX_SCORE for value, weight in pairs):
        raise ModelFileError(
            f"{saved.prefix}scores must have values of absolute value <= {_MAX_SCORE:g} and weights >= 0"
        )
    if len(scores) != views:
        raise ModelFileError(f"{saved.prefix}scores must have an entry for each of {views} views, got {len(scores)}")
    return scores
