"""Checks of rows, labels and weights in the forms that scikit-learn accepts: arrays, lists and data frames."""

import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from ellipack.errors import DomainError, InputError, KindError, ShapeError
from ellipack.validation import Floats, as_floats, check_finite, check_rows

_KEYS_ADVICE: Final = "; or pass the values of the keys as keys=..."


def check_features(estimator: BaseEstimator, X: Any) -> ArrayLike:
    """Return rows that have the number and the names of the features of a fitted estimator.

    Parameters
    ----------
    estimator : BaseEstimator
        Fitted estimator.
    X : array-like of shape (n_samples, n_features)
        Rows. The entries of a plain array are not checked here; the learner checks them.

    Returns
    -------
    X : array-like of shape (n_samples, n_features)

    Raises
    ------
    ShapeError
        If the number of columns differs.
    InputError
        If the names of the columns differ.
    KindError
        If only some of the names are strings.
    InputError
        If two names are equal.
    """
    width = estimator.n_features_in_
    if is_plain_table(X, width) and not hasattr(estimator, "feature_names_in_"):
        # The common case. For one row, validate_data would take as long as the prediction.
        return cast(ArrayLike, X)
    table = X if len(getattr(X, "shape", ())) == 2 else check_rows(X)
    _check_names(table)
    try:
        # Names first: the entries of wrong columns do not matter.
        validate_data(estimator, table, reset=False, skip_check_array=True)
    except ValueError as error:
        raise (InputError if table.shape[1] == width else ShapeError)(str(error)) from error
    return check_rows(table)


def is_plain_table(X: Any, width: int) -> bool:
    """Return whether `X` is a NumPy array with this number of columns, which have no names."""
    return type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == width


def feature_names(X: Any) -> NDArray[np.object_] | None:
    """Return the names of the columns of `X`, or None if it has none or they are not strings.

    Raises
    ------
    KindError
        If only some of the names are strings.
    InputError
        If two names are equal.
    """
    if type(X) is np.ndarray:  # for which validate_data would look for packages of data frames
        return None
    _check_names(X)
    columns = BaseEstimator()
    validate_data(columns, X, reset=True, skip_check_array=True)
    names: NDArray[np.object_] | None = getattr(columns, "feature_names_in_", None)
    return names


def _check_names(X: Any) -> None:
    """Raise `KindError` if only some names of the columns are strings, and `InputError` if two are equal.

    scikit-learn raises a TypeError for mixed names. Python may raise one, too, if memory runs out, which is no invalid
    input.
    """
    columns = getattr(X, "columns", ())
    names = list(columns) if isinstance(columns, Iterable) else []
    kinds = {type(name) for name in names}
    repeated = next((name for name, count in Counter(names).items() if count > 1), None) if kinds == {str} else None
    if repeated is not None:
        raise InputError(f"X must have different names of columns, got {repeated!r} {names.count(repeated)} times")
    if str in kinds and len(kinds) > 1:
        found = ", ".join(sorted(kind.__qualname__ for kind in kinds))
        rule = "Feature names are only supported if all input features have string names"
        raise KindError(f"{rule}, got names of types {found}: X.columns = X.columns.astype(str) converts them")


def check_targets(y: Any) -> ArrayLike:
    """Return labels as a one-dimensional array; a column vector is flattened with a warning.

    The number of labels is not checked here.
    """
    if type(y) is np.ndarray and y.ndim == 1:
        return cast(ArrayLike, y)
    if y is None:
        raise InputError("y must hold one label per row: learning requires y to be passed, but the target y is None")
    array = as_floats(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        advice = "A column-vector y was passed when a 1d array was expected: pass y.ravel()"
        warnings.warn(advice, DataConversionWarning, stacklevel=3)
        return array.ravel()
    return array


def repeat_by_weight(table: Floats, y: Floats, sample_weight: Any) -> tuple[Floats, Floats]:
    """Return rows and labels repeated according to integer weights.

    Parameters
    ----------
    table : array of float64, shape (n_samples, n_features)
        Rows.
    y : array of float64, shape (n_samples,)
        Labels.
    sample_weight : array-like of int, shape (n_samples,), or None
        Number of times that each row counts. None counts each row once.

    Returns
    -------
    table, y : arrays of float64
        Rows and labels with repetitions.

    Examples
    --------
    >>> table, y = repeat_by_weight(np.array([[1.0], [2.0]]), np.array([3.0, 4.0]), [2, 0])
    >>> table.tolist(), y.tolist()
    ([[1.0], [1.0]], [3.0, 3.0])
    """
    if sample_weight is None:
        return table, y
    weights = check_finite(as_floats(sample_weight, "sample_weight"), "sample_weight")
    if weights.shape != (len(table),):
        raise ShapeError(f"sample_weight must hold one number per row: {len(table)} rows, got shape {weights.shape}")
    invalid = (weights < 0) | (weights % 1 != 0)
    if invalid.any():
        row = int(np.argmax(invalid))
        rule = "integers >= 0, the number of times that each row counts"
        raise DomainError(f"sample_weight must hold {rule}, got {weights[row]:g} at row {row}")
    if not weights.any():
        raise DomainError("sample_weight must be > 0 for at least one row, got zero for every row")
    counts = weights.astype(np.int64)
    return table.repeat(counts, axis=0), y.repeat(counts)


def check_class_labels(y: Any, name: str = "y") -> NDArray[Any]:
    """Return classes as a one-dimensional array of booleans, int64, float64, strings or objects that are strings.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes: booleans, integers, floats without a fractional part, or strings.
    name : str, default "y"
        Name of the argument for messages.

    Returns
    -------
    y : array of shape (n_samples,)

    Raises
    ------
    InputError
        If `y` is None, or holds numbers with a fractional part: the labels of a regression.
    DomainError
        If an integer does not fit in 64 bits.
    KindError
        If `y` holds other objects.

    Examples
    --------
    >>> check_class_labels(["b", "a"]).tolist()
    ['b', 'a']
    >>> check_class_labels([0.5, 1.0])
    Traceback (most recent call last):
        ...
    ellipack.errors.InputError: y must hold classes, got 0.5 at row 0 (Unknown label type: continuous)
    """
    if y is None:
        raise InputError(
            f"{name} must hold one label per row: learning requires y to be passed, but the target y is None"
        )
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        advice = "A column-vector y was passed when a 1d array was expected: pass y.ravel()"
        warnings.warn(advice, DataConversionWarning, stacklevel=3)
        array = array.ravel()
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional, got shape {array.shape}")
    if array.dtype.kind == "U" or (array.dtype == object and all(isinstance(each, str) for each in array)):
        return array
    if array.dtype == object and any(isinstance(each, str) for each in array):
        raise KindError(f"{name} must hold numbers or strings, got both")
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind in "iu" or (
        array.dtype == object and all(isinstance(each, int | np.integer) for each in array)
    ):
        return _as_int64(array, name)
    numbers = check_finite(as_floats(array, name), name)
    if (numbers % 1 != 0).any():
        row = int(np.argmax(numbers % 1 != 0))
        got = f"{numbers[row]:g} at row {row} (Unknown label type: continuous)"
        raise InputError(f"{name} must hold classes, got {got}")
    return numbers


def _as_int64(array: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return integers as 64-bit integers; raise `DomainError` if one does not fit."""
    limits = np.iinfo(np.int64)
    for each in (array.min(), array.max()) if len(array) else ():
        if not limits.min <= int(each) <= limits.max:
            raise DomainError(f"{name} must hold classes from -2^63 to 2^63 - 1, got {each}")
    return array.astype(np.int64)


def key_columns(by: Any) -> list[str | int]:
    """Return names and numbers of columns as a list; raise `InputError` if they are neither, or not distinct."""
    one = isinstance(by, str | int | np.integer)
    columns: list[Any] = [by] if one else list(by) if isinstance(by, Sequence) else []
    if not columns or not all(isinstance(each, str | int | np.integer) and type(each) is not bool for each in columns):
        raise InputError(f"by must be the name or number of a column, or a list of them, got {by!r}")
    if len(set(columns)) != len(columns):
        raise InputError(f"columns of by must be distinct, got {', '.join(map(str, columns))}")
    return columns


def select_column(estimator: BaseEstimator, X: Any, column: str | int) -> Any:
    """Return a column of a table by name or number.

    Parameters
    ----------
    estimator : BaseEstimator
        If it is fitted, its names of features apply to arrays without names.
    X : array-like of shape (n_samples, n_features)
        Rows.
    column : str or int
        Name or number of the column.

    Returns
    -------
    values : array of shape (n_samples,)

    Raises
    ------
    InputError
        If there is no such column.
    """
    names = list(getattr(X, "columns", getattr(estimator, "feature_names_in_", [])))
    width = X.shape[1] if len(getattr(X, "shape", ())) == 2 else check_rows(X).shape[1]
    if isinstance(column, str):
        if column not in names:
            given = f"one of {', '.join(map(repr, names))}" if names else "the number of a column: X has no names"
            raise InputError(f"by must be {given}, got {column!r}{_KEYS_ADVICE}")
        column = names.index(column)
    if not 0 <= column < width:
        raise InputError(f"by must be the number of a column, from 0 to {width - 1}, got {column}{_KEYS_ADVICE}")
    # The columns of a data frame keep their types.
    values = np.asarray(X[X.columns[column]]) if hasattr(X, "columns") else np.asarray(X)[:, column]
    if values.dtype.kind not in "biuf":
        check_rows_with_keys(X)
    return values


def check_rows_with_keys(X: Any) -> None:
    """Raise unless `X`, of which columns are the key, holds real numbers."""
    try:
        check_rows(X)
    except KindError as error:
        advice = "keys that are text are passed as keys=..., and their columns are left out of X"
        raise KindError(f"{error}; {advice}") from error
