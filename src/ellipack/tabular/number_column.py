"""Columns of numbers and Booleans, and the target column."""

from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    MissingIndicator,
    NewFeature,
    convert_each_cell,
    get_float,
    get_int,
    get_str,
    invalid_entry,
    is_numeric_type,
)
from ellipack.tabular.table_batch import quote_value, to_clean_strings, to_strings
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats

BOOLEAN_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("1", "0"))
"""Words for true and false, in upper or lower case."""

_BOOLEAN_WORDS = pa.array([word for pair in BOOLEAN_PAIRS for word in pair])


@dataclass(frozen=True)
class NumberCells:
    """Parsed numbers.

    Attributes
    ----------
    values : ndarray of float
        The numbers, NaN where the value is missing.
    invalid : ndarray of bool
        Mask of the invalid cells.
    """

    values: Floats
    invalid: Bools

    def filter(self, rows: Bools) -> "NumberCells":
        """Return the cells of the rows where the mask is true."""
        return NumberCells(self.values[rows], self.invalid[rows])


def parse_numbers(column: pa.Array) -> NumberCells:
    """Parse a column as floats. Integers beyond 2^53 are rounded to the nearest float."""
    if is_numeric_type(column.type):
        floats, invalid = pc.cast(column, pa.float64(), safe=False), np.zeros(len(column), dtype=bool)
    else:
        try:
            floats, invalid = pc.cast(to_strings(column), pa.float64()), np.zeros(len(column), dtype=bool)
        except pa.ArrowInvalid:
            floats, invalid = convert_each_cell(to_clean_strings(column), lambda cells: pc.cast(cells, pa.float64()))
    values = floats.to_numpy(zero_copy_only=False)
    return NumberCells(values, invalid | (np.abs(values) > MAX_ABS_VALUE))


def parse_booleans(column: pa.Array) -> NumberCells:
    """Parse a column as 1 for true and 0 for false."""
    if pa.types.is_boolean(column.type):
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return NumberCells(values, np.zeros(len(column), dtype=bool))
    cells = to_clean_strings(column)
    found = pc.index_in(pc.utf8_lower(cells), value_set=_BOOLEAN_WORDS).to_numpy(zero_copy_only=False)
    invalid = np.isnan(found) & cells.is_valid().to_numpy(zero_copy_only=False)
    return NumberCells(np.where(np.isnan(found), np.nan, 1.0 - found % 2), invalid)


class NumberColumn:
    """Column of kind ``number`` or ``boolean``. Its feature is the number.

    A missing value is replaced by the mean of the values before it. Sums are accumulated in row order, so that the
    result does not depend on how rows are batched.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean"}
        Kind of the column.
    feature : int
        Index of the feature.
    note : str, default ""
        Remark for the report.
    """

    def __init__(self, name: str, kind: str, feature: int, note: str = "") -> None:
        self.name, self.kind, self.note = name, kind, note
        self._feature, self._indicator = feature, MissingIndicator()
        self._total, self._count = 0.0, 0

    @property
    def n_missing(self) -> int:
        """Number of missing values so far."""
        return self._indicator.count

    def parse(self, column: pa.Array) -> NumberCells:
        """Parse cells as numbers."""
        return parse_numbers(column) if self.kind == "number" else parse_booleans(column)

    def explain_invalid(self, value: str) -> str:
        """Return why a value is invalid."""
        return explain_invalid_number(value) if self.kind == "number" else f"{quote_value(value)} is not a Boolean"

    def partial_fit_transform(
        self, cells: NumberCells, labels: Floats
    ) -> tuple[tuple[Floats, Bools], list[NewFeature]]:
        """Replace each missing value by the mean of the values before it, and update the mean."""
        values, missing = cells.values, np.isnan(cells.values)
        new_features = self._indicator.update(missing)
        known = np.where(missing, 0.0, values) if missing.any() else values
        totals = np.add.accumulate(np.concatenate([[self._total], known]))
        if missing.any():
            counts = self._count + np.concatenate([[0], np.cumsum(~missing)])
            values = np.where(missing, totals[:-1] / np.maximum(counts[:-1], 1), values)
        self._total = float(totals[-1])
        self._count += len(values) - int(np.count_nonzero(missing))
        return (values, missing), new_features

    def transform(self, cells: NumberCells) -> tuple[Floats, Bools]:
        """Replace missing values by the current mean."""
        missing = np.isnan(cells.values)
        return np.where(missing, self._total / max(self._count, 1), cells.values), missing

    def write_features(self, encoded: tuple[Floats, Bools], X: Floats) -> None:
        """Write the values and the missing indicator to `X`."""
        X[:, self._feature], missing = encoded
        self._indicator.write_features(missing, X)

    def add_feature(self, feature: int) -> None:
        """Assign an index to the missing indicator."""
        self._indicator.feature = feature

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        return {self._feature: self.name} | self._indicator.feature_names(self.name)

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "feature": self._feature}
        return own | {"total": self._total, "count": self._count} | self._indicator.to_dict()

    @classmethod
    def from_dict(cls, data: JsonDict) -> "NumberColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        column = cls(get_str(data, "name"), get_str(data, "kind"), get_int(data, "feature"), get_str(data, "note"))
        column._total, column._count = get_float(data, "total"), get_int(data, "count")
        if abs(column._total) > MAX_ABS_VALUE * column._count:
            raise invalid_entry("total", f"at most {MAX_ABS_VALUE:g} times the count", column._total)
        column._indicator = MissingIndicator.from_dict(data)
        return column


def explain_invalid_number(value: str, maximum: float = MAX_ABS_VALUE) -> str:
    """Return why a value is not a valid number."""
    try:
        is_large = abs(float(value)) > maximum
    except ValueError:
        is_large = False
    return f"{quote_value(value)} is " + (f"too large (the maximum is {maximum:g})" if is_large else "not a number")


class TargetColumn:
    """Column of labels: numbers, or Booleans as 1 and 0. A missing label is NaN.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean"}
        Kind of the column.
    """

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def parse(self, column: pa.Array) -> NumberCells:
        """Parse labels."""
        cells = parse_numbers(column) if self.kind == "number" else parse_booleans(column)
        return NumberCells(cells.values, cells.invalid | (np.abs(cells.values) > MAX_ABS_LABEL))

    def explain_invalid(self, value: str) -> str:
        """Return why a label is invalid."""
        if self.kind == "boolean":
            return f"{quote_value(value)} is not a Boolean"
        return explain_invalid_number(value, MAX_ABS_LABEL)

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        return {"name": self.name, "kind": self.kind}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "TargetColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        kind = get_str(data, "kind")
        if kind not in ("number", "boolean"):
            raise invalid_entry("kind", "number or boolean", kind)
        return cls(get_str(data, "name"), kind)
