"""Checks of arguments, all made before any state changes and before compiled code runs.

Each check returns its argument in a standard form or raises an `InputError` that names the argument, the rule and the
value.
"""

import re
import sys
from operator import index
from reprlib import repr as short_repr

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import DomainError, InputError, KindError, NonFiniteError, ShapeError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Row = list[float] | tuple[float, ...]
"""The features of one sample."""

MAX_ABS_VALUE = 1e140
"""Largest absolute value of a feature of `MetricRegressor`. Sums of squares of larger ones could overflow."""

MAX_ABS_LABEL = 1e60
"""Largest absolute value of a label of `MetricRegressor`. Sums of fourth powers of larger ones could overflow."""

MAX_FEATURES = 5000
"""Largest number of features of a learner that keeps a number for each pair of features: 0.2 GB for 5,000."""

UNIT_SLACK = 1e-9
"""Largest excess of a norm over 1 that counts as a rounding error of a point in the unit ball."""

_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # by name, because pandas may not be installed
_REMEDY = "fill in or drop missing values"


def as_floats(values: ArrayLike, name: str) -> Floats:
    """Return values as a C-contiguous, aligned and writable float64 array.

    Arrays that are read-only or not aligned, as pandas, polars, Arrow and joblib return them, are copied. Others are
    not.

    Parameters
    ----------
    values : array-like
        Real numbers.
    name : str
        Name of the argument for messages.

    Returns
    -------
    array : array of float64

    Raises
    ------
    KindError
        If `values` holds text, dates or complex numbers, or is sparse or masked.
    NonFiniteError
        If an entry is None or pandas' missing value.
    InputError
        If `values` is a lazy frame of polars, or cannot be converted.

    Examples
    --------
    >>> as_floats([1, 2], "y")
    array([1., 2.])
    """
    if type(values) is not np.ndarray:
        _refuse_other_containers(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US":  # NumPy makes text of numbers beside text
            _refuse_other_types(np.asarray(values, dtype=object), name)
        _refuse_other_types(array, name)
        with np.errstate(over="ignore"):  # an overflow gives an infinity, which check_finite refuses
            made = np.asarray(array, dtype=np.float64, order="C")
    except InputError:
        raise
    except TypeError as error:
        raise KindError(f"{name} must hold real numbers: {error}") from error
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name} must hold real numbers: {error}") from error
    return made if made.flags.writeable and made.flags.aligned else made.copy()


def _refuse_other_containers(values: object, name: str) -> None:
    """Raise if `values` is masked, sparse or lazy.

    NumPy would ignore the mask, and see one object in a sparse matrix or in a lazy frame of polars.
    """
    if hasattr(values, "collect"):
        raise InputError(f"{name} must hold real numbers, got a {type(values).__name__}: {name}.collect() computes it")
    if isinstance(values, np.ma.MaskedArray):
        raise KindError(f"{name} must hold real numbers, got a masked array: fill in or drop masked values")
    sparse = sys.modules.get("scipy.sparse")  # not imported here, because that is slow and a sparse matrix implies it
    if sparse is not None and sparse.issparse(values):
        kind = type(values).__name__
        raise KindError(f"{name} must be dense, got the sparse {kind}: {name}.toarray() is dense, if it fits in memory")


def _refuse_other_types(array: NDArray[np.generic], name: str) -> None:
    """Raise if `array` holds text, dates or complex numbers, which NumPy may convert to floats."""
    if array.dtype.kind == "c":
        raise KindError(f"{name} must hold real numbers, got {array.dtype.name}: Complex data not supported")
    if array.dtype.kind not in "biufO":
        raise KindError(f"{name} must hold real numbers, got {array.dtype.name}")
    if array.dtype.kind == "O":
        for position, entry in np.ndenumerate(array):
            if isinstance(entry, str | bytes):
                raise KindError(f"{name} must hold real numbers, got {short_repr(entry)}{_at(position)}")
            if type(entry).__name__ in _MISSING_TYPES:
                raise NonFiniteError(f"{name} must be finite, got {short_repr(entry)}{_at(position)}: {_REMEDY}")


def check_finite(array: Floats, name: str) -> Floats:
    """Return an array whose entries are all finite.

    Raises
    ------
    NonFiniteError
        If an entry is NaN or infinite. The message gives the position of the first one.
    """
    finite = np.isfinite(array)
    if not finite.all():
        position = tuple(int(i) for i in np.argwhere(~finite)[0])
        value = array[position]
        got = f"NaN{_at(position)}: {_REMEDY}" if np.isnan(value) else f"{value}{_at(position)}"
        raise NonFiniteError(f"{name} must be finite, got {got}")
    return array


def _at(position: tuple[int, ...]) -> str:
    """Return a position as part of a message: " at row 2, column 0"."""
    parts = [f"{axis} {i}" for axis, i in zip(("row", "column", "layer"), position, strict=False)]
    return " at " + ", ".join(parts) if parts else ""


def check_rows(X: ArrayLike, width: int | None = None, name: str = "X") -> Floats:
    """Return a table of finite numbers.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        At least one row and one column.
    width : int, optional
        Required number of columns.
    name : str, default "X"
        Name of the argument for messages.

    Returns
    -------
    X : array of float64, shape (n_rows, n_columns)

    Examples
    --------
    >>> check_rows([[0.5, 1.0]], width=3)
    Traceback (most recent call last):
        ...
    ellipack.errors.ShapeError: X must have 3 columns, got 2
    """
    try:
        array = as_floats(X, name)
    except (KindError, NonFiniteError) as error:
        raise type(error)(_about_table(str(error), X)) from error
    if array.ndim != 2:
        hint = f": Reshape your data, {name}[None] if it is a row, {name}[:, None] if a column" * (array.ndim == 1)
        raise ShapeError(f"{name} must be two-dimensional (rows, columns), got shape {array.shape}{hint}")
    if array.size == 0:
        lacking = "sample(s)" if array.shape[0] == 0 else "feature(s)"
        got = f"0 {lacking} (shape={array.shape}) while a minimum of 1 is required."
        raise ShapeError(f"{name} must have at least one row and one column, got {got}")
    if width is not None and array.shape[1] != width:
        raise ShapeError(f"{name} must have {width} columns, got {array.shape[1]}")
    try:
        return check_finite(array, name)
    except NonFiniteError as error:
        raise NonFiniteError(_about_table(str(error), X)) from error


def _about_table(message: str, X: object) -> str:
    """Return a message about a cell of a table with the name of its column, and where to go with such tables."""
    names, found = list(getattr(X, "columns", ())), re.search(r", column (\d+)", message)
    if found and int(found[1]) < len(names):
        message = message.replace(found[0], f", column {names[int(found[1])]!r}")
    elif not found:
        others = [name for name in names if np.asarray(X[name]).dtype.kind not in "biufc"]  # type: ignore[index]
        message += f" in column {others[0]!r}" if others else ""
    is_for_tables = (found or names) and not re.search(r"got -?inf", message)
    return message + ("; TableRegressor takes text, dates and missing values" if is_for_tables else "")


def check_labels(y: ArrayLike, count: int, name: str = "y") -> Floats:
    """Return finite labels, one for each of `count` rows.

    Examples
    --------
    >>> check_labels([1, 2], count=2)
    array([1., 2.])
    """
    array = as_floats(y, name)
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.shape[0] != count:
        raise ShapeError(f"{name} must hold one label per row: {count} rows, got {array.shape[0]} labels")
    return check_finite(array, name)


def check_in_unit_ball(X: Floats, name: str = "X") -> Floats:
    """Return rows that lie in the closed Euclidean unit ball, the domain of instances in the paper."""
    # A square that overflows gives an infinite norm, which is outside the ball too.
    with np.errstate(over="ignore"):
        norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    outside = norms > 1 + UNIT_SLACK
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in the unit ball (norm <= 1), got norm {norms[row]:.6g} at row {row}")
    return X


def check_in_unit_interval(y: Floats, name: str = "y") -> Floats:
    """Return labels that lie in [0, 1], the domain of labels in the paper."""
    outside = (y < 0) | (y > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise DomainError(f"{name} must lie in [0, 1], got {y[row]:.6g} at row {row}")
    return y


def check_positive(value: float, name: str) -> float:
    """Return a finite number above 0 as a float.

    Examples
    --------
    >>> check_positive(-0.1, "radius")
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: radius must be > 0, got -0.1
    """
    number = _as_float(value, name, "> 0")
    if not number > 0 or number == np.inf:  # the negation also refuses NaN
        raise DomainError(f"{name} must be {_finite_and(number)}> 0, got {value}")
    return number


def check_vector(values: ArrayLike, name: str) -> Floats:
    """Return a one-dimensional array of at least one number, all finite.

    Examples
    --------
    >>> check_vector([[1, 2]], "values")
    Traceback (most recent call last):
        ...
    ellipack.errors.ShapeError: values must be one-dimensional and not empty, got shape (1, 2)
    """
    array = as_floats(values, name)
    if array.ndim != 1 or len(array) == 0:
        raise ShapeError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    return check_finite(array, name)


def check_all_positive(values: ArrayLike, name: str) -> Floats:
    """Return a one-dimensional array of at least one finite number, all above 0.

    Examples
    --------
    >>> check_all_positive([1, 2], "scales")
    array([1., 2.])
    """
    array = check_vector(values, name)
    if array.min() <= 0:
        raise DomainError(f"{name} must be > 0, got {array.min():.6g} at {int(array.argmin())}")
    return array


def check_nonnegative(value: float, name: str) -> float:
    """Return a finite number of at least 0 as a float."""
    number = _as_float(value, name, ">= 0")
    if not number >= 0 or number == np.inf:  # the negation also refuses NaN
        raise DomainError(f"{name} must be {_finite_and(number)}>= 0, got {value}")
    return number


def check_in_range(value: float, name: str, smallest: float, largest: float) -> float:
    """Return a number from `smallest` to `largest` as a float.

    Examples
    --------
    >>> check_in_range(2, "scale", 0.0, 4.0)
    2.0
    """
    number = _as_float(value, name, f"from {smallest:g} to {largest:g}")
    if not smallest <= number <= largest:  # the negation also refuses NaN
        raise DomainError(f"{name} must be from {smallest:g} to {largest:g}, got {value}")
    return number


def _as_float(value: float, name: str, rule: str) -> float:
    """Return a number as a float; the message of the error states `rule`."""
    try:
        if not isinstance(value, str | bytes):  # float() would parse them
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise DomainError(f"{name} must be a number {rule}, got {value!r}")


def _finite_and(number: float) -> str:
    """Return "finite and " if `number` is not finite, for the rule in a message."""
    return "" if np.isfinite(number) else "finite and "


def check_feature_count(d: int, learner: str, most: int = MAX_FEATURES) -> None:
    """Raise `DomainError` if there are too many features for a learner.

    Examples
    --------
    >>> check_feature_count(50_000, "PackingRegressor")
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: PackingRegressor learns from at most 5000 features, got 50000 (memory and time grow \
faster than their number): drop columns, or hash them into fewer
    """
    if d > most:
        raise DomainError(
            f"{learner} learns from at most {most} features, got {d} (memory and time grow faster than their "
            "number): drop columns, or hash them into fewer"
        )


def check_boolean(value: object, name: str) -> bool:
    """Return True or False, given as a bool of Python or NumPy, or as 1 or 0.

    Examples
    --------
    >>> check_boolean(1, "keep_founding_label")
    True
    """
    if not isinstance(value, bool | np.bool_ | int) or value not in (False, True):
        raise DomainError(f"{name} must be True or False, got {short_repr(value)}")
    return bool(value)


def check_integer(value: int, name: str, minimum: int, maximum: int | None = None) -> int:
    """Return an integer from `minimum` to `maximum`.

    Parameters
    ----------
    value : int
        Python or NumPy integer. Floats are refused, even if they have no fractional part.
    name : str
        Name of the argument for messages.
    minimum : int
        Smallest value.
    maximum : int, optional
        Largest value.

    Returns
    -------
    value : int

    Examples
    --------
    >>> check_integer(0, "k", 1)
    Traceback (most recent call last):
        ...
    ellipack.errors.DomainError: k must be an integer >= 1, got 0
    """
    rule = f">= {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    try:
        number = index(value)
    except TypeError:
        raise DomainError(f"{name} must be an integer {rule}, got {value!r}") from None
    if number < minimum or (maximum is not None and number > maximum):
        raise DomainError(f"{name} must be an integer {rule}, got {number}")
    return number
