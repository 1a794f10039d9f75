"""Merging of running means and sums of squares."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ellipack.learners.metric.state import COUNT, HIGH, LOW, MEAN, OUTLIERS, SQUARES
from ellipack.validation import Floats

_OUTLIER_WIDTHS = 3.0  # as in cpp/feature_views.cpp


class Statistics(NamedTuple):
    """Statistics of the labels and of each feature; see `ellipack.learners.metric.state.MEAN`.

    Attributes
    ----------
    labels : array of shape (6,)
    features : array of shape (5, d)
    """

    labels: Floats
    features: Floats


def merge_statistics(base: Statistics, learned: Sequence[Statistics]) -> Statistics:
    """Return the statistics of all rows.

    Means and squares are those of all rows, up to rounding. The number of outliers says how large a jump is believed;
    each shard that sees the same jump counts the same outliers, so that the largest number is taken, not the sum.

    Examples
    --------
    >>> def of(values):
    ...     mean, squares = np.mean(values), np.var(values) * len(values)
    ...     labels = np.array([mean, squares, min(values), max(values), 0.0, len(values)])
    ...     return Statistics(labels, labels[:5, None])
    >>> merged = merge_statistics(of([0.0, 2.0]), [of([0.0, 2.0, 4.0]), of([0.0, 2.0, 7.0, 7.0])])
    >>> merged.labels.tolist() == of([0.0, 2.0, 4.0, 7.0, 7.0]).labels.tolist()
    True
    """
    if len(learned) == 1:
        return learned[0]
    before, count = _columns(base), float(base.labels[COUNT])
    merged, total = _columns(learned[0]).copy(), float(learned[0].labels[COUNT])
    for each in learned[1:]:
        after, count_after = _columns(each), float(each.labels[COUNT])
        new = count_after - count
        if new > 0:
            gap = (after[MEAN] - before[MEAN]) * (count_after / new)  # mean of the new rows, minus the mean before
            squares = after[SQUARES] - before[SQUARES] - gap**2 * (count * (new / count_after))
            gap += before[MEAN] - merged[MEAN]
            merged[SQUARES] += np.maximum(squares, 0.0) + gap**2 * (total * (new / (total + new)))
            total += new
            merged[MEAN] += gap * (new / total)
        merged[LOW] = np.minimum(merged[LOW], after[LOW])
        merged[HIGH] = np.maximum(merged[HIGH], after[HIGH])
        merged[OUTLIERS] = np.maximum(merged[OUTLIERS], after[OUTLIERS])
    return Statistics(np.append(merged[:, -1], total), np.ascontiguousarray(merged[:, :-1]))


def _columns(statistics: Statistics) -> Floats:
    """Return the statistics of the features and, in the last column, those of the labels."""
    return np.column_stack([statistics.features, statistics.labels[:COUNT]])


def are_outliers(values: Floats, statistics: Floats) -> NDArray[np.bool_]:
    """Return a mask of outliers; see `ellipack.learners.metric.learner`.

    Parameters
    ----------
    values : array of shape (n,) or (n, d)
        Labels, or rows.
    statistics : array of shape (6,) or (5, d)
        Statistics of the labels, or of the features.

    Returns
    -------
    mask : array of bool, with the shape of the values
    """
    low, high = statistics[LOW], statistics[HIGH]
    with np.errstate(over="ignore"):
        width = _OUTLIER_WIDTHS * (high - low) * 10.0 ** statistics[OUTLIERS]
    return np.asarray((width > 0) & ((values < low - width) | (values > high + width)))


def clip_outliers(rows: Floats, statistics: Floats) -> Floats:
    """Return rows whose outliers are clipped to the range of the feature, extended by its width on both sides."""
    low, high = statistics[LOW], statistics[HIGH]
    clipped = np.clip(rows, low - (high - low), high + (high - low))
    return np.where(are_outliers(rows, statistics), clipped, rows)
