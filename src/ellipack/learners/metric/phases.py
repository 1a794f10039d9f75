"""The end of a phase: scales are set anew, a metric is chosen, and everything is seen through it."""

import numpy as np

from ellipack.learners.aggregation import bernstein
from ellipack.learners.aggregation._kernels import LeastSquares, weigh
from ellipack.learners.metric.machine import COUNT, HIGH, LOW, MEAN, SQUARES, WILD, Machine, View
from ellipack.learners.metric.seeing._kernels import see_rows
from ellipack.learners.metric.selection import Jury, choose
from ellipack.learners.metric.state import FIRST_PHASE, MetricPhase, MetricState, fitted, re_embedded
from ellipack.metric import Metric
from ellipack.packing.centers import Centers
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats, Ints

_KNOTS = 256  # between which ranks are interpolated
_FEWEST_JUDGES = 8
_JUDGES_EARLY, _JUDGES_PART = 60, 8
_OUTGROWN = 1e4  # times the variance by which the stack's prior was set
_ROUNDING = 1e-13  # of a feature's size: the running mean of a constant is that far off
_FARTHEST_CONVERTED = 1e3
_LEAST_WEIGHT = 1e-8  # of a direction beside the heaviest: lighter, it could not be told from rounding in the heavier
_REFIT = 1000  # up to so many centres the global regression is fitted anew, in the new units; then only converted
_REFIT_FADING = 100  # the same of the one that fades, but rounds: what it has forgotten, centres still know
_LONGEST = 1e150  # a direction whose square is a number
_LEAST_PRIOR = 1e-150  # of the stack; by a smaller one, labels that grow would overflow


def end_phase(state: MetricState) -> None:
    """Move the state on to its next phase."""
    machine, size = state.machine, state.n_centers
    rng = np.random.default_rng([state.random_state, len(state.phases)])
    pool = _draw(rng, size, state.config.pool)
    views, metrics, choices, reach = [], [], [], 0.0
    for v, view in enumerate(machine.views):
        fresh = _rescaled(machine, view, v, pool)
        name, metric = _chosen(state, v, fresh, pool, rng)
        moved = fresh._replace(directions=metric.directions, gop=np.zeros_like(fresh.gop))
        seen, farthest = re_embedded(moved, machine.memory.rows[:size])
        views.append(seen)
        reach = reach if v else farthest
        metrics.append(metric)
        choices.append(name)
    weights = np.empty(len(machine.mixture.gains))
    weigh(machine.mixture, weights)
    state.phases.append(MetricPhase(len(state.phases) + 1, state.clock, size, tuple(metrics), tuple(choices), weights))
    machine.clock[1] = 0
    machine.labels[WILD] /= 2
    machine.features[WILD] /= 2
    units, early = (machine.views[0], views[0]), state.clock <= _REFIT_FADING
    state.machine = machine._replace(
        views=tuple(views),
        packing=Centers.init(len(fresh.scale)),
        rank_starts=rank_starts(metrics[0].eigenvalues),
        reach=np.array([reach if reach > 0 else 1.0]),
        ridge=_refitted(machine, views[0], size) if size <= _REFIT else _converted(machine.ridge, *units),
        fading=_refitted(machine, views[0], size) if early else _converted(machine.fading, *units),
        mixture=bernstein.restarted(machine.mixture),
        top=bernstein.restarted(machine.top),
        stack=_started_stack(machine, state.config.stack_prior),
    )
    state.metrics, state.fitted = tuple(metrics), fitted(len(fresh.scale))
    state.phase_end = state.clock + max(FIRST_PHASE, int((state.config.growth - 1) * state.clock))


def _draw(rng: np.random.Generator, size: int, most: int) -> Ints:
    return np.arange(size) if size <= most else np.sort(rng.choice(size, most, replace=False))


def _rescaled(machine: Machine, view: View, v: int, pool: Ints) -> View:
    """Return a view with new scales: of the features themselves in the first view, of their ranks in others."""
    if v == 0:
        variance = machine.features[SQUARES] / machine.labels[COUNT]
        sizes = np.maximum(np.abs(machine.features[LOW]), np.abs(machine.features[HIGH]))
        return view._replace(shift=machine.features[MEAN].copy(), scale=_deviation(variance, sizes))
    rows = machine.memory.rows[pool]
    knots = np.quantile(rows, np.linspace(0, 1, min(_KNOTS, max(2, len(rows)))), axis=0)
    d = rows.shape[1]
    ranks = np.empty_like(rows)
    plain = view._replace(knots=np.ascontiguousarray(knots), shift=np.zeros(d), scale=np.ones(d))
    see_rows(plain, rows, ranks)
    return plain._replace(shift=ranks.mean(axis=0), scale=_deviation(ranks.var(axis=0), np.ones(d)))


def _deviation(variance: Floats, sizes: Floats) -> Floats:
    """Return standard deviations; what never varied, but for rounding at its size, keeps its unit."""
    return np.sqrt(np.where(variance > (_ROUNDING * sizes) ** 2, variance, 1.0))


def _chosen(state: MetricState, v: int, fresh: View, pool: Ints, rng: np.random.Generator) -> tuple[str, Metric]:
    """Return the metric chosen for a view as it is now seen, and the name of the candidate."""
    memory, view = state.machine.memory, state.machine.views[v]
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # units may be anything; who chooses leaves out what is no number
        # Slopes and directions were measured in the old units; if these were far too small, they say little in the new.
        ratio = np.minimum(fresh.scale / view.scale, _FARTHEST_CONVERTED)
        gop, current = view.gop * np.outer(ratio, ratio), ratio[:, None] * view.directions
    name = "current"
    if len(pool) >= _FEWEST_JUDGES:
        seen = np.empty((len(pool), len(ratio)))
        see_rows(fresh, memory.rows[pool], seen)
        labels = memory.label_sums[pool] / memory.label_counts[pool]
        jury = Jury(seen, labels, _draw(rng, len(pool), _judges(state)), state.neighbors)
        name, current = choose(gop, current, jury, state.config, state.reputations[v])
    # The same distances by orthogonal directions, in falling order, as a metric has them.
    vectors, lengths, _ = np.linalg.svd(current)
    weights = np.maximum((lengths / lengths[0]) ** 2, _LEAST_WEIGHT)
    return name, Metric(weights, np.ascontiguousarray(vectors), float(min(lengths[0], _LONGEST) ** 2))


def _judges(state: MetricState) -> int:
    """Return how many centres judge: a part of all, so that early phases, of which there are many, cost little."""
    return max(min(_JUDGES_EARLY, state.config.judged), min(state.config.judged, state.n_centers // _JUDGES_PART))


def _refitted(machine: Machine, new: View, size: int) -> LeastSquares:
    """Return the global regression fitted anew, so that its prior counts in standard units too."""
    d, seen = len(new.scale), np.empty((size, len(new.scale)))
    see_rows(new, machine.memory.rows[:size], seen)
    features = np.column_stack([seen, np.ones(size)])
    counts = machine.memory.label_counts[:size]
    inverse = np.linalg.inv((features * counts[:, None]).T @ features + np.diag([1.0] * d + [1e-6]))
    return LeastSquares((inverse + inverse.T) / 2, inverse @ features.T @ machine.memory.label_sums[:size])


def _converted(regression: LeastSquares, old: View, new: View) -> LeastSquares:
    """Return a global regression in the new units of the features.

    With ``s = r s' + c`` between old and new units, coefficients become ``A^T theta`` and the inverse Gram matrix
    ``A^T P A``, A being the matrix of that map.
    """
    d = len(new.scale)
    map_ = np.diag(np.append(new.scale / old.scale, 1.0))
    map_[:d, d] = (new.shift - old.shift) / old.scale
    inverse = map_.T @ regression.inverse @ map_
    return LeastSquares(np.ascontiguousarray(inverse + inverse.T) / 2, map_.T @ regression.coefficients)


def _started_stack(machine: Machine, prior: float) -> LeastSquares:
    """Return the stack, set going if it was not yet and the labels have shown a variance.

    It begins anew if they vary far more than when it began: its prior, by their variance, would hold it no more.
    """
    variance = machine.labels[SQUARES] / machine.labels[COUNT]
    loosest, held = machine.stack.inverse.diagonal().max(), max(prior * variance, _LEAST_PRIOR)
    if not variance > 0 or 0 < loosest < _OUTGROWN / held:
        return machine.stack
    experts = len(machine.stack.coefficients)
    return LeastSquares(np.eye(experts) / held, np.zeros(experts))
