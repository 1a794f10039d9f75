"""The rules for what comes in at the doors, each checked before any state moves or any kernel runs."""

import sys
from operator import index
from reprlib import repr as shown

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, InputError, KindError, NonFiniteError, ShapeError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

UNIT_SLACK = 1e-9
"""How far past 1 a norm may come out by rounding alone before an instance counts as outside the unit ball."""

_MISSING = {"NoneType", "NAType", "NaTType"}  # by name, because pandas may not be there
_REMEDY = "fill in or drop what is missing"


def as_floats(values: ArrayLike, name: str) -> Floats:
    """Return `values` as a C-contiguous float64 array that can be written to; refuse what is not real numbers.

    What can't be written, or stands at an odd address, is copied: a kernel would be compiled once more for it, which
    takes longer than any copy. pandas, polars, Arrow and joblib all hand out such arrays.

    >>> as_floats([1, 2], "y")
    array([1., 2.])
    """
    if type(values) is not np.ndarray:
        _refuse_what_hides_numbers(values, name)
    try:
        array = np.asarray(values)
        _refuse_what_only_reads_as_numbers(array, name)
        with np.errstate(over="ignore"):  # what overflows is not finite, and refused as that
            made = np.asarray(array, dtype=np.float64, order="C")
    except InputError:
        raise
    except TypeError as error:
        raise KindError(f"{name} must hold real numbers: {error}") from error
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers: {error}") from error
    return made if made.flags.writeable and made.flags.aligned else made.copy()


def _refuse_what_hides_numbers(values: object, name: str) -> None:
    """Raise if NumPy would not see that entries are masked, or that there are any at all."""
    if isinstance(values, np.ma.MaskedArray):
        raise KindError(f"{name} must hold real numbers, got a masked array: fill in or drop what is masked")
    sparse = sys.modules.get("scipy.sparse")  # whoever has such a matrix has imported it: for others, it takes a while
    if sparse is not None and sparse.issparse(values):
        kind = type(values).__name__
        raise KindError(f"{name} must be dense, got the sparse {kind}: {name}.toarray() is dense, if it fits in memory")


def _refuse_what_only_reads_as_numbers(array: NDArray[np.generic], name: str) -> None:
    """Raise if NumPy would make floats of `array` though it holds no real numbers: text, dates, complex numbers."""
    if array.dtype.kind == "c":
        raise KindError(f"{name} must hold real numbers, got {array.dtype.name}: Complex data not supported")
    if array.dtype.kind not in "biufO":
        raise KindError(f"{name} must hold real numbers, got {array.dtype.name}")
    if array.dtype.kind == "O":
        for place, entry in np.ndenumerate(array):
            if isinstance(entry, str | bytes):
                raise KindError(f"{name} must hold real numbers, got {shown(entry)}{_where(place)}")
            if type(entry).__name__ in _MISSING:
                raise NonFiniteError(f"{name} must be finite, got {shown(entry)}{_where(place)}: {_REMEDY}")


def check_finite(array: Floats, name: str) -> Floats:
    """Return `array` if every entry is finite; else name the first that is not, and where."""
    known = np.isfinite(array)
    if not known.all():
        place = tuple(int(i) for i in np.argwhere(~known)[0])
        value = array[place]
        got = f"NaN{_where(place)}: {_REMEDY}" if np.isnan(value) else f"{value}{_where(place)}"
        raise NonFiniteError(f"{name} must be finite, got {got}")
    return array


def _where(place: tuple[int, ...]) -> str:
    parts = [f"{axis} {i}" for axis, i in zip(("row", "column", "layer"), place, strict=False)]
    return " at " + ", ".join(parts) if parts else ""


def check_rows(X: ArrayLike, width: int | None = None, name: str = "X") -> Floats:
    """Return `X` as finite rows: two-dimensional, at least one row and one column, `width` columns if given.

    >>> check_rows([[0.5, 1.0]], width=3)
    Traceback (most recent call last):
        ...
    ellipack.errors.ShapeError: X must have 3 columns, got 2
    """
    array = as_floats(X, name)
    if array.ndim != 2:
        hint = f": Reshape your data, {name}[None] if it is a row, {name}[:, None] if a column" * (array.ndim == 1)
        raise ShapeError(f"{name} must be two-dimensional (rows, columns), got shape {array.shape}{hint}")
    if array.size == 0:
        lacking = "sample(s)" if array.shape[0] == 0 else "feature(s)"
        got = f"0 {lacking} (shape={array.shape}) while a minimum of 1 is required."
        raise ShapeError(f"{name} must have at least one row and one column, got {got}")
    if width is not None and array.shape[1] != width:
        raise ShapeError(f"{name} must have {width} columns, got {array.shape[1]}")
    return check_finite(array, name)


def check_labels(y: ArrayLike, count: int, name: str = "y") -> Floats:
    """Return `y` as finite labels, one for each of `count` rows."""
    array = as_floats(y, name)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.shape[0] != count:
        raise ShapeError(f"{name} must hold one label a row: {count} rows, got {array.shape[0]} labels")
    return check_finite(array, name)


def check_in_unit_ball(X: Floats, name: str = "X") -> Floats:
    """Return `X` if each row lies in the closed Euclidean unit ball, the paper's domain of instances."""
    # hypot-like scaling is not needed: an overflowing square is an infinite norm, and that is outside as well.
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    outside = norms > 1 + UNIT_SLACK
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in the unit ball (norm <= 1), got norm {norms[row]:.6g} at row {row}")
    return X


def check_in_unit_interval(y: Floats, name: str = "y") -> Floats:
    """Return `y` if each label lies in [0, 1], the paper's domain of labels."""
    outside = (y < 0) | (y > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in [0, 1], got {y[row]:.6g} at row {row}")
    return y


def check_positive(value: float, name: str) -> float:
    """Return `value` if it is a finite number above 0.

    >>> check_positive(-0.1, "radius")
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: radius must be > 0, got -0.1
    """
    number = _number(value, name, "> 0")
    if not number > 0 or number == np.inf:  # so written that NaN fails as well
        raise DomainError(f"{name} must be {_finite_and(number)}> 0, got {value}")
    return number


def check_all_positive(values: ArrayLike, name: str) -> Floats:
    """Return `values` as at least one finite number, all above 0."""
    array = as_floats(values, name)
    if array.ndim != 1 or len(array) == 0:
        raise ShapeError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    check_finite(array, name)
    if array.min() <= 0:
        raise DomainError(f"{name} must be > 0, got {array.min():.6g} at {int(array.argmin())}")
    return array


def check_nonnegative(value: float, name: str) -> float:
    """Return `value` if it is a finite number, 0 or more."""
    number = _number(value, name, ">= 0")
    if not number >= 0 or number == np.inf:  # so written that NaN fails as well
        raise DomainError(f"{name} must be {_finite_and(number)}>= 0, got {value}")
    return number


def check_in_range(value: float, name: str, smallest: float, largest: float) -> float:
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


def check_integer(value: int, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return `value` if it is a whole number, `minimum` or more, and `maximum` or less if that is given."""
    rule = f">= {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    try:
        number = index(value)
    except TypeError:
        raise DomainError(f"{name} must be a whole number {rule}, got {value!r}") from None
    if number < minimum or (maximum is not None and number > maximum):
        raise DomainError(f"{name} must be a whole number {rule}, got {number}")
    return number
