"""What all kinds of columns share: their interface, conversion of cells, missing values, and checks of saved state."""

import math
from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ellipack.errors import CheckpointError, StreamError
from ellipack.tabular.arrow import pa
from ellipack.validation import Floats

Bools = NDArray[np.bool_]
State = dict[str, Any]
NewFeature = tuple[int, str | None]
"""A row with which a column gets a feature more, and the level that it is for, if it is for a level."""


class Cells(Protocol):
    """A column's cells in some rows, parsed; what that comes to is the column's own business."""

    @property
    def invalid(self) -> Bools:
        """Which of them do not fit the column's kind."""

    def filter(self, rows: Bools) -> Self:
        """Return the cells of some of the rows."""


class Column(Protocol):
    """A column: how its cells become features, and what was learned of it for that.

    Attributes
    ----------
    name : as in the table.
    kind : one of `COLUMN_KINDS`.
    note : what there is to say about it in a report.
    """

    name: str
    kind: str
    note: str

    @property
    def n_missing(self) -> int:
        """How many values were missing so far."""

    def parse(self, column: pa.Array) -> Any:
        """Return cells as this column reads them; changes nothing."""

    def explain_invalid(self, value: str) -> str:
        """Return why a value does not fit."""

    def partial_fit_transform(self, cells: Any) -> tuple[Any, list[NewFeature]]:
        """Return what to write, each row by what came before it, and the rows that bring a feature more; learn."""

    def transform(self, cells: Any) -> Any:
        """Return what to write by what was learned so far; changes nothing."""

    def write_features(self, encoded: Any, X: Floats) -> None:
        """Write features into their columns of `X`, which is 0 so far."""

    def add_feature(self, level: str | None, feature: int) -> None:
        """Take the feature that an event asked for."""

    def feature_names(self) -> dict[int, str]:
        """Return the names of the column's features, by where they stand in a row."""

    def to_dict(self) -> State:
        """Return all that is known of the column."""


def convert_each_cell(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, Bools]:
    """Return what `convert` makes of each cell, null where it raises, and the cells where it does.

    Halves what can't be converted until what is left is one cell: quick if few are bad, and what a cell comes to
    never depends on the cells beside it.
    """
    try:
        return convert(column), np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return convert(pa.nulls(1, column.type)), np.ones(1, dtype=bool)
    middle = len(column) // 2
    (first, first_bad), (second, second_bad) = (
        convert_each_cell(part, convert) for part in (column.slice(0, middle), column.slice(middle))
    )
    return pa.concat_arrays([first, second]), np.concatenate([first_bad, second_bad])


def is_string_type(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric_type(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds numbers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_datetime_type(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds dates, or dates with a time of day."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def decode_column(column: pa.Array, source: str, name: str) -> pa.Array:
    """Return a column if it is of a type that can be read, no longer as a dictionary."""
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = (is_string_type, is_numeric_type, is_datetime_type, pa.types.is_time, pa.types.is_boolean, pa.types.is_null)
    if not any(test(value) for test in known):
        raise StreamError(
            f"{source}, column '{name}': is of type {kind}, which can't be read: run with --drop '{name}'"
        )
    return column if kind is value else column.cast(value)


_LARGEST = 2**62


def get_entry(data: object, key: str) -> Any:
    """Return an entry of what should be an object."""
    if not isinstance(data, dict) or key not in data:
        raise CheckpointError(f"the encoder is invalid_entry: it has no {key!r} where there should be one")
    return data[key]


def get_int(data: State, key: str, least: int = 0) -> int:
    """Return an entry that is a whole number."""
    value = get_entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _LARGEST:
        raise invalid_entry(key, f"a whole number >= {least}", value)
    return value


def get_optional_int(data: State, key: str) -> int | None:
    """Return an entry that is a whole number or nothing."""
    return None if get_entry(data, key) is None else get_int(data, key)


def get_float(data: State, key: str) -> float:
    """Return an entry that is a finite number."""
    value = get_entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise invalid_entry(key, "a finite number", value)
    return float(value)


def get_bool(data: State, key: str) -> bool:
    """Return an entry that is true or false."""
    value = get_entry(data, key)
    if not isinstance(value, bool):
        raise invalid_entry(key, "true or false", value)
    return value


def get_str(data: State, key: str) -> str:
    """Return an entry that is a text."""
    value = get_entry(data, key)
    if not isinstance(value, str):
        raise invalid_entry(key, "a text", value)
    return value


def get_list(data: State, key: str) -> list[Any]:
    """Return an entry that is a list."""
    value = get_entry(data, key)
    if not isinstance(value, list):
        raise invalid_entry(key, "a list", value)
    return value


def get_ints(data: State, key: str) -> list[int]:
    """Return an entry that is a list of whole numbers."""
    return [get_int({key: value}, key) for value in get_list(data, key)]


def invalid_entry(key: str, rule: str, value: object) -> CheckpointError:
    """Return the error that says which entry breaks which rule."""
    got = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
    return CheckpointError(f"the encoder is invalid_entry: {key!r} must be {rule}, got {got[:60]}")


class MissingIndicator:
    """How many values of a column were missing, and the feature that says where.

    Attributes
    ----------
    count : how many were missing so far.
    feature : where in a row the mark stands, if there was any.
    """

    def __init__(self, count: int = 0, feature: int | None = None) -> None:
        self.count, self.feature = count, feature

    def update(self, missing: Bools) -> list[NewFeature]:
        """Count what is missing; return the first such row if it is the first ever."""
        found = int(np.count_nonzero(missing))
        self.count += found
        return [(int(missing.argmax()), None)] if found and self.feature is None else []

    def write_features(self, missing: Bools, X: Floats) -> None:
        """Write the mark, if there is one."""
        if self.feature is not None:
            X[:, self.feature] = missing

    def feature_names(self, column: str) -> dict[int, str]:
        """Return the mark's name by its place."""
        return {} if self.feature is None else {self.feature: f"{column} is missing"}

    def to_dict(self) -> State:
        """Return all that is known."""
        return {"missing": self.count, "indicator": self.feature}

    @classmethod
    def from_dict(cls, data: State) -> "MissingIndicator":
        """Return what `to_dict` was taken of."""
        return cls(get_int(data, "missing"), get_optional_int(data, "indicator"))
