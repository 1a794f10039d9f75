"""What all column kinds share: interface, conversion of cells, missing indicator, checked access to saved state.

Each kind has a module of its own: `number_column`, `category_column` and `time_column`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ellipack.errors import ModelFileError, StreamError
from ellipack.learners.metric.effects import EffectGrid
from ellipack.tabular.arrow import pa
from ellipack.tabular.table_batch import decode_dictionary, escape_name
from ellipack.validation import Floats

Bools = NDArray[np.bool_]
JsonDict = dict[str, Any]


class NewFeature(NamedTuple):
    """Row at which a column gets a new feature, and the typical size of the feature."""

    row: int
    scale: float


class Cells(Protocol):
    """Parsed cells of a column. Each column kind has its own representation."""

    @property
    def invalid(self) -> Bools:
        """Mask of the cells that do not fit the kind of the column."""

    def filter(self, rows: Bools) -> Self:
        """Return the cells of the rows where the mask is true."""


class Column(Protocol):
    """Encoder of one column: turns cells into features and keeps the statistics that this needs.

    Attributes
    ----------
    name : str
        Name of the column in the table.
    kind : str
        One of `ellipack.choices.COLUMN_KINDS`.
    """

    name: str
    kind: str

    @property
    def note(self) -> str:
        """Remark for the report."""

    @property
    def n_missing(self) -> int:
        """Number of missing values so far."""

    def describe_format(self) -> str:
        """Return how the cells are written, if that is unusual."""

    def parse(self, column: pa.Array) -> Any:
        """Parse cells. Does not change the state."""

    def explain_invalid(self, value: str) -> str:
        """Return why a value is invalid."""

    def draft(self) -> "Column":
        """Return the same column, which can be changed without effect on this one."""

    def partial_fit_transform(self, cells: Any, labels: Floats) -> tuple[Any, list[NewFeature]]:
        """Encode cells row by row and update the state. Return the encoded cells and the new features, by row."""

    def transform(self, cells: Any) -> Any:
        """Encode cells with the current state, without changing it."""

    def write_features(self, encoded: Any, X: Floats) -> None:
        """Write encoded cells to the columns of `X` that belong to this column. `X` must be zero there."""

    def add_feature(self, feature: int) -> None:
        """Assign an index to a new feature."""

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""

    def effect_grids(self, rows: Floats) -> list[EffectGrid]:
        """Return values at which effects are computed, given recent rows of features."""

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""


class LateColumn(Column, Protocol):
    """Column whose kind can be decided after the first rows."""

    def start_late(self, first: pa.Array, n_missing: int, feature: int) -> list[float]:
        """Start with features that are 0 in all rows before.

        Parameters
        ----------
        first : pyarrow.Array
            The values from which the kind was decided.
        n_missing : int
            Number of rows without a value so far.
        feature : int
            Index of the next feature.

        Returns
        -------
        list of float
            Typical sizes of the features.
        """


def convert_each_cell(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, Bools]:
    """Convert the cells that can be converted.

    Splits the column in halves until `convert` succeeds or a single cell is left. This is fast if few cells are
    invalid, and the result for a cell does not depend on its neighbors.

    Parameters
    ----------
    column : pyarrow.Array
        The cells.
    convert : callable
        Converts an array, or raises pyarrow.ArrowInvalid.

    Returns
    -------
    converted : pyarrow.Array
        The converted cells, null where the cell is invalid.
    invalid : ndarray of bool
        Mask of the invalid cells.
    """
    try:
        return convert(column), np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return convert(pa.nulls(1, column.type)), np.ones(1, dtype=bool)
    middle = len(column) // 2
    (first, first_invalid), (second, second_invalid) = (
        convert_each_cell(part, convert) for part in (column.slice(0, middle), column.slice(middle))
    )
    return pa.concat_arrays([first, second]), np.concatenate([first_invalid, second_invalid])


def is_string_type(kind: pa.DataType) -> bool:
    """Return whether a type is a string type."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric_type(kind: pa.DataType) -> bool:
    """Return whether a type is numeric."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_datetime_type(kind: pa.DataType) -> bool:
    """Return whether a type is a date or a timestamp."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def decode_column(column: pa.Array, source: str, name: str) -> pa.Array:
    """Return a column of a type that all kinds can parse; raise StreamError if its type is not supported.

    Dictionaries are decoded. Times with a time zone are converted to UTC, because their time zone may be unknown here.
    """
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = (is_string_type, is_numeric_type, is_datetime_type, pa.types.is_time, pa.types.is_boolean, pa.types.is_null)
    if not any(test(value) for test in known):
        name = escape_name(name)
        raise StreamError(f"{source}, column '{name}': type {kind} is not supported: run with --drop '{name}'")
    column = decode_dictionary(column)
    if pa.types.is_timestamp(value) and value.tz is not None:
        return column.view(pa.timestamp(value.unit))
    if pa.types.is_decimal32(value) or pa.types.is_decimal64(value):  # few functions of pyarrow support these
        return column.cast(pa.decimal128(value.precision, value.scale))
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


_MAX_INT = 2**62  # of integers in a saved state


def get_entry(data: object, key: str) -> Any:
    """Return an entry of a saved state; raise ModelFileError if it is missing."""
    if not isinstance(data, dict) or key not in data:
        raise ModelFileError(f"the saved encoder is invalid: {key!r} is missing")
    return data[key]


def get_int(data: JsonDict, key: str, least: int = 0) -> int:
    """Return an integer entry."""
    value = get_entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _MAX_INT:
        raise invalid_entry(key, f"a whole number >= {least}", value)
    return value


def get_optional_int(data: JsonDict, key: str) -> int | None:
    """Return an entry that is an integer or null."""
    return None if get_entry(data, key) is None else get_int(data, key)


def get_float(data: JsonDict, key: str) -> float:
    """Return an entry that is a finite number."""
    value = get_entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise invalid_entry(key, "a finite number", value)
    return float(value)


def get_bool(data: JsonDict, key: str) -> bool:
    """Return a Boolean entry."""
    value = get_entry(data, key)
    if not isinstance(value, bool):
        raise invalid_entry(key, "true or false", value)
    return value


def get_str(data: JsonDict, key: str) -> str:
    """Return a string entry."""
    value = get_entry(data, key)
    if not isinstance(value, str):
        raise invalid_entry(key, "a string", value)
    return value


def get_list(data: JsonDict, key: str) -> list[Any]:
    """Return a list entry."""
    value = get_entry(data, key)
    if not isinstance(value, list):
        raise invalid_entry(key, "a list", value)
    return value


def get_ints(data: JsonDict, key: str) -> list[int]:
    """Return an entry that is a list of integers."""
    return [get_int({key: value}, key) for value in get_list(data, key)]


def get_strs(data: JsonDict, key: str) -> list[str]:
    """Return an entry that is a list of strings."""
    return [get_str({key: value}, key) for value in get_list(data, key)]


def get_optional_str(data: JsonDict, key: str) -> str | None:
    """Return an entry that is a string or null."""
    return None if get_entry(data, key) is None else get_str(data, key)


def invalid_entry(key: str, rule: str, value: object) -> ModelFileError:
    """Return the error for an entry that breaks a rule."""
    got = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
    return ModelFileError(f"the saved encoder is invalid: {key!r} must be {rule}, got {got[:60]}")


class MissingIndicator:
    """Feature that is 1 where a value is missing. A column gets it with its first missing value.

    If the column was empty at first, the feature is 1 where there is a value, so that it is 0 in the first rows.

    Parameters
    ----------
    count : int, default 0
        Number of missing values so far.
    feature : int or None, default None
        Index of the feature; None before the first missing value.
    is_late : bool, default False
        Whether the column was empty at first.
    """

    def __init__(self, count: int = 0, feature: int | None = None, *, is_late: bool = False) -> None:
        self.count, self.feature, self._is_late = count, feature, is_late

    def update(self, missing: Bools) -> list[NewFeature]:
        """Count missing values. Return the new feature if these are the first ones."""
        found = int(np.count_nonzero(missing))
        self.count += found
        return [NewFeature(int(missing.argmax()), 1.0)] if found and self.feature is None else []

    def write_features(self, missing: Bools, X: Floats) -> None:
        """Write the indicator to `X`, if there is one."""
        if self.feature is not None:
            X[:, self.feature] = ~missing if self._is_late else missing

    def missing_in(self, rows: Floats) -> Bools:
        """Return in which rows of features the value is missing."""
        if self.feature is None:
            return np.zeros(len(rows), dtype=bool)
        return np.asarray(rows[:, self.feature] == (0.0 if self._is_late else 1.0))

    def feature_names(self, column: str) -> dict[int, str]:
        """Return the name of the feature by index; empty before the first missing value."""
        if self.feature is None:
            return {}
        return {self.feature: f"{column} is {'present' if self._is_late else 'missing'}"}

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        return {"missing": self.count, "indicator": self.feature, "is_late": self._is_late}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "MissingIndicator":
        """Restore the state from `to_dict`."""
        count, feature = get_int(data, "missing"), get_optional_int(data, "indicator")
        return cls(count, feature, is_late=get_bool(data, "is_late"))
