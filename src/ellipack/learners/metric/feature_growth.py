"""New features: those that arrive late were 0 in every row so far, and nothing learned is forgotten.

Rows that are 0 in the new features are predicted as before, to the bit: every view sees 0 as 0, so that no distance
changes and no regression has learned anything of them. For that, the number of coordinates and neighbors of local fits
stays as it was until the phase ends, and new axes stand behind the old ones in the coordinates, though the metric has
them in falling order of weight.
"""

from dataclasses import replace

import numpy as np

from ellipack._core import (
    CenterMemory,
    FeatureView,
    GlobalRegressions,
    LeastSquares,
    MetricCore,
    MetricParts,
    PackingExpert,
)
from ellipack.learners.metric.state import MetricState, empty_gop
from ellipack.metric import Metric
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats

_RANK_SCALE = 2.0  # typical sizes from the middle to the outermost knots of ranks
_EXTREME = 1e60  # scales beyond it, or below its inverse, are clipped: squares of their ratios must stay finite


def add_features(state: MetricState, scales: Floats) -> None:
    """Add features as last columns, each of a typical size; in the metric they weigh as much as the heaviest."""
    with state.learn_lock:
        _add_features(state, scales)


def _add_features(state: MetricState, scales: Floats) -> None:
    count, parts = len(scales), state.core.parts()
    clipped = np.clip(scales, 1 / _EXTREME, _EXTREME)
    metrics = tuple(metric.with_added_features(count) for metric in state.phase.metrics)
    centers, regressions = parts.centers, parts.regressions
    wider = MetricParts(
        views=[_wider_view(view, clipped) for view in parts.views],
        centers=CenterMemory(
            _more_columns(centers.rows, count), centers.label_sums, centers.label_counts, centers.round_sums
        ),
        packing=_wider_packing(parts.packing, metrics[0], count),
        regressions=GlobalRegressions(
            _wider_regression(regressions.ridge, count), _wider_regression(regressions.forgetting, count)
        ),
        aggregation=parts.aggregation,
        label_statistics=parts.label_statistics,
        feature_statistics=_more_columns(parts.feature_statistics, count),
        coordinates=[_more_columns(each, count) for each in parts.coordinates],
        clock=parts.clock,
    )
    finished = tuple(
        phase._replace(
            eigenvalues=np.append(phase.eigenvalues, np.zeros(count)),
            feature_weights=np.append(phase.feature_weights, np.zeros(count)),
        )
        for phase in state.phase.finished
    )
    core = MetricCore(state.core.settings, wider)
    state.phase = replace(state.phase, core=core, metrics=metrics, finished=finished)


def _wider_view(view: FeatureView, scales: Floats) -> FeatureView:
    """Return the view with new axes, on which all centers are at 0."""
    count, ranked = len(scales), len(view.knots) > 0
    d, rank = view.directions.shape
    directions = np.zeros((d + count, rank + count))
    directions[:d, :rank] = view.directions
    directions[d:, rank:] = np.eye(count)
    return FeatureView(
        knots=np.hstack([view.knots, _knots(len(view.knots), scales)]),
        shift=np.append(view.shift, np.full(count, 0.5 if ranked else 0.0)),
        scale=np.append(view.scale, np.full(count, 0.5 / _RANK_SCALE) if ranked else scales),
        directions=directions,
        gop=np.pad(view.gop, (0, count)) if len(view.gop) else empty_gop(d + count),
        fit_dimension=view.fit_dimension,
    )


def _knots(count: int, scales: Floats) -> Floats:
    """Return so many knots for each new feature, evenly spaced about 0, so that its rank there is a half."""
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
    """Return the regression with new coefficients of 0 and their prior; the constant stays last."""
    d = len(ridge.coefficients) - 1
    order = np.concatenate([np.arange(d), d + 1 + np.arange(count), [d]])
    inverse = np.eye(d + 1 + count)
    inverse[: d + 1, : d + 1] = ridge.inverse
    coefficients = np.append(ridge.coefficients, np.zeros(count))
    return LeastSquares(np.ascontiguousarray(inverse[np.ix_(order, order)]), coefficients[order])


def _more_columns(table: Floats, count: int) -> Floats:
    return np.pad(table, ((0, 0), (0, count)))
