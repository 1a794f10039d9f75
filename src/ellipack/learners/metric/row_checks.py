"""Checks of the rows, labels and keys that are passed to the learner of `MetricRegressor`."""

from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import MetricCore
from ellipack.errors import DomainError, ShapeError
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats, Ints, as_floats, check_labels, check_rows

NO_KEYS: Final[Ints] = np.zeros(0, dtype=np.int64)
"""Keys of rows for a learner without keys."""


def checked_rows(core: MetricCore, X: ArrayLike) -> Floats:
    """Return rows as an array, or raise. Arrays that the core accepts are not checked again."""
    if type(X) is np.ndarray and X.dtype == np.float64 and core.accepts_rows(X):
        return X
    table = check_rows(X, core.dimension)
    largest = np.abs(table).max()
    if largest > MAX_ABS_VALUE:
        raise DomainError(f"X must be at most {MAX_ABS_VALUE:g} in size, got {largest:g}")
    return table


def checked_labels(core: MetricCore, y: ArrayLike, count: int) -> Floats:
    """Return labels as an array, or raise. Arrays that the core accepts are not checked again."""
    if type(y) is np.ndarray and y.dtype == np.float64 and core.accepts_labels(y, count):
        return y
    targets = check_labels(y, count)
    largest = np.abs(targets).max()
    if largest > MAX_ABS_LABEL:
        raise DomainError(f"y must be at most {MAX_ABS_LABEL:g} in size, got {largest:g}")
    return targets


def checked_known_labels(labels: ArrayLike, count: int) -> Floats:
    """Return labels of which some may be NaN, or raise."""
    unknown = [np.nan if each is None else each for each in labels] if isinstance(labels, list | tuple) else labels
    known = as_floats(unknown, "labels")
    if known.shape != (count,):
        raise ShapeError(f"labels must have one entry per row, {count}, got shape {known.shape}")
    largest = np.nanmax(np.abs(known), initial=0.0)
    if largest > MAX_ABS_LABEL:
        raise DomainError(f"labels must be at most {MAX_ABS_LABEL:g} in size, or NaN, got {largest:g}")
    return known


def checked_past(past: ArrayLike, rows: int, width: int) -> Floats:
    """Return the features of the past of each row as an array, or raise."""
    known = as_floats(past, "past")
    if known.shape != (rows, width):
        raise ShapeError(f"past must be {width} features of each of {rows} rows, got shape {known.shape}")
    largest = np.abs(known).max(initial=0.0)
    if not largest <= MAX_PAST_VALUE:
        raise DomainError(f"past must be finite and at most {MAX_PAST_VALUE:g} in size, got {largest:g}")
    return known


def checked_keys(core: MetricCore, keys: Ints, count: int) -> Ints:
    """Return the key of each row, or raise. A learner without keys ignores them."""
    if not core.has_keys:
        return NO_KEYS
    if keys.shape != (count,):
        raise ShapeError(f"keys must have one entry per row, {count}, got shape {keys.shape}")
    return keys
