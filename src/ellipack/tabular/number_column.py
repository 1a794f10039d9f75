"""Columns of numbers and Booleans, and the target column."""

from copy import copy

import numpy as np

from ellipack.learners.metric.effects import EffectGrid, quantile_grid
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    MissingIndicator,
    NewFeature,
    get_entry,
    get_float,
    get_int,
    get_str,
    invalid_entry,
)
from ellipack.tabular.number_format import PLAIN, NumberCells, NumberFormat, find_number_format
from ellipack.tabular.table_batch import quote_value, to_clean_strings
from ellipack.validation import MAX_ABS_LABEL, MAX_ABS_VALUE, Floats

BOOLEAN_PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("1", "0"))
"""Words for true and false, in upper or lower case."""

_BOOLEAN_WORDS = pa.array([word for pair in BOOLEAN_PAIRS for word in pair])


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

    If the kind is decided after the first rows, the feature is the difference from the mean of the first values: it is
    0 in the rows before, as if their values were missing.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean"}
        Kind of the column.
    feature : int
        Index of the feature.
    format : NumberFormat, default PLAIN
        How the numbers are written.
    note : str, default ""
        Remark for the report.
    """

    def __init__(self, name: str, kind: str, feature: int, format: NumberFormat = PLAIN, note: str = "") -> None:
        self.name, self.kind, self.format, self.note = name, kind, format, note
        self._feature, self._indicator = feature, MissingIndicator()
        self._total, self._count, self._origin = 0.0, 0, 0.0

    @property
    def n_missing(self) -> int:
        """Number of missing values so far."""
        return self._indicator.count

    def describe_format(self) -> str:
        """Return how the numbers are written, if that is unusual and the first ones show it."""
        format = self.format.describe()
        return format if self.note.startswith(format) else ""

    def parse(self, column: pa.Array) -> NumberCells:
        """Parse cells as numbers."""
        return self.format.parse(column) if self.kind == "number" else parse_booleans(column)

    def explain_invalid(self, value: str) -> str:
        """Return why a value is invalid."""
        return (
            explain_invalid_number(value, self.format, MAX_ABS_VALUE) if self.kind == "number" else _not_boolean(value)
        )

    def draft(self) -> "NumberColumn":
        """Return the same column, which can be changed without effect on this one."""
        own = copy(self)
        own._indicator = copy(self._indicator)
        return own

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
        values, missing = encoded
        X[:, self._feature] = np.clip(values - self._origin, -MAX_ABS_VALUE, MAX_ABS_VALUE) if self._origin else values
        self._indicator.write_features(missing, X)

    def add_feature(self, feature: int) -> None:
        """Assign an index to the missing indicator."""
        self._indicator.feature = feature

    def start_late(self, first: pa.Array, n_missing: int, feature: int) -> list[float]:
        """Start with the mean of the first values, and say where there is a value if it was missing before."""
        cells = self.parse(first)
        known = cells.values[~cells.invalid]
        self._total, self._count = float(np.add.accumulate(known)[-1]), len(known)
        self._origin = self._total / self._count
        scales = [float(np.abs(known - self._origin).mean()) or 1.0]
        if n_missing:
            self._indicator = MissingIndicator(n_missing, feature, is_late=True)
            scales.append(1.0)
        return scales

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        return {self._feature: self.name} | self._indicator.feature_names(self.name)

    def effect_grids(self, rows: Floats) -> list[EffectGrid]:
        """Return quantiles of the values in recent rows."""
        values = rows[~self._indicator.missing_in(rows), self._feature] + self._origin
        if not len(values):
            return []
        grid, features = quantile_grid(values), list(self.feature_names())
        X = np.zeros((len(grid), rows.shape[1]))
        self.write_features((grid, np.zeros(len(grid), dtype=bool)), X)
        labels = tuple("true" if value else "false" for value in grid) if self.kind == "boolean" else ()
        return [EffectGrid(self.name, features, X[:, features], grid, labels)]

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "feature": self._feature}
        own |= {"format": self.format.to_dict()}
        means = {"total": self._total, "count": self._count, "origin": self._origin}
        return own | means | self._indicator.to_dict()

    @classmethod
    def from_dict(cls, data: JsonDict) -> "NumberColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        name, kind, feature = get_str(data, "name"), get_str(data, "kind"), get_int(data, "feature")
        column = cls(name, kind, feature, NumberFormat.from_dict(get_entry(data, "format")), get_str(data, "note"))
        column._total, column._count = get_float(data, "total"), get_int(data, "count")
        if abs(column._total) > MAX_ABS_VALUE * column._count:
            raise invalid_entry("total", f"at most {MAX_ABS_VALUE:g} times the count", column._total)
        column._origin = get_float(data, "origin")
        if abs(column._origin) > MAX_ABS_VALUE:
            raise invalid_entry("origin", f"at most {MAX_ABS_VALUE:g}", column._origin)
        column._indicator = MissingIndicator.from_dict(data)
        return column


def explain_invalid_number(value: str, format: NumberFormat, maximum: float) -> str:
    """Return why a value is not a valid number of a format, and what to do about it."""
    cells = pa.array([value])
    if np.abs(format.parse(cells).values[0]) > maximum or _is_large(value, maximum):
        return f"{quote_value(value)} is too large (the maximum is {maximum:g})"
    expected = f" ({format.describe()})" if format.describe() else ""
    reason = f"{quote_value(value)} is not a number{expected}"
    other = find_number_format(cells)
    if other.share < 1 or other.format == format:
        return reason
    if (other.format.currency, other.format.unit) != (format.currency, format.unit):
        return f"{reason}, as those of the first rows are"
    remedy = (
        f"--thousands '{other.format.thousands}'" if other.format.thousands else f"--decimal {other.format.decimal}"
    )
    return f"{reason}: if all numbers of the table are written like this one, run with {remedy} from the first row"


def _is_large(value: str, maximum: float) -> bool:
    try:
        return abs(float(value)) > maximum
    except ValueError:
        return False


def _not_boolean(value: str) -> str:
    return f"{quote_value(value)} is not a Boolean"


class TargetColumn:
    """Column of labels: numbers, or Booleans as 1 and 0. A missing label is NaN.

    Parameters
    ----------
    name : str
        Name of the column.
    kind : {"number", "boolean"}
        Kind of the column.
    format : NumberFormat, default PLAIN
        How the numbers are written.
    """

    def __init__(self, name: str, kind: str, format: NumberFormat = PLAIN) -> None:
        self.name, self.kind, self.format = name, kind, format

    def describe_format(self) -> str:
        """Return how the numbers are written, if that is unusual."""
        return self.format.describe()

    def parse(self, column: pa.Array) -> NumberCells:
        """Parse labels."""
        cells = self.format.parse(column) if self.kind == "number" else parse_booleans(column)
        return NumberCells(cells.values, cells.invalid | (np.abs(cells.values) > MAX_ABS_LABEL))

    def explain_invalid(self, value: str) -> str:
        """Return why a label is invalid."""
        if self.kind == "boolean":
            return _not_boolean(value)
        return explain_invalid_number(value, self.format, MAX_ABS_LABEL)

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        return {"name": self.name, "kind": self.kind, "format": self.format.to_dict()}

    @classmethod
    def from_dict(cls, data: JsonDict) -> "TargetColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        kind = get_str(data, "kind")
        if kind not in ("number", "boolean"):
            raise invalid_entry("kind", "number or boolean", kind)
        return cls(get_str(data, "name"), kind, NumberFormat.from_dict(get_entry(data, "format")))
