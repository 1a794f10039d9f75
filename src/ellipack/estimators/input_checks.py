"""Rows, labels and weights in whatever form scikit-learn's users pass them."""

import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import validate_data

from ellipack.errors import DomainError, InputError, KindError, ShapeError
from ellipack.validation import Floats, as_floats, check_finite, check_rows


def check_features(estimator: BaseEstimator, X: Any) -> ArrayLike:
    """Return rows whose width, and names if they have any, are those that an estimator has learned from.

    A plain array comes back as it is, its entries yet to be checked by whoever takes it.
    """
    width = estimator.n_features_in_
    plain = type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == width
    if plain and not hasattr(estimator, "feature_names_in_"):
        # The common case of a stream: scikit-learn takes as long to see that there are no names as a row to predict.
        return cast(ArrayLike, X)
    table = X if len(getattr(X, "shape", ())) == 2 else check_rows(X)
    try:
        # Before the entries are looked at: in columns that nobody has learned from, they are beside the point.
        validate_data(estimator, table, reset=False, skip_check_array=True)
    except TypeError as error:
        raise KindError(str(error)) from error
    except ValueError as error:
        raise (InputError if table.shape[1] == width else ShapeError)(str(error)) from error
    return check_rows(table)


def record_features(estimator: BaseEstimator, X: Any) -> None:
    """Let an estimator know how many features it has learned from, and what they are called if they have names."""
    try:
        validate_data(estimator, X, reset=True, skip_check_array=True)
    except TypeError as error:
        raise KindError(str(error)) from error


def check_targets(y: Any) -> ArrayLike:
    """Return labels, in a row even if they came in a column; their number is yet to be checked."""
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
    """Return rows and labels, each as often as its weight says: a row of weight 3 thrice, of weight 0 not at all."""
    if sample_weight is None:
        return table, y
    weights = check_finite(as_floats(sample_weight, "sample_weight"), "sample_weight")
    if weights.shape != (len(table),):
        raise ShapeError(f"sample_weight must hold one number per row: {len(table)} rows, got shape {weights.shape}")
    odd = (weights < 0) | (weights % 1 != 0)
    if odd.any():
        row = int(np.argmax(odd))
        rule = "integers >= 0, the number of times that each row counts"
        raise DomainError(f"sample_weight must hold {rule}, got {weights[row]:g} at row {row}")
    if not weights.any():
        raise DomainError("sample_weight must be > 0 for at least one row, got zero for every row")
    often = weights.astype(np.int64)
    return table.repeat(often, axis=0), y.repeat(often)
