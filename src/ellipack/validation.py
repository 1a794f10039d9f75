"""The rules for what comes in at the doors, each checked before any state moves or any kernel runs."""

from operator import index

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT_SLACK = 1e-9
"""How far past 1 a norm may come out by rounding alone before an instance counts as outside the unit ball."""


def floats(values: ArrayLike, name: str) -> Floats:
    """Return `values` as a C-contiguous float64 array; refuse what is not real numbers.

    >>> floats([1, 2], "y")
    array([1., 2.])
    """
    if isinstance(values, np.ma.MaskedArray):  # NumPy would go on with whatever lies under the mask
        raise InputError(f"{name} must hold real numbers, got a masked array: fill in or drop what is masked")
    try:
        array = np.asarray(values)
        _refuse_what_only_reads_as_numbers(array, name)
        return np.asarray(array, dtype=np.float64, order="C")
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers: {error}") from error


def _refuse_what_only_reads_as_numbers(array: NDArray[np.generic], name: str) -> None:
    """Raise if NumPy would make floats of `array` though it holds no real numbers: text, dates, complex numbers."""
    if array.dtype.kind not in "biufO":
        raise InputError(f"{name} must hold real numbers, got {array.dtype.name}")
    if array.dtype.kind == "O":
        text = next((entry for entry in array.flat if isinstance(entry, str | bytes)), None)
        if text is not None:
            raise InputError(f"{name} must hold real numbers, got {text!r}")


def finite(array: Floats, name: str) -> Floats:
    """Return `array` if every entry is finite; else name the first that is not, and where."""
    bad = ~np.isfinite(array)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        where = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column", "layer"), place, strict=False))
        value = array[place]
        got = "NaN" if np.isnan(value) else f"{value}"
        raise NonFiniteError(f"{name} must be finite, got {got} at {where}")
    return array


def rows(X: ArrayLike, width: int | None = None, name: str = "X") -> Floats:
    """Return `X` as finite rows: two-dimensional, at least one row and one column, `width` columns if given.

    >>> rows([[0.5, 1.0]], width=3)
    Traceback (most recent call last):
        ...
    ellipack.errors.ShapeError: X must have 3 columns, got 2
    """
    array = floats(X, name)
    if array.ndim != 2:
        raise ShapeError(f"{name} must be two-dimensional (rows, columns), got shape {array.shape}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ShapeError(f"{name} must have at least one row and one column, got shape {array.shape}")
    if width is not None and array.shape[1] != width:
        raise ShapeError(f"{name} must have {width} columns, got {array.shape[1]}")
    return finite(array, name)


def labels(y: ArrayLike, count: int, name: str = "y") -> Floats:
    """Return `y` as finite labels, one for each of `count` rows."""
    array = floats(y, name)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.shape[0] != count:
        raise ShapeError(f"{name} must hold one label a row: {count} rows, got {array.shape[0]} labels")
    return finite(array, name)


def in_unit_ball(X: Floats, name: str = "X") -> Floats:
    """Return `X` if each row lies in the closed Euclidean unit ball, the paper's domain of instances."""
    # hypot-like scaling is not needed: an overflowing square is an infinite norm, and that is outside as well.
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    outside = norms > 1 + UNIT_SLACK
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in the unit ball (norm <= 1), got norm {norms[row]:.6g} at row {row}")
    return X


def in_unit_interval(y: Floats, name: str = "y") -> Floats:
    """Return `y` if each label lies in [0, 1], the paper's domain of labels."""
    outside = (y < 0) | (y > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in [0, 1], got {y[row]:.6g} at row {row}")
    return y


def positive(value: float, name: str) -> float:
    """Return `value` if it is a finite number above 0.

    >>> positive(-0.1, "radius")
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: radius must be > 0, got -0.1
    """
    number = _number(value, name, "> 0")
    if not number > 0 or number == np.inf:  # so written that NaN fails as well
        raise DomainError(f"{name} must be {_finite_and(number)}> 0, got {value}")
    return number


def nonnegative(value: float, name: str) -> float:
    """Return `value` if it is a finite number, 0 or more."""
    number = _number(value, name, ">= 0")
    if not number >= 0 or number == np.inf:  # so written that NaN fails as well
        raise DomainError(f"{name} must be {_finite_and(number)}>= 0, got {value}")
    return number


def within(value: float, name: str, smallest: float, largest: float) -> float:
    """Return `value` if it is a number from `smallest` to `largest`."""
    number = _number(value, name, f"from {smallest:g} to {largest:g}")
    if not smallest <= number <= largest:  # so written that NaN fails as well
        raise DomainError(f"{name} must be from {smallest:g} to {largest:g}, got {value}")
    return number


def _number(value: float, name: str, rule: str) -> float:
    """Return `value` as a float, or say that `name` must be a number that obeys `rule`."""
    try:
        if not isinstance(value, str | bytes):  # float would read them
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DomainError(f"{name} must be a number {rule}, got {value!r}")


def _finite_and(number: float) -> str:
    """Return the part of a rule that `number` breaks by not being finite, and nothing if it is."""
    return "" if np.isfinite(number) else "finite and "


def whole(value: int, name: str, minimum: int) -> int:
    """Return `value` if it is a whole number, `minimum` or more."""
    try:
        number = index(value)
    except TypeError:
        raise DomainError(f"{name} must be a whole number >= {minimum}, got {value!r}") from None
    if number < minimum:
        raise DomainError(f"{name} must be a whole number >= {minimum}, got {number}")
    return number
