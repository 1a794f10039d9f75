"""End of a phase: new scales of the features, a new metric, and the conversion of the state to them.

`next_phase` runs these steps, for the learner that sees the features alone and for the one that sees the past: draw a
pool of centers; for each view, set new scales and select a metric in the leading subspace; project the centers on the
new directions; convert the regressions to the new units; restart the aggregations. The result is a new core, which
replaces the old one in a single assignment.
"""

from typing import NamedTuple

import numpy as np

from ellipack._core import (
    CenterIndex,
    CoreParts,
    FeatureView,
    LeastSquares,
    MetricCore,
    MetricParts,
    MetricSettings,
    PastParts,
    StackedAggregation,
)
from ellipack.learners.aggregation import restart_aggregation
from ellipack.learners.metric.column_groups import update_groups
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.global_regressions import convert_regressions
from ellipack.learners.metric.initial_state import empty_packing, max_fit_dimension
from ellipack.learners.metric.metric_selection import (
    CandidateScores,
    ValidationSet,
    generate_candidates,
    restrict_gop,
    select_metric,
)
from ellipack.learners.metric.past import first_active_round, is_worthwhile, trial_config
from ellipack.learners.metric.state import (
    COUNT,
    HIGH,
    LOW,
    MEAN,
    MIN_PHASE_ROUNDS,
    OUTLIERS,
    SQUARES,
    PhaseState,
    PhaseSummary,
    SelectedMetrics,
    empty_gop,
    max_slopes,
)
from ellipack.learners.metric.subspace import leading_subspace, sampled_rows
from ellipack.linear_algebra import single_threaded_blas
from ellipack.metric import Metric
from ellipack.parallel import for_row_slices
from ellipack.validation import Floats, Ints

_MAX_KNOTS = 256  # between which ranks are interpolated
_MIN_CENTERS = 8  # for a selection of the metric
_MAX_POOL_ENTRIES = 2_000_000  # centers times features on which candidates are scored, which are projected twice
_MIN_PRODUCTS_FOR_THREADS = 4_000_000  # multiplications, below which centers are projected in one thread
_PHASES_PER_GROUPING = 3  # after which groups of columns are found again, to save time
_MIN_VALIDATION_POINTS, _VALIDATION_DIVISOR = 60, 8  # one in eight of the pool, but at least 60 and at most the setting
_MAX_VARIANCE_GROWTH = 1e4  # since the prior of the stack was set
_ROUNDING = 1e-13  # error of the running mean of a constant feature, relative to its absolute value
_MAX_CONVERSION = 1e3  # factor by which the unit of a feature may grow when slopes are converted
_MIN_EIGENVALUE = 1e-8  # relative to the largest; rounding errors of large coordinates hide smaller ones
_MAX_LENGTH = 1e150  # of a direction, so that its square is finite
_MIN_PRIOR = 1e-150  # of the stack; with a smaller one, growing labels could overflow


class UpdatedView(NamedTuple):
    """View for the next phase.

    Attributes
    ----------
    view : FeatureView
        Scales and directions.
    metric : Metric
        Selected metric.
    choice : str
        Name of the selected candidate.
    scores : dict of str to Score
        Scores of candidates for the next selection.
    """

    view: FeatureView
    metric: Metric
    choice: str
    scores: CandidateScores


class _PhaseEnd(NamedTuple):
    """A learner after the last round of a phase, and what the end of the phase needs."""

    parts: MetricParts
    selected: SelectedMetrics
    settings: MetricSettings
    config: MetricConfig
    rng: np.random.Generator
    n_jobs: int
    next_rounds: int  # of the next phase


class _NextLearner(NamedTuple):
    """A learner for the next phase."""

    parts: MetricParts
    selected: SelectedMetrics
    choices: tuple[str, ...]


def next_phase(
    phase: PhaseState, parts: CoreParts, config: MetricConfig, random_state: int, n_jobs: int = 1
) -> PhaseState:
    """Return the state of the next phase.

    Parameters
    ----------
    phase : PhaseState
        The phase that ends. It is not changed.
    parts : CoreParts
        Parts of its core after the last round. Their regressions are converted in place.
    config : MetricConfig
        Settings.
    random_state : int
        Random seed.
    n_jobs : int, default 1
        Number of threads that project centers and score candidates, as in scikit-learn.

    Returns
    -------
    next : PhaseState
    """
    number, clock, settings = len(phase.summaries), parts.plain.clock, phase.core.settings
    end = clock + max(MIN_PHASE_ROUNDS, int((config.growth - 1) * clock))
    with single_threaded_blas():
        rng = np.random.default_rng([random_state, number])
        plain = _next_learner(_PhaseEnd(parts.plain, phase.plain, settings, config, rng, n_jobs, end - clock))
        past, past_selected = None, None
        past_choices: tuple[str, ...] = ()
        if parts.past is not None and phase.past is not None:
            rng = np.random.default_rng([random_state, number, 1])
            used = config if is_worthwhile(parts.past) else trial_config(config)
            learner = _next_learner(_PhaseEnd(parts.past.rounds, phase.past, settings, used, rng, n_jobs, end - clock))
            past, past_selected = _next_past(parts.past, learner.parts, config, end), learner.selected
            past_choices = learner.choices
        importance, layout = parts.importance, phase.layout
        if importance is not None:
            importance = importance.with_slope_model(plain.parts.views[0])
            if number % _PHASES_PER_GROUPING == 0:
                importance, layout = update_groups(parts.plain.centers, importance, layout)
        core = MetricCore(settings, CoreParts(plain.parts, past, importance))
    summary = _summarize(number, parts.plain, plain)._replace(past_choices=past_choices)
    return PhaseState(core, plain.selected, past_selected, end, (*phase.summaries, summary), layout)


def _summarize(number: int, parts: MetricParts, learner: _NextLearner) -> PhaseSummary:
    """Return the summary of a phase of a learner."""
    metric = learner.selected.metrics[0]
    spectrum = np.zeros(metric.dimension)
    spectrum[: metric.rank] = metric.eigenvalues
    return PhaseSummary(
        number=number + 1,
        end=parts.clock,
        n_centers=len(parts.centers),
        eigenvalues=spectrum,
        feature_weights=metric.feature_weights,
        choices=learner.choices,
        # Without memory, NumPy takes the result of compiled code for an object. This raises an error then.
        expert_weights=np.asarray(parts.aggregation.experts.weights(), dtype=np.float64),
        past_choices=(),
    )


def _next_learner(phase_end: _PhaseEnd) -> _NextLearner:
    """Return a learner with new scales and metrics."""
    centers, config = phase_end.parts.centers, phase_end.config
    most = max(config.validation_points, min(config.pool, _MAX_POOL_ENTRIES // centers.dimension))
    pool = _sample(phase_end.rng, len(centers), most)
    changes = [_update_view(phase_end, v, pool) for v in range(len(phase_end.parts.views))]
    selected = SelectedMetrics(tuple(each.metric for each in changes), tuple(each.scores for each in changes))
    return _NextLearner(_convert_parts(phase_end, changes), selected, tuple(each.choice for each in changes))


def _next_past(past: PastParts, rounds: MetricParts, config: MetricConfig, end: int) -> PastParts:
    """Return the state of the learner that sees the past, for a phase that ends at round `end`."""
    return PastParts(
        rounds,
        past.features,
        _restart(past.combination, rounds.label_statistics, config.stack_prior),
        first_active_round(past, rounds.clock, end),
        (0, 0.0, 0.0),
        past.total_errors,
    )


def _sample(rng: np.random.Generator, size: int, max_count: int) -> Ints:
    """Return at most `max_count` of the numbers below `size`, at random and in ascending order."""
    return np.arange(size) if size <= max_count else np.sort(rng.choice(size, max_count, replace=False))


def _update_view(phase_end: _PhaseEnd, v: int, pool: Ints) -> UpdatedView:
    """Return a view with new scales and a new metric."""
    centers, config = phase_end.parts.centers, phase_end.config
    old = phase_end.parts.views[v]
    scaled = _standardized_view(phase_end.parts, old) if v == 0 else _ranked_view(old, centers.take(pool).rows)
    gop, directions = _convert_gop(old, scaled)
    # The first view does not copy the table of all rows: with many features this would take most of the time.
    basis = leading_subspace(gop, scaled.standardize(centers.take(pool[sampled_rows(len(pool))]).rows))
    directions = basis.T @ directions
    choice, scores = "current", phase_end.selected.scores[v]
    if len(pool) >= _MIN_CENTERS:
        labels = centers.label_sums[pool] / centers.label_counts[pool]
        validation = _sample(phase_end.rng, len(pool), _count_validation_points(config, len(pool)))
        neighbors = phase_end.settings.neighbors
        data = ValidationSet(_project(phase_end, scaled, pool, basis), labels, validation, neighbors)
        candidates = dict(generate_candidates(restrict_gop(gop, basis), directions, config))
        choice, scores = select_metric(candidates, data, scores, phase_end.n_jobs)
        directions = candidates[choice].directions
    metric = _orthogonal_metric(basis, directions)
    view = FeatureView(
        scaled.knots,
        scaled.shift,
        scaled.scale,
        metric.directions,
        empty_gop(metric.dimension),
        max_fit_dimension(metric.rank),
        max_slopes(metric.dimension, phase_end.next_rounds),
    )
    return UpdatedView(view, metric, choice, scores)


def _convert_parts(phase_end: _PhaseEnd, changes: list[UpdatedView]) -> MetricParts:
    """Return the parts of a learner in the units and metrics of the next phase."""
    parts, views = phase_end.parts, [change.view for change in changes]
    everywhere = np.arange(len(parts.centers))
    coordinates = [_project(phase_end, view, everywhere, view.directions) for view in views]
    farthest = float(np.sqrt(np.einsum("ij,ij->i", coordinates[0], coordinates[0]).max()))
    max_centers = phase_end.settings.max_centers
    # The arrays of statistics are copies. The regressions of `parts` are converted in place.
    label_statistics, feature_statistics = parts.label_statistics, parts.feature_statistics
    label_statistics[OUTLIERS] /= 2
    feature_statistics[OUTLIERS] /= 2
    return MetricParts(
        views=views,
        centers=parts.centers,
        packing=empty_packing(changes[0].metric.eigenvalues, farthest if farthest > 0 else 1.0, max_centers),
        regressions=convert_regressions(parts, views[0]),
        aggregation=_restart(parts.aggregation, label_statistics, phase_end.config.stack_prior),
        label_statistics=label_statistics,
        feature_statistics=feature_statistics,
        intervals=parts.intervals,
        index=CenterIndex(coordinates),
        clock=parts.clock,
    )


def _project(phase_end: _PhaseEnd, view: FeatureView, places: Ints, directions: Floats) -> Floats:
    """Return the products of some of the centers, standardized by a view, and directions."""
    centers = phase_end.parts.centers
    projected = np.empty((len(places), directions.shape[1]))

    def project_part(part: slice) -> None:
        projected[part] = centers.project(view, places[part], directions)

    small = len(places) * directions.size < _MIN_PRODUCTS_FOR_THREADS
    for_row_slices(project_part, len(places), 1 if small else phase_end.n_jobs)
    return projected


def _standardized_view(parts: MetricParts, view: FeatureView) -> FeatureView:
    """Return the first view with the current means and standard deviations of the features."""
    statistics = parts.feature_statistics
    variance = statistics[SQUARES] / parts.label_statistics[COUNT]
    sizes = np.maximum(np.abs(statistics[LOW]), np.abs(statistics[HIGH]))
    return _with_scales(view, view.knots, statistics[MEAN], _deviation(variance, sizes))


def _ranked_view(view: FeatureView, rows: Floats) -> FeatureView:
    """Return a view of ranks: knots from quantiles of rows, and means and standard deviations of the ranks."""
    d = rows.shape[1]
    knots = np.quantile(rows, np.linspace(0, 1, min(_MAX_KNOTS, max(2, len(rows)))), axis=0)
    ranked = _with_scales(view, np.ascontiguousarray(knots), np.zeros(d), np.ones(d))
    ranks = ranked.standardize(rows)
    return _with_scales(ranked, ranked.knots, ranks.mean(axis=0), _deviation(ranks.var(axis=0), np.ones(d)))


def _with_scales(view: FeatureView, knots: Floats, shift: Floats, scale: Floats) -> FeatureView:
    return FeatureView(knots, shift, scale, view.directions, empty_gop(len(shift)), view.fit_dimension)


def _deviation(variance: Floats, sizes: Floats) -> Floats:
    """Return standard deviations, 1 for features that are constant up to rounding errors."""
    return np.sqrt(np.where(variance > (_ROUNDING * sizes) ** 2, variance, 1.0))


def _convert_gop(old: FeatureView, new: FeatureView) -> tuple[Floats, Floats]:
    """Return the gradient outer product, or the slopes, and the directions of a view in new units.

    The change of units is clipped: slopes in far too small units are not reliable.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # if it is not finite, it is not used
        ratio = np.minimum(new.scale / old.scale, _MAX_CONVERSION)
        return old.convert_gop(ratio), ratio[:, None] * old.directions


def _orthogonal_metric(basis: Floats, directions: Floats) -> Metric:
    """Return the metric of directions in a subspace, normalized.

    Distances are the same up to a common factor, eigenvalues are at least the minimum, and directions are orthogonal,
    longest first.
    """
    vectors, lengths, _ = np.linalg.svd(directions)
    eigenvalues = np.full(len(vectors), _MIN_EIGENVALUE)
    eigenvalues[: len(lengths)] = np.maximum((lengths / lengths[0]) ** 2, _MIN_EIGENVALUE)
    return Metric(eigenvalues, np.ascontiguousarray(basis @ vectors), float(min(lengths[0], _MAX_LENGTH) ** 2))


def _count_validation_points(config: MetricConfig, size: int) -> int:
    """Return the number of validation points for a size of the pool. The many early phases have few, to save time."""
    most = config.validation_points
    return max(min(_MIN_VALIDATION_POINTS, most), min(most, size // _VALIDATION_DIVISOR))


def _restart(aggregation: StackedAggregation, label_statistics: Floats, prior: float) -> StackedAggregation:
    """Return the aggregation for the next phase."""
    return StackedAggregation(
        restart_aggregation(aggregation.experts),
        _update_stack(aggregation.stack, label_statistics, prior),
        restart_aggregation(aggregation.top),
    )


def _update_stack(stack: LeastSquares, label_statistics: Floats, prior: float) -> LeastSquares:
    """Return the stack of experts, or a new one.

    The stack starts once the labels have a positive variance, which determines its prior. It restarts if the variance
    has grown so much that the prior is too weak.
    """
    variance = label_statistics[SQUARES] / label_statistics[COUNT]
    strength = max(prior * variance, _MIN_PRIOR)
    if not variance > 0 or 0 < stack.inverse.diagonal().max() < _MAX_VARIANCE_GROWTH / strength:
        return stack
    experts = len(stack.coefficients)
    return LeastSquares(np.eye(experts) / strength, np.zeros(experts))
