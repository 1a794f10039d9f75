"""Addition of features to a fitted learner. New features were 0 in all earlier rows.

A new feature enters the metric with a negligible weight. The regressions learn from it at once; the metric does when
the phase ends. Predictions for rows that are 0 in the new features do not change, bit for bit: each view maps a 0 to a
0, so that distances stay the same, and new coefficients of the regressions are 0. Until the phase ends, local fits keep
their numbers of coordinates and neighbors.
"""

from dataclasses import replace

import numpy as np

from ellipack._core import (
    CenterIndex,
    CenterMemory,
    CoreParts,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricCore,
    MetricParts,
    PackingExpert,
)
from ellipack.errors import ShapeError
from ellipack.learners.metric.column_groups import with_columns
from ellipack.learners.metric.initial_state import check_feature_count
from ellipack.learners.metric.past import with_rounds
from ellipack.learners.metric.state import MetricState, PhaseState, SelectedMetrics
from ellipack.metric import Metric
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats

NEW_EIGENVALUE = 1e-8
"""Eigenvalue of a new feature in the metric: the smallest one, until the end of the phase judges it."""

_RANK_SCALE = 2.0  # distance from 0 to the outermost knots of ranks, in typical absolute values
_MAX_SCALE = 1e60  # scales are clipped to [1 / it, it], so that squares of their ratios are finite


def add_features(state: MetricState, scales: Floats) -> None:
    """Add features as last columns, with a negligible weight in the metric.

    Parameters
    ----------
    state : MetricState
        The state, which is updated.
    scales : array of shape (n_new_features,)
        Typical absolute value of each new feature.

    Raises
    ------
    DomainError
        If there are too many features. The state is unchanged.
    """
    with state.learn_lock.turn:
        state.phase = _with_added_features(state.phase, scales)


def set_columns(state: MetricState, columns: tuple[int, ...]) -> None:
    """Set the number of the column of each feature. Columns are measured as a whole."""
    with state.learn_lock.turn:
        phase = state.phase
        if len(columns) != phase.core.dimension:
            raise ShapeError(
                f"set_columns must name the column of each of {phase.core.dimension} features, got {len(columns)} names"
            )
        parts = phase.core.parts()
        if parts.importance is None:
            state.phase = replace(phase, layout=phase.layout._replace(columns=columns))
            return
        importance, layout = with_columns(parts.importance, phase.layout, columns)
        core = MetricCore(phase.core.settings, CoreParts(parts.plain, parts.past, importance))
        state.phase = replace(phase, core=core, layout=layout)


def with_added_features(state: MetricState, scales: Floats) -> MetricState:
    """Return a copy of a state with new features; see `add_features`."""
    return MetricState(_with_added_features(state.phase, scales), state.config, state.random_state)


def _with_added_features(phase: PhaseState, scales: Floats) -> PhaseState:
    count = len(scales)
    check_feature_count(phase.core.dimension + count)
    parts = phase.core.parts()
    clipped = np.clip(scales, 1 / _MAX_SCALE, _MAX_SCALE)
    plain = _wider_metrics(phase.plain, count)
    wider, past, past_metrics = _wider_parts(parts.plain, plain, clipped), parts.past, phase.past
    if past is not None and past_metrics is not None and past.rounds.centers.rows.shape[1] > past.features.dimension:
        past_metrics = _wider_metrics(past_metrics, count)
        past = with_rounds(past, _wider_parts(past.rounds, past_metrics, clipped))
    summaries = tuple(
        each._replace(
            eigenvalues=np.append(each.eigenvalues, np.zeros(count)),
            feature_weights=np.append(each.feature_weights, np.zeros(count)),
        )
        for each in phase.summaries
    )
    layout, importance = phase.layout, parts.importance
    first = max(layout.columns) + 1
    columns = (*layout.columns, *range(first, first + count))
    if importance is None:
        layout = layout._replace(columns=columns)
    else:
        importance, layout = with_columns(importance, layout, columns)
    core = MetricCore(phase.core.settings, CoreParts(wider, past, importance))
    return replace(phase, core=core, plain=plain, past=past_metrics, summaries=summaries, layout=layout)


def _wider_metrics(selected: SelectedMetrics, count: int) -> SelectedMetrics:
    return selected._replace(
        metrics=tuple(metric.with_added_features(count, NEW_EIGENVALUE) for metric in selected.metrics)
    )


def _wider_parts(parts: MetricParts, selected: SelectedMetrics, scales: Floats) -> MetricParts:
    count, centers, regressions = len(scales), parts.centers, parts.regressions
    return MetricParts(
        views=[_wider_view(view, scales) for view in parts.views],
        centers=CenterMemory(
            _more_columns(centers.rows, count),
            centers.label_sums,
            centers.label_counts,
            centers.round_sums,
            centers.error_sums,
        ),
        packing=_wider_packing(parts.packing, selected.metrics[0], count),
        regressions=GlobalRegressions(
            _wider_regression(regressions.ridge, count), _wider_regression(regressions.forgetting, count)
        ),
        aggregation=parts.aggregation,
        label_statistics=parts.label_statistics,
        feature_statistics=_more_columns(parts.feature_statistics, count),
        intervals=parts.intervals,
        index=CenterIndex([_more_columns(each, count) for each in parts.index.coordinates]),
        clock=parts.clock,
    )


def _wider_view(view: FeatureView, scales: Floats) -> FeatureView:
    """Return a view with new axes, on which the coordinates of all centers are 0."""
    count, ranked = len(scales), len(view.knots) > 0
    d, rank = view.directions.shape
    directions = np.zeros((d + count, rank + count))
    directions[:d, :rank] = view.directions
    directions[d:, rank:] = np.sqrt(NEW_EIGENVALUE) * np.eye(count)
    return FeatureView(
        knots=np.hstack([view.knots, _knots(len(view.knots), scales)]),
        shift=np.append(view.shift, np.full(count, 0.5 if ranked else 0.0)),
        scale=np.append(view.scale, np.full(count, 0.5 / _RANK_SCALE) if ranked else scales),
        directions=directions,
        gop=np.pad(view.gop, ((0, count if len(view.gop) == d else 0), (0, count))),
        fit_dimension=view.fit_dimension,
        max_slopes=view.max_slopes,
    )


def _knots(count: int, scales: Floats) -> Floats:
    """Return evenly spaced knots around 0 for each new feature, so that a 0 has rank 1/2."""
    steps = np.arange(1 - count, count, 2) / max(1, count - 1)
    return np.outer(steps, _RANK_SCALE * scales)


def _wider_packing(packing: PackingExpert, metric: Metric, count: int) -> PackingExpert:
    return PackingExpert(
        _more_columns(packing.coordinates, count),
        packing.label_sums,
        packing.label_counts,
        packing.creation_rounds,
        rank_starts(metric.eigenvalues),
        packing.clock,
        packing.coordinate_scale,
        packing.max_centers,
    )


def _wider_regression(ridge: LeastSquares, count: int) -> LeastSquares:
    """Return a regression with new coefficients of 0 and their prior. The intercept stays last."""
    d = len(ridge.coefficients) - 1
    order = np.concatenate([np.arange(d), d + 1 + np.arange(count), [d]])
    inverse = np.eye(d + 1 + count)
    inverse[: d + 1, : d + 1] = ridge.inverse
    coefficients = np.append(ridge.coefficients, np.zeros(count))
    return LeastSquares(np.ascontiguousarray(inverse[np.ix_(order, order)]), coefficients[order])


def _more_columns(table: Floats, count: int) -> Floats:
    return np.pad(table, ((0, 0), (0, count)))
