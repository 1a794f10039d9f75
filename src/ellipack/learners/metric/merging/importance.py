"""Merging of what was measured about the importance of columns."""

from collections.abc import Sequence

import numpy as np

from ellipack._core import FeatureGroup, ImportanceParts
from ellipack.validation import Floats, Ints

_N_MEASURED, _N_CONTROLS = 5, 4  # variables of the moments in the sums of a group
_PAIRS = np.tril_indices(_N_MEASURED)  # variables whose products are summed, where rises are measured
_SQUARES = np.arange(_N_CONTROLS), np.arange(_N_CONTROLS)  # the same of the controls at all rounds
_TOTAL, _RECENT = 0, 1  # rows of the sums
_LEAST_MEMORY, _MEMORY_DIVISOR = 512.0, 4.0  # rounds of the recent window, as in cpp/column_importance.cpp
_RECENT_FACTOR = 4  # place among the errors

Pairs = tuple[Ints, Ints]
"""Two variables of each product."""


def discount_of(first: int, last: int) -> float:
    """Return the factor by which the rounds from `first` to `last` - 1 discount the recent weights of earlier ones."""
    memory = np.maximum(_LEAST_MEMORY, np.arange(first, last) / _MEMORY_DIVISOR)
    return float(np.prod(1 - 1 / memory))


def merge_importance(
    base: ImportanceParts, learned: Sequence[ImportanceParts], discounts: Sequence[float]
) -> ImportanceParts:
    """Return what was measured over all rows.

    Parameters
    ----------
    base : ImportanceParts
        What was measured before the rows.
    learned : sequence of ImportanceParts
        What was measured after each run of rows.
    discounts : sequence of float
        Factor of each run, see `discount_of`.

    Returns
    -------
    merged : ImportanceParts
    """
    if len(learned) == 1:
        return learned[0]
    sums, errors = _sums(learned[0]), learned[0].errors
    for each, discount in zip(learned[1:], discounts[1:], strict=True):
        sums = _merge_sums(_sums(base), sums, _sums(each), discount)
        errors = _merge_errors(base.errors, errors, each.errors, discount)
    errors[_RECENT_FACTOR] = 1.0  # it is in the sums
    last = learned[-1]
    groups = [
        FeatureGroup(
            group.features,
            group.uses_past,
            group.priority,
            group.count + sum(each.groups[g].count - group.count for each in learned),
            last.groups[g].fraction,
            last.groups[g].change,
            last.groups[g].size,
            np.ascontiguousarray(sums[g]),
        )
        for g, group in enumerate(base.groups)
    ]
    increases, decreases = base.moves
    moves = (
        increases + sum(each.moves[0] - increases for each in learned),
        decreases + sum(each.moves[1] - decreases for each in learned),
    )
    seen, sample = _merge_samples(base, learned)
    return ImportanceParts(base.seed, groups, seen, sample, errors, last.last_row, moves, base.slope_model)


def _sums(parts: ImportanceParts) -> Floats:
    """Return the sums of all groups, of shape (n_groups, 2, n_sums), with the factor of recent measurements in them."""
    sums = np.array([group.sums for group in parts.groups]).reshape(-1, 2, FeatureGroup.sum_count)
    factor = float(parts.errors[_RECENT_FACTOR])
    for part, _, kept in _moments(factor)[:2]:
        moments = sums[:, _RECENT, part]
        moments[:, 0] *= kept
        moments[:, 1] *= kept**2
        moments[:, 2 + _N_MEASURED :] *= kept
    return sums


def _moments(discount: float) -> list[tuple[slice, Pairs, float]]:
    """Return the place, the pairs of variables and the factor of the moments in a row of sums.

    They are those of measurements, of the same with squared weights, and of the controls at all rounds with different
    values. The last two numbers of a row, the sum of the weights of rounds and the fraction of those, are no moments.
    Rounds of a shard have the weights of their numbers in the shard.
    """
    size = 2 + _N_MEASURED + len(_PAIRS[0])
    return [
        (slice(size), _PAIRS, discount),
        (slice(size, 2 * size), _PAIRS, discount**2),
        (slice(2 * size, -2), _SQUARES, discount),
    ]


def _merge_sums(base: Floats, before: Floats, after: Floats, discount: float) -> Floats:
    """Return sums over the runs before and one more, which was learned from the base alone."""
    merged = np.empty_like(before)
    for row, factor in ((_TOTAL, 1.0), (_RECENT, discount)):
        for part, pairs, kept in _moments(factor):
            merged[:, row, part] = _merge_moments(
                base[:, row, part], before[:, row, part], after[:, row, part], kept, pairs
            )
        differing = _merge_means(base[:, row, -2:], before[:, row, -2:], after[:, row, -2:], factor)
        differing[:, 1] = np.minimum(differing[:, 1], 1.0)  # a fraction, up to rounding
        merged[:, row, -2:] = differing
    return merged


def _merge_moments(base: Floats, before: Floats, after: Floats, kept: float, pairs: Pairs) -> Floats:
    """Return moments of variables; see cpp/rise_estimates.hpp.

    They are weight, squared weight, means, and the products of the deviations of pairs of variables.
    """
    i, j = pairs
    count = int(i[-1]) + 1
    means, products = slice(2, 2 + count), slice(2 + count, None)
    old = kept * base[:, :1]
    new = np.maximum(after[:, :1] - old, 0.0)  # weight of the rounds of this run
    has_new = new > 1e-9 * after[:, :1]
    share = np.where(has_new, after[:, :1] / np.where(has_new, new, 1.0), 0.0)
    gap = (after[:, means] - base[:, means]) * share  # mean of the new rounds, minus the mean of the base
    factor = np.where(has_new, old * new / np.where(has_new, after[:, :1], 1.0), 0.0)
    added = after[:, products] - kept * base[:, products] - factor * gap[:, i] * gap[:, j]
    gap += np.where(has_new, base[:, means] - before[:, means], 0.0)
    earlier = kept * before[:, :1]
    weight = earlier + new
    step = np.where(weight > 0, new / np.where(weight > 0, weight, 1.0), 0.0)
    merged = np.empty_like(before)
    merged[:, :1] = weight
    merged[:, 1] = kept**2 * before[:, 1] + np.maximum(after[:, 1] - kept**2 * base[:, 1], 0.0)
    merged[:, means] = before[:, means] + step * gap
    merged[:, products] = (
        kept * before[:, products] + np.where(has_new, added, 0.0) + earlier * step * gap[:, i] * gap[:, j]
    )
    diagonal = 2 + count + np.flatnonzero(i == j)
    merged[:, diagonal] = np.maximum(merged[:, diagonal], 0.0)
    return merged


def _merge_errors(base: Floats, before: Floats, after: Floats, kept: float) -> Floats:
    """Return weights and means of the squared errors, over all and over recent rounds."""
    merged = before.copy()
    for part, factor in ((slice(0, 2), 1.0), (slice(2, 4), kept)):
        merged[part] = _merge_means(base[part], before[part], after[part], factor)
    return merged


def _merge_means(base: Floats, before: Floats, after: Floats, kept: float) -> Floats:
    """Return weights and means, of shape (..., 2), of values that are not negative."""
    new = np.maximum(0.0, after[..., 0] - kept * base[..., 0])
    has_new = new > 0
    weight = np.where(has_new, kept * before[..., 0] + new, before[..., 0])
    share, step = (
        np.divide(a, b, out=np.zeros_like(new), where=has_new) for a, b in ((after[..., 0], new), (new, weight))
    )
    mean = base[..., 1] + (after[..., 1] - base[..., 1]) * share
    return np.stack([weight, np.maximum(0.0, before[..., 1] + (mean - before[..., 1]) * step)], axis=-1)


def _merge_samples(
    base: ImportanceParts, learned: Sequence[ImportanceParts]
) -> tuple[int, tuple[Floats, Floats, Floats]]:
    """Return the number of rows so far, and the sample of them with the rows that each run put into it."""
    if base.seen < ImportanceParts.max_rows:
        return _append_samples(base, learned)
    start, sample = base.sample, base.sample
    for each in learned:
        own = each.sample
        replaced = (own[0] != start[0]).any(axis=1)
        for merged, new in zip(sample, own, strict=True):
            merged[replaced] = new[replaced]
    return learned[-1].seen, sample


def _append_samples(
    base: ImportanceParts, learned: Sequence[ImportanceParts]
) -> tuple[int, tuple[Floats, Floats, Floats]]:
    """Return the same for a sample that was not full: the rows of all runs, evenly spaced if there are too many."""
    seen = base.seen + sum(each.seen - base.seen for each in learned)
    runs = [base.sample, *(tuple(part[base.seen :] for part in each.sample) for each in learned)]
    rows, gradients, past_rows = (np.concatenate(parts) for parts in zip(*runs, strict=True))
    picked = np.linspace(0, len(rows) - 1, min(seen, ImportanceParts.max_rows)).astype(np.int64)
    return seen, (rows[picked], gradients[picked], past_rows[picked])
