"""From dictionaries and data frames to rows of numbers: which feature is which column, and what is refused."""

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
from ellipack.learners.rows import Row
from ellipack.validation import Floats

if TYPE_CHECKING:
    import pandas as pd


PLAIN: Final = frozenset({float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_})
"""Kinds of numbers that are most of them all, and need no closer look."""


class Columns:
    """The columns of features, in the order in which they first were other than 0.

    Attributes
    ----------
    largest : the size that no feature may exceed.
    width : how many columns a row has: one for each name, and at least one.
    """

    def __init__(self, largest: float) -> None:
        self.largest = largest
        self.places: dict[Hashable, int] = {}
        self.width = 1
        self._all: itemgetter[Any] | None = None

    def add(self, names: Iterable[Hashable]) -> None:
        """Give columns to more features."""
        for name in names:
            self.places[name] = len(self.places)
        self.width = max(1, len(self.places))
        self._all = itemgetter(*self.places) if len(self.places) > 1 else None

    def row(self, x: Mapping[Any, Any]) -> Row | None:
        """Return the row of a dictionary that has all columns, no other and only numbers; of others, nothing."""
        if self._all is None or len(x) != len(self.places):
            return None
        try:
            values: Row = self._all(x)
            # NaN compares with nothing.
            return values if PLAIN.issuperset(map(type, values)) and math.hypot(*values) <= self.largest else None
        except (KeyError, OverflowError):
            return None

    def numbers(self, x: Mapping[Any, Any]) -> dict[Hashable, float]:
        """Return a dictionary's values as numbers, or say which feature has none."""
        return {name: self._number(name, value) for name, value in x.items()}

    def fill(self, numbers: Mapping[Hashable, float]) -> Row:
        """Return the row in which features stand at their columns; those without a column are left out."""
        values = [0.0] * self.width
        for name, value in numbers.items():
            place = self.places.get(name)
            if place is not None:
                values[place] = value
        return values

    def newcomers(self, numbers: Mapping[Hashable, float]) -> dict[Hashable, float]:
        """Return the features that have no column yet and are not 0, in an order that is not the dictionary's."""
        new = {name: value for name, value in numbers.items() if value != 0.0 and name not in self.places}
        return {name: new[name] for name in in_order(new)}

    def table(self, X: "pd.DataFrame") -> dict[Hashable, Floats]:
        """Return a data frame's columns as numbers, or say which feature has none."""
        if not isinstance(X, import_pandas().DataFrame):
            raise KindError(f"X must be a pandas DataFrame, got {type(X).__module__}.{type(X).__qualname__}")
        if not X.columns.is_unique:
            raise ShapeError(f"X must have a name of its own for each column, got {list(X.columns)}")
        return {name: self._column(name, X[name].to_numpy()) for name in X.columns}

    def fill_table(self, columns: Mapping[Hashable, Floats], rows: slice, count: int) -> Floats:
        """Return these of so many rows in which features stand at their columns."""
        table = np.zeros((len(range(count)[rows]), self.width))
        for name, values in columns.items():
            place = self.places.get(name)
            if place is not None:
                table[:, place] = values[rows]
        return table

    def _column(self, name: Hashable, values: Any) -> Floats:
        if values.dtype.kind not in "biuf":
            return np.array([self._number(name, value) for value in values], dtype=np.float64)
        with np.errstate(over="ignore"):  # what is too large for a float is refused
            column = np.asarray(values, dtype=np.float64)
        bad = ~(np.abs(column) <= self.largest)
        if bad.any():
            self._number(name, float(column[bad.argmax()]))
        return column

    def _number(self, name: Hashable, value: Any) -> float:
        return number(value, f"feature {name!r}", self.largest)


def in_order(names: Iterable[Hashable]) -> list[Hashable]:
    """Return names sorted, by what they look like if they can't be compared."""
    try:
        return sorted(names)  # type: ignore[type-var]
    except TypeError:
        return sorted(names, key=lambda name: (type(name).__name__, repr(name)))


def number(value: Any, what: str, largest: float) -> float:
    """Return a value as a float, or say what is wrong with it.

    Parameters
    ----------
    value : any real number there is: Python's, NumPy's, decimals, fractions, yes and no.
    what : what messages call it.
    largest : the size that it may have.
    """
    if not isinstance(value, Real | Decimal | np.bool_):
        raise KindError(f"{what} must be a number, got {_shown(value)}")
    try:
        with np.errstate(over="ignore"):  # of NumPy's long floats, which become infinite
            found = float(value)
    except (OverflowError, ValueError):  # a whole number beyond all floats; a decimal that signals
        found = math.inf
    if not math.isfinite(found):
        raise NonFiniteError(f"{what} must be a finite number, got {_shown(value)}")
    if abs(found) > largest:
        raise DomainError(f"{what} must be at most {largest:g} in size, got {_shown(value)}")
    return found


def _shown(value: object) -> str:
    """Return a value for a message: one line, not too long, and numbers plainly."""
    return reprlib.repr(value.item() if isinstance(value, np.number | np.bool_) else value)
