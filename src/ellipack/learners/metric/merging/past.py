"""Merging of the past of the label, and the past that a run of rows starts from."""

from collections.abc import Sequence

import numpy as np

from ellipack._core import PastFeatures
from ellipack.learners.metric.merging.statistics import are_outliers
from ellipack.validation import Floats, Ints

_ERROR = 2  # place of the last error in a history

Errors = tuple[int, float, float]
"""Number of rounds, and sums of squared errors without and with the past."""


def advance_past(past: PastFeatures, label_statistics: Floats, keys: Ints, labels: Floats) -> PastFeatures:
    """Return the past after rows whose labels are known, but not their predictions: the last errors are unknown, 0.

    Parameters
    ----------
    past : PastFeatures
        The past before the rows. It is not changed.
    label_statistics : array of shape (6,)
        Statistics of the labels before the rows, which tell outliers.
    keys : array of int64, shape (n,)
        Key of each row; empty without keys.
    labels : array of shape (n,)
        Their labels.

    Returns
    -------
    advanced : PastFeatures
    """
    advanced = PastFeatures(past.labels, past.max_keys, past.stream, past.keys, past.histories)
    counts = ~are_outliers(labels, label_statistics)
    row_keys = keys if len(keys) else np.zeros(len(labels), dtype=np.int64)
    for key, label in zip(row_keys[counts].tolist(), labels[counts].tolist(), strict=True):
        advanced.add(key, label, label)
    return advanced


def merge_past_features(learned: Sequence[PastFeatures]) -> PastFeatures:
    """Return the past after all runs of rows, each of which started from the labels of those before (`advance_past`).

    The last run knows all labels. It does not know the errors of earlier runs, which are taken from them.
    """
    merged = learned[0]
    for each in learned[1:]:
        histories, stream = each.histories, each.stream
        _copy_errors(merged.stream[None, :], stream[None, :])
        places = {key: place for place, key in enumerate(merged.keys.tolist())}
        known = np.array([places.get(key, -1) for key in each.keys.tolist()], dtype=np.int64)
        found = np.flatnonzero(known >= 0)
        same = histories[found]
        _copy_errors(merged.histories[known[found]], same)
        histories[found] = same
        merged = PastFeatures(each.labels, each.max_keys, stream, each.keys, histories)
    return merged


def _copy_errors(before: Floats, after: Floats) -> None:
    """Copy the last errors of histories that did not change otherwise, in place."""
    others = np.delete(np.arange(after.shape[1]), _ERROR)
    unchanged = (before[:, others] == after[:, others]).all(axis=1)
    after[unchanged, _ERROR] = before[unchanged, _ERROR]


def merge_errors(base: Errors, learned: Sequence[Errors]) -> Errors:
    """Return sums of squared errors over all rows."""
    rounds, without_past, with_past = learned[0]
    for each in learned[1:]:
        rounds += each[0] - base[0]
        without_past += max(0.0, each[1] - base[1])
        with_past += max(0.0, each[2] - base[2])
    return rounds, without_past, with_past
