"""More features: those that come late were 0 in every row so far, and nothing learned is forgotten.

Whoever is 0 in them is predicted as before, to the bit: in every view 0 is seen as 0, so that no distance changes and
no regression has learned anything of them. For that, what is set by the number of features (how many coordinates and
neighbours take part in local fits) stays as it was until the phase ends, and new axes stand behind the old ones in
whitened coordinates, though the metric has them in falling order of weight.
"""

import numpy as np

from ellipack.learners.aggregation._kernels import LeastSquares
from ellipack.learners.metric.machine import View
from ellipack.learners.metric.state import MetricState
from ellipack.metric import UNSEEN
from ellipack.packing.index import Index
from ellipack.packing.tree import state as trees
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats

_RANKED = 2.0  # typical sizes from the middle to the outermost knots of ranks
_EXTREME = 1e60  # hints beyond it, or below its inverse, are held: squares of their ratios must stay finite


def widen(state: MetricState, scales: Floats) -> None:
    """Take more features, the last ones, a typical size each; in the metric they weigh as much as the heaviest."""
    machine, size, count = state.machine, state.n_centers, len(scales)
    held = np.clip(scales, 1 / _EXTREME, _EXTREME)
    metrics = tuple(metric.widened(count) for metric in state.metrics)
    packed = machine.packing.coordinates
    moved = machine._replace(
        views=tuple(_widened(view, held, size) for view in machine.views),
        memory=machine.memory._replace(rows=_more_columns(machine.memory.rows, count)),
        packing=machine.packing.re_embedded(_more_columns(packed, count)),
        rank_starts=rank_starts(metrics[0].eigenvalues),
        ridge=_widened_ridge(machine.ridge, count),
        fading=_widened_ridge(machine.fading, count),
        features=_more_columns(machine.features, count),
    )
    phases = [
        phase._replace(metrics=tuple(metric.widened(count, UNSEEN) for metric in phase.metrics))
        for phase in state.phases
    ]
    with state.gate.changing():
        state.machine, state.metrics, state.phases = moved, metrics, phases


def _widened(view: View, scales: Floats, size: int) -> View:
    """Return the view with new axes, in which all centres are at 0."""
    count = len(scales)
    directions = np.eye(len(view.scale) + count)
    directions[:-count, :-count] = view.directions
    coordinates = _more_columns(Index(view.points).points(), count)
    points = Index.build(coordinates).tree if size else trees.empty(coordinates.shape[1])
    ranked = len(view.knots) > 0
    return view._replace(
        knots=np.hstack([view.knots, _knots(len(view.knots), scales)]),
        shift=np.append(view.shift, np.full(count, 0.5 if ranked else 0.0)),
        scale=np.append(view.scale, np.full(count, 0.5 / _RANKED) if ranked else scales),
        directions=directions,
        points=points,
        gop=np.pad(view.gop, (0, count)),
    )


def _knots(count: int, scales: Floats) -> Floats:
    """Return so many knots for each new feature, even about 0, so that its rank there is a half."""
    steps = np.arange(1 - count, count, 2) / max(1, count - 1)
    return np.outer(steps, _RANKED * scales)


def _widened_ridge(ridge: LeastSquares, count: int) -> LeastSquares:
    """Return the regression with new coefficients of 0 and nothing but the prior to go by; the constant stays last."""
    d = len(ridge.coefficients) - 1
    order = np.concatenate([np.arange(d), d + 1 + np.arange(count), [d]])
    inverse = np.eye(d + 1 + count)
    inverse[: d + 1, : d + 1] = ridge.inverse
    coefficients = np.append(ridge.coefficients, np.zeros(count))
    return LeastSquares(np.ascontiguousarray(inverse[np.ix_(order, order)]), coefficients[order])


def _more_columns(table: Floats, count: int) -> Floats:
    return np.pad(table, ((0, 0), (0, count)))
