"""Conversion of dictionaries and data frames to rows of floats."""

import math
import reprlib
from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from numbers import Real
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from river.utils.pandas import import_pandas

from ellipack.errors import DomainError, KindError, NonFiniteError, ShapeError
from ellipack.validation import Floats, Row

if TYPE_CHECKING:
    import pandas as pd


_COMMON_NUMBERS: Final = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
"""Types of numbers that need no check of their own."""


class FeatureColumns:
    """Columns of features, in the order in which features first had a value other than 0.

    Parameters
    ----------
    largest : float
        Largest absolute value of a feature.
    names : iterable, default ()
        Different names of features.

    Attributes
    ----------
    positions : dict of name to int
        Column of each feature.
    width : int
        Number of columns: one for each feature, and at least one.

    Examples
    --------
    >>> columns = FeatureColumns(1e100, ["height", "age"])
    >>> columns.row_from_numbers({"age": 40.0})
    [0.0, 40.0]
    """

    def __init__(self, largest: float, names: Iterable[Hashable] = ()) -> None:
        self.largest = largest
        self.positions: dict[Hashable, int] = {name: position for position, name in enumerate(names)}
        self.width = max(1, len(self.positions))
        self._get_all: itemgetter[Any] | None = itemgetter(*self.positions) if len(self.positions) > 1 else None

    def with_features(self, names: Iterable[Hashable]) -> "FeatureColumns":
        """Return columns with more features."""
        return FeatureColumns(self.largest, [*self.positions, *names])

    def complete_row(self, x: Mapping[Any, Any]) -> Row | None:
        """Return the row of a dictionary with exactly these features and common numbers; None for others.

        This is the fast path. `numbers` and `row_from_numbers` handle all other dictionaries.
        """
        check_dictionary(x)
        if self._get_all is None or len(x) != len(self.positions):
            return None
        try:
            values: Row = self._get_all(x)
            # The comparison is False for NaN.
            are_valid = _COMMON_NUMBERS.issuperset(map(type, values)) and math.hypot(*values) <= self.largest
            return values if are_valid else None
        except (KeyError, OverflowError):
            return None

    def numbers(self, x: Mapping[Any, Any]) -> dict[Hashable, float]:
        """Return the values of a dictionary as floats; an error names the feature."""
        return {name: self._check_feature(name, value) for name, value in x.items()}

    def row_from_numbers(self, numbers: Mapping[Hashable, float]) -> Row:
        """Return a row with values in their columns; features without a column are ignored."""
        values = [0.0] * self.width
        for name, value in numbers.items():
            position = self.positions.get(name)
            if position is not None:
                values[position] = value
        return values

    def new_features(self, numbers: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """Return the features without a column whose value is not 0, sorted by name."""
        new = {name: value for name, value in numbers.items() if value != 0.0 and name not in self.positions}
        plain = {python_name(name): value for name, value in new.items()}
        return {name: plain[name] for name in _sorted_names(plain)}

    def frame_columns(self, X: "pd.DataFrame") -> dict[Hashable, Floats]:
        """Return the columns of a data frame as floats; an error names the feature."""
        if not isinstance(X, import_pandas().DataFrame):
            raise KindError(f"X must be a pandas DataFrame, got {type(X).__module__}.{type(X).__qualname__}")
        if not X.columns.is_unique:
            raise ShapeError(f"X must have different names of columns, got {list(X.columns)}")
        return {name: self._check_column(name, X[name].to_numpy()) for name in X.columns}

    def rows_from_columns(self, columns: Mapping[Hashable, Floats], rows: slice, count: int) -> Floats:
        """Return a slice of `count` rows, with features in their columns."""
        table = np.zeros((len(range(count)[rows]), self.width))
        for name, values in columns.items():
            position = self.positions.get(name)
            if position is not None:
                table[:, position] = values[rows]
        return table

    def _check_column(self, name: Hashable, values: Any) -> Floats:
        """Return a column as floats."""
        if values.dtype.kind not in "biuf":
            return np.array([self._check_feature(name, value) for value in values], dtype=np.float64)
        with np.errstate(over="ignore"):  # an overflow gives an infinity, which is refused
            column = np.asarray(values, dtype=np.float64)
        invalid = ~(np.abs(column) <= self.largest)
        if invalid.any():
            self._check_feature(name, float(column[invalid.argmax()]))
        return column

    def _check_feature(self, name: Hashable, value: Any) -> float:
        return check_number(value, f"feature {name!r}", self.largest)


def check_dictionary(x: Any) -> None:
    """Raise `KindError` unless the features of a row are a dictionary."""
    if type(x) is not dict and not isinstance(x, Mapping):  # the first comparison is fast
        kind = type(x).__name__
        raise KindError(f"x must be a dictionary from names of features to numbers, got {_shortened(x)} ({kind})")


def python_name(name: Hashable) -> Hashable:
    """Return the value of Python that a string or number of NumPy equals; other names as they are.

    Examples
    --------
    >>> python_name(np.str_("height")), python_name(np.int64(3))
    ('height', 3)
    """
    value: Hashable = name.item() if isinstance(name, np.generic) else name
    return value if value == name and hash(value) == hash(name) else name


def _sorted_names(names: Iterable[Hashable]) -> list[Hashable]:
    """Return sorted names; by type and representation if they cannot be compared."""
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def check_number(value: Any, name: str, largest: float) -> float:
    """Return a real number as a float.

    Parameters
    ----------
    value : real number
        Number of Python or NumPy, decimal, fraction or bool.
    name : str
        Name of the value for messages.
    largest : float
        Largest absolute value.

    Returns
    -------
    number : float

    Raises
    ------
    KindError
        If `value` is not a real number.
    NonFiniteError
        If `value` is NaN, infinite, or too large for a float.
    DomainError
        If `value` is larger than `largest`.

    Examples
    --------
    >>> check_number(True, "y", 1e100)
    1.0
    """
    if not isinstance(value, Real | Decimal | np.bool_):
        raise KindError(f"{name} must be a number, got {_shortened(value)}")
    try:
        with np.errstate(over="ignore"):  # NumPy's long floats may overflow
            number = float(value)
    except (OverflowError, ValueError):  # an integer beyond the largest float; a signaling NaN of Decimal
        number = math.inf
    if not math.isfinite(number):
        raise NonFiniteError(f"{name} must be a finite number, got {_shortened(value)}")
    if abs(number) > largest:
        raise DomainError(f"{name} must be at most {largest:g} in size, got {_shortened(value)}")
    return number


def _shortened(value: object) -> str:
    """Return a short representation in one line; NumPy's numbers look like Python's."""
    return reprlib.repr(value.item() if isinstance(value, np.number | np.bool_) else value)
