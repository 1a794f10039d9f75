"""Correlated columns: which ones stand in for each other, and how they divide the importance of all together.

If columns carry the same information, a learner may use any of them. Which one it prefers depends on the order of the
rows. What they do to the error together does not, and neither does how well each of them explains the labels.
"""

from typing import Final, NamedTuple

import numpy as np

from ellipack._core import CenterMemory, rank_correlation, standardized_columns
from ellipack.validation import Floats

_MIN_CORRELATION: Final = 0.8  # from which columns are measured together
_KEPT_CORRELATION: Final = 0.7  # from which they stay together
_LARGEST_PART: Final = 0.2  # of the variance of a feature that one row may have; levels of few rows correlate by chance
_MIN_ROWS, _MAX_ROWS = 30, 500  # centers, evenly spaced, that correlations use
_ROUNDING: Final = 1e-9  # of a length or an eigenvalue that is not 0
_MIN_TREND: Final = 0.3  # correlation with the round from which that of ranks is computed
_PARTS: Final = 5  # of the rows, by which standard errors of divisions are estimated
_MAX_DEVIATION: Final = 2.5  # mean absolute deviations, beyond which outliers are clipped
_MAX_FEATURES: Final = 1000  # beyond which correlations are not computed, to save time


class StandardizedCenters(NamedTuple):
    """Some centers, of mean 0 and length 1 by column; constants are 0. There are no rows if there are few centers.

    Attributes
    ----------
    rounds, labels : array of shape (n,)
        Mean round and mean label of each center.
    features : array of shape (n, d)
        Features.
    """

    rounds: Floats
    labels: Floats
    features: Floats


def standardize_centers(centers: CenterMemory) -> StandardizedCenters:
    """Return centers, evenly spaced in time, for correlations."""
    count, d = len(centers), centers.dimension
    if count < _MIN_ROWS or d > _MAX_FEATURES:
        return StandardizedCenters(np.zeros(0), np.zeros(0), np.zeros((0, d)))
    columns = standardized_columns(centers, _MAX_ROWS)
    return StandardizedCenters(columns[0], columns[1], columns[2:].T)


def trend_correlations(centers: StandardizedCenters) -> Floats:
    """Return the absolute correlation of each feature with the round, of ranks if it is not small.

    The rank correlation is 1 for all that only grows or only falls, straight or not.
    """
    correlations = np.abs(centers.rounds @ centers.features)
    for k in np.flatnonzero(correlations > _MIN_TREND).tolist():
        correlations[k] = abs(rank_correlation(centers.rounds, centers.features[:, k]))
    return np.asarray(correlations)


def correlated_columns(
    features: Floats, columns: tuple[int, ...], before: tuple[tuple[int, ...], ...] = ()
) -> tuple[tuple[int, ...], ...]:
    """Return the sets of columns that are connected by strong correlations of two of their features.

    Parameters
    ----------
    features : array of shape (n, d)
        Standardized features; those that are 0 are in no set.
    columns : tuple of int
        Number of the column of each feature.
    before : tuple of tuple of int, default ()
        Sets so far. Columns stay together down to a somewhat smaller correlation.

    Returns
    -------
    sets : tuple of tuple of int
    """
    if not len(features):
        return ()
    largest = np.abs(features).max(axis=0)
    kept = largest**2 <= _LARGEST_PART
    correlations = np.abs(features.T @ features)
    group = {column: {column} for column in dict.fromkeys(columns)}
    set_before = {column: number for number, each in enumerate(before) for column in each}
    rows, others = np.nonzero(correlations > _KEPT_CORRELATION)
    pairs = (rows < others) & kept[rows] & kept[others]
    for i, j in zip(rows[pairs].tolist(), others[pairs].tolist(), strict=True):
        first, second = columns[i], columns[j]
        were_together = first in set_before and set_before[first] == set_before.get(second)
        if (were_together or correlations[i, j] > _MIN_CORRELATION) and group[first] is not group[second]:
            merged = group[first] | group[second]
            group.update(dict.fromkeys(merged, merged))
    sets = {tuple(sorted(each)) for each in group.values() if len(each) > 1}
    return tuple(sorted(sets))


class Division(NamedTuple):
    """How correlated columns divide their importance.

    Attributes
    ----------
    fractions : tuple of float
        Fraction that each column gets; they add up to 1.
    stds : tuple of float
        Their standard errors.
    """

    fractions: tuple[float, ...]
    stds: tuple[float, ...]


def divide_importance(centers: StandardizedCenters, features: list[list[int]]) -> Division:
    """Return the fraction of the importance of correlated columns that each of them gets.

    The fractions are those of `relative_weights`, with clipped outliers. What a linear regression does not explain is
    divided equally. They do not depend on the order of the rows, nor on which column the learner prefers. Standard
    errors come from their variation over parts of the rows. With too few rows, fractions are equal, and so are errors.

    Parameters
    ----------
    centers : StandardizedCenters
        Rows and labels.
    features : list of list of int
        Features of each column.

    Returns
    -------
    division : Division
    """
    sizes = [len(each) for each in features]
    count = len(centers.labels) // _PARTS * _PARTS
    if not count:
        equal = (1 / len(sizes),) * len(sizes)
        return Division(equal, equal)
    table = _clip_outliers(centers.features[:, [feature for each in features for feature in each]])
    labels = _clip_outliers(centers.labels)
    parts = _divide(_split(table[:count]), _split(labels[:count]), sizes)
    stds = parts.std(axis=0, ddof=1) / np.sqrt(_PARTS)
    return Division(tuple(_divide(table, labels, sizes).tolist()), tuple(stds.tolist()))


def _clip_outliers(centered: Floats) -> Floats:
    """Return columns of mean 0 with clipped outliers: one wrong value must not hide a correlation."""
    largest = _MAX_DEVIATION * np.abs(centered).mean(axis=0)
    return np.asarray(np.clip(centered, -largest, largest))


def _split(values: Floats) -> Floats:
    """Return every fifth row, from the first five on, as five parts along a new first axis."""
    return np.swapaxes(values.reshape(-1, _PARTS, *values.shape[1:]), 0, 1)


def _divide(table: Floats, labels: Floats, sizes: list[int]) -> Floats:
    """Return the fractions of columns that have these numbers of features."""
    weights = np.add.reduceat(relative_weights(table, labels), np.cumsum([0, *sizes[:-1]]), axis=-1)
    fractions = weights + np.maximum(0.0, 1.0 - weights.sum(axis=-1, keepdims=True)) / len(sizes)
    return np.asarray(fractions / fractions.sum(axis=-1, keepdims=True))


def relative_weights(table: Floats, labels: Floats) -> Floats:
    """Return Johnson's relative weights of variables: what each adds to the variance that a regression explains.

    The regression is on the uncorrelated variables that are nearest to the given ones. What these explain is divided by
    their squared correlations with the given ones. The sum is the fraction of the variance that is explained.

    Parameters
    ----------
    table : array of shape (..., n, d)
        Variables, of one or more tables.
    labels : array of shape (..., n)
        Labels.

    Returns
    -------
    weights : array of shape (..., d)

    References
    ----------
    J. W. Johnson, "A heuristic method for estimating the relative weight of predictor variables in multiple
    regression", Multivariate Behavioral Research 35 (2000).

    Examples
    --------
    >>> a, b = np.random.default_rng(0).normal(size=(2, 500))
    >>> relative_weights(np.column_stack([a, a + 0.2 * b]), a).round(2).tolist()
    [0.52, 0.48]
    """
    joint = _correlations(np.concatenate([table, labels[..., None]], axis=-1))
    squares, vectors = np.linalg.eigh(joint[..., :-1, :-1])
    roots = np.sqrt(np.where(squares > _ROUNDING, squares, 0.0))[..., None, :]
    inverses = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    back = np.swapaxes(vectors, -1, -2)
    correlations = (vectors * roots) @ back  # of the variables with the nearest uncorrelated ones
    effects = (vectors * inverses) @ back @ joint[..., :-1, -1:]
    return np.asarray((correlations**2 @ effects**2)[..., 0])


def _correlations(table: Floats) -> Floats:
    """Return the correlations of columns; those of constants are 0."""
    centered = table - table.mean(axis=-2, keepdims=True)
    products = np.swapaxes(centered, -1, -2) @ centered
    lengths = np.sqrt(np.diagonal(products, axis1=-2, axis2=-1))
    inverses = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > _ROUNDING)
    return np.asarray(products * inverses[..., :, None] * inverses[..., None, :])
