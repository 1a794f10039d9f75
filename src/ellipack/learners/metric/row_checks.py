"""Checks of the rows, labels and keys that are passed to the learner of `MetricRegressor`."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack._core import MetricCore
from ellipack.errors import DomainError, ShapeError
from ellipack.learners.metric.past import MAX_PAST_VALUE
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats, Ints, as_floats, check_labels, check_rows

NO_KEYS: Final[Ints] = np.zeros(0, dtype=np.int64)
"""Keys of rows for a learner without keys."""

_DOUBLES: Final = np.dtype(np.float64)


class Rows(NamedTuple):
    """Rows, their labels and keys.

    Attributes
    ----------
    X : array of shape (n, d)
        Rows.
    y : array of shape (n,)
        Labels.
    keys : array of int64, shape (n,)
        Key of each row; empty if the learner has no keys.
    """

    X: Floats
    y: Floats
    keys: Ints = NO_KEYS

    def part(self, rows: slice) -> "Rows":
        """Return some of the rows."""
        return Rows(self.X[rows], self.y[rows], self.keys[rows])


def check_all(core: MetricCore, X: ArrayLike, y: ArrayLike, keys: Ints) -> Rows:
    """Return rows, labels and keys that a core accepts, or raise `InputError`."""
    if type(X) is type(y) is np.ndarray and X.dtype == y.dtype == _DOUBLES and core.accepts_rounds(X, y):
        return Rows(X, y, checked_keys(core, keys, len(X)))
    table = np.ascontiguousarray(checked_rows(core, X))
    return Rows(table, checked_labels(y, len(table)), checked_keys(core, keys, len(table)))


def checked_rows(core: MetricCore, X: ArrayLike) -> Floats:
    """Return rows as an array, or raise. Arrays that the core accepts are not checked again."""
    if type(X) is np.ndarray and X.dtype == _DOUBLES and core.accepts_rows(X):
        return X
    table = check_rows(X, core.dimension)
    largest = np.abs(table).max()
    if largest > MAX_ABS_VALUE:
        raise DomainError(f"X must be at most {MAX_ABS_VALUE:g} in size, got {largest:g}")
    return table


def checked_labels(y: ArrayLike, count: int) -> Floats:
    """Return labels as an array, or raise."""
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


def key_numbers(keys: Ints, count: int) -> list[int]:
    """Return the key of each row as an integer of Python, after a check; 0 if the learner has no keys."""
    return keys.tolist() if len(keys) else [0] * count


def checked_keys(core: MetricCore, keys: Ints, count: int) -> Ints:
    """Return the key of each row, or raise. A learner without keys ignores them."""
    if not core.has_keys:
        return NO_KEYS
    if keys.shape != (count,):
        raise ShapeError(f"keys must have one entry per row, {count}, got shape {keys.shape}")
    return keys
