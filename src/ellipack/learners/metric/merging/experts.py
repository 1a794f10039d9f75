"""Merging of regressions, aggregations, Algorithm 1 and prediction intervals."""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from ellipack._core import (
    BernsteinAggregation,
    ConformalIntervals,
    KdTree,
    LeastSquares,
    PackingExpert,
    StackedAggregation,
)
from ellipack.validation import Floats, Ints

State = TypeVar("State")


class StateChange(NamedTuple, Generic[State]):
    """What a run of rows changed: a state before and after it."""

    start: State
    after: State


def merge_least_squares(
    base: LeastSquares, runs: Sequence[StateChange[LeastSquares]], kept: Sequence[float] | None = None
) -> LeastSquares:
    """Return the regression on all rows.

    The information of rows, the inverse of `inverse`, adds up: a run that starts with the information S and ends with A
    adds ``A - S``. If it discounts the information before it by a factor k, it changes I into ``k I + A - k S``.
    Everything is computed in units of the base, in which information is close to 1.

    Parameters
    ----------
    base : LeastSquares
        Regression before the rows.
    runs : sequence of StateChange
        Regression before and after each run of rows.
    kept : sequence of float, optional
        Factor of each run, by default 1.

    Returns
    -------
    merged : LeastSquares
        If the base is singular or not finite, the last regression.

    Examples
    --------
    >>> def fit(X, y):
    ...     inverse = np.linalg.inv(np.eye(2) + X.T @ X)
    ...     return LeastSquares(inverse, inverse @ X.T @ y)
    >>> X, y = np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 2.0, 3.0])
    >>> base = fit(X[:1], y[:1])
    >>> runs = [StateChange(base, fit(X[:2], y[:2])), StateChange(base, fit(X[[0, 2]], y[[0, 2]]))]
    >>> merged = merge_least_squares(base, runs)
    >>> bool(np.allclose(merged.coefficients, fit(X, y).coefficients))
    True
    """
    factors = [1.0] * len(runs) if kept is None else kept
    last = runs[-1].after
    if len(runs) == 1 or not all(np.isfinite(each.inverse).all() for run in runs for each in run):
        return last
    try:
        root = np.linalg.cholesky(base.inverse)
        units = solve_triangular(root, np.eye(len(root)), lower=True)
        information, gradient = np.eye(len(root)), np.zeros(len(root))
        for run, factor in zip(runs, factors, strict=True):
            start, start_gradient = _in_units(units, base, run.start)
            after, after_gradient = _in_units(units, base, run.after)
            information = factor * (information - start) + after
            gradient = factor * (gradient - start_gradient) + after_gradient
        lower = np.linalg.cholesky(information)
    except np.linalg.LinAlgError:
        return last
    inverse_root = solve_triangular(lower, root.T, lower=True)
    change = inverse_root.T @ solve_triangular(lower, gradient, lower=True)
    inverse = inverse_root.T @ inverse_root
    return LeastSquares((inverse + inverse.T) / 2, base.coefficients + change)


def _in_units(units: Floats, base: LeastSquares, regression: LeastSquares) -> tuple[Floats, Floats]:
    """Return the information and the gradient of the squared errors at the coefficients of the base, in its units."""
    if regression is base:  # most often
        return np.eye(len(units), dtype=np.float64), np.zeros(len(units))
    information = np.asarray(np.linalg.inv(units @ regression.inverse @ units.T), dtype=np.float64)
    return information, information @ (units @ (regression.coefficients - base.coefficients))


def merge_aggregation(
    base: BernsteinAggregation, runs: Sequence[StateChange[BernsteinAggregation]]
) -> BernsteinAggregation:
    """Return the aggregation whose gains and squares are sums over all rows."""
    if len(runs) == 1:
        return runs[0].after
    gains, squares, scale = base.gains, base.squares, base.scale
    for start, after in runs:
        gains = gains + (after.gains - start.gains)
        squares = squares + np.maximum(after.squares - start.squares, 0.0)
        scale = max(scale, after.scale)
    return BernsteinAggregation(base.log_priors, gains, squares, scale)


def merge_stacked_aggregation(
    base: StackedAggregation, runs: Sequence[StateChange[StackedAggregation]]
) -> StackedAggregation:
    """Return the aggregation, the stack and the top aggregation of all rows."""
    return StackedAggregation(
        merge_aggregation(base.experts, [StateChange(start.experts, after.experts) for start, after in runs]),
        merge_least_squares(base.stack, [StateChange(start.stack, after.stack) for start, after in runs]),
        merge_aggregation(base.top, [StateChange(start.top, after.top) for start, after in runs]),
    )


def merge_intervals(
    base: ConformalIntervals, learned: Sequence[ConformalIntervals], shards: Sequence[int]
) -> ConformalIntervals:
    """Return the calibration of prediction intervals after all rows.

    The logarithm of a width moves by a step times the difference between the misses of a run of rows and the number
    that is wanted. The merged width is the geometric mean over the shards: then these differences still add up, over
    all shards and all merges, to the number of shards times the total move of the logarithm over the step. It stays
    bounded, so that the theorem of `ellipack.learners.intervals` holds with a constant that is multiplied by the number
    of shards. (The sum of the moves would make each shard correct the same deviation, and overshoot.)

    The mean error, the losses of scales and the excess of misses are recent: those of the last run.

    Parameters
    ----------
    base : ConformalIntervals
        Calibration before the rows.
    learned : sequence of ConformalIntervals
        Calibration after each run of rows.
    shards : sequence of int
        Number of shards of each run.

    Returns
    -------
    merged : ConformalIntervals
    """
    if len(learned) == 1:
        return learned[0]
    last = learned[-1]
    logarithms = sum(count * np.log(each.widths) for count, each in zip(shards, learned, strict=True)) / sum(shards)
    return ConformalIntervals(
        last.mean_error,
        base.labels + sum(each.labels - base.labels for each in learned),
        base.rounds + sum(each.rounds - base.rounds for each in learned),
        np.clip(np.exp(logarithms), base.smallest_width, base.largest_width),
        last.scale_losses,
        last.excess_misses,
    )


def merge_packing(base: PackingExpert, learned: Sequence[PackingExpert]) -> PackingExpert:
    """Return Algorithm 1 with the centers of all runs of rows, which may be too close to each other."""
    if len(learned) == 1:
        return learned[0]
    old, last = len(base.label_sums), learned[-1]
    sums, counts = base.label_sums, base.label_counts
    for each in learned:
        sums += each.label_sums[:old] - base.label_sums
        counts += each.label_counts[:old] - base.label_counts
    return PackingExpert(
        np.concatenate([base.coordinates, *(each.coordinates[old:] for each in learned)]),
        np.concatenate([sums, *(each.label_sums[old:] for each in learned)]),
        np.concatenate([counts, *(each.label_counts[old:] for each in learned)]),
        np.concatenate([base.creation_rounds, *(each.creation_rounds[old:] for each in learned)]),
        base.rank_starts,
        last.clock,
        base.coordinate_scale,
        base.max_centers,
    )


def separate_packing(packing: PackingExpert, first: int) -> PackingExpert:
    """Return Algorithm 1 without centers that are too close to an earlier one.

    Parameters
    ----------
    packing : PackingExpert
        Algorithm 1 with centers in the order of their creation.
    first : int
        Number of centers that are kept as they are. Each later one is kept if it is farther from those before than the
        radius of its round, and if there is room; otherwise its labels go to the nearest one.

    Returns
    -------
    separated : PackingExpert
    """
    points, sums, counts = packing.coordinates, packing.label_sums, packing.label_counts
    rounds = packing.creation_rounds
    radii = _radii(rounds, packing.rank_starts)
    kept = list(range(max(first, min(1, len(points)))))
    tree = KdTree(points.shape[1])
    tree.insert(points[: len(kept)])
    for place in range(len(kept), len(points)):
        nearest, squared_distance = tree.nearest(points[place : place + 1])
        if np.sqrt(squared_distance[0]) > radii[place] and len(kept) < packing.max_centers:
            tree.insert(points[place : place + 1])
            kept.append(place)
        else:
            sums[kept[nearest[0]]] += sums[place]
            counts[kept[nearest[0]]] += counts[place]
    return PackingExpert(
        points[kept],
        sums[kept],
        counts[kept],
        rounds[kept],
        packing.rank_starts,
        packing.clock,
        packing.coordinate_scale,
        packing.max_centers,
    )


def _radii(rounds: Ints, rank_starts: Ints) -> Floats:
    """Return the radius of Algorithm 1 in each round."""
    ranks = 1 + np.searchsorted(rank_starts, rounds, side="right")
    return np.asarray(rounds.astype(np.float64) ** (-1.0 / (1.0 + ranks)))
