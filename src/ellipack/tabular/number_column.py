"""Columns of numbers, and the target."""

from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Event,
    Flags,
    Json,
    MissingMark,
    broken,
    convert_each,
    is_number,
    number,
    text,
    whole_number,
)
from ellipack.tabular.table_batch import as_text, clean, shown
from ellipack.validation import Floats

MAX_ABS_VALUE = 1e140
"""How large a value may be; the square of a larger one is close to what a float can't hold."""

MAX_ABS_LABEL = 1e60
"""How large a label may be."""

PAIRS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("1", "0"))
"""The spellings of yes and no, in upper or lower case."""

_SPELLINGS = pa.array([word for pair in PAIRS for word in pair])


@dataclass(frozen=True)
class Reals:
    """Numbers, NaN where one is missing."""

    values: Floats
    bad: Flags

    def kept(self, rows: Flags) -> "Reals":
        """Return the numbers in some of the rows."""
        return Reals(self.values[rows], self.bad[rows])


def parse_numbers(column: pa.Array) -> Reals:
    """Return a column as floats; whole numbers past 2^53 are rounded to those that a float holds."""
    if is_number(column.type):
        floats, bad = pc.cast(column, pa.float64(), safe=False), np.zeros(len(column), dtype=bool)
    else:
        try:
            floats, bad = pc.cast(as_text(column), pa.float64()), np.zeros(len(column), dtype=bool)
        except pa.ArrowInvalid:
            floats, bad = convert_each(clean(column), lambda cells: pc.cast(cells, pa.float64()))
    values = floats.to_numpy(zero_copy_only=False)
    return Reals(values, bad | (np.abs(values) > MAX_ABS_VALUE))


def parse_booleans(column: pa.Array) -> Reals:
    """Return a column as 1 where it says yes and 0 where it says no."""
    if pa.types.is_boolean(column.type):
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        return Reals(values, np.zeros(len(column), dtype=bool))
    cells = clean(column)
    found = pc.index_in(pc.utf8_lower(cells), value_set=_SPELLINGS).to_numpy(zero_copy_only=False)
    bad = np.isnan(found) & cells.is_valid().to_numpy(zero_copy_only=False)
    return Reals(np.where(np.isnan(found), np.nan, 1.0 - found % 2), bad)


class NumberColumn:
    """A column of kind ``number`` or ``boolean``; sums in the order of the rows, so that batching changes no bit."""

    def __init__(self, name: str, kind: str, feature: int, note: str = "") -> None:
        self.name, self.kind, self.note = name, kind, note
        self._feature, self._mark = feature, MissingMark()
        self._total, self._count = 0.0, 0

    @property
    def missing(self) -> int:
        """How many values were missing so far."""
        return self._mark.count

    def parse(self, column: pa.Array) -> Reals:
        """Return cells as numbers."""
        return parse_numbers(column) if self.kind == "number" else parse_booleans(column)

    def refusal(self, value: str) -> str:
        """Return why a value is no number that can be taken."""
        return why_no_number(value) if self.kind == "number" else f"{shown(value)} is not yes or no"

    def learn(self, cells: Reals) -> tuple[tuple[Floats, Flags], list[Event]]:
        """Return the values, missing ones filled with the mean of those before."""
        values, missing = cells.values, np.isnan(cells.values)
        events = self._mark.learn(missing)
        known = np.where(missing, 0.0, values) if missing.any() else values
        totals = np.add.accumulate(np.concatenate([[self._total], known]))
        if missing.any():
            counts = self._count + np.concatenate([[0], np.cumsum(~missing)])
            values = np.where(missing, totals[:-1] / np.maximum(counts[:-1], 1), values)
        self._total = float(totals[-1])
        self._count += len(values) - int(np.count_nonzero(missing))
        return (values, missing), events

    def apply(self, cells: Reals) -> tuple[Floats, Flags]:
        """Return the values, missing ones filled with the mean."""
        missing = np.isnan(cells.values)
        return np.where(missing, self._total / max(self._count, 1), cells.values), missing

    def write(self, encoded: tuple[Floats, Flags], X: Floats) -> None:
        """Write the values, and where they are missing."""
        X[:, self._feature], missing = encoded
        self._mark.write(missing, X)

    def grow(self, level: str | None, feature: int) -> None:
        """Take a feature for what is missing."""
        self._mark.feature = feature

    def features(self) -> dict[int, str]:
        """Return the names of the features by their places."""
        return {self._feature: self.name} | self._mark.features(self.name)

    def to_dict(self) -> Json:
        """Return all that is known of the column."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "feature": self._feature}
        return own | {"total": self._total, "count": self._count} | self._mark.to_dict()

    @classmethod
    def from_dict(cls, data: Json) -> "NumberColumn":
        """Return what `to_dict` was taken of."""
        column = cls(text(data, "name"), text(data, "kind"), whole_number(data, "feature"), text(data, "note"))
        column._total, column._count = number(data, "total"), whole_number(data, "count")
        if abs(column._total) > MAX_ABS_VALUE * column._count:
            raise broken("total", f"at most {MAX_ABS_VALUE:g} times the count", column._total)
        column._mark = MissingMark.from_dict(data)
        return column


def why_no_number(value: str, largest: float = MAX_ABS_VALUE) -> str:
    """Return what is wrong with a value where a number is wanted."""
    try:
        is_large = abs(float(value)) > largest
    except ValueError:
        is_large = False
    return f"{shown(value)} is " + (f"too large, over {largest:g}" if is_large else "not a number")


class Target:
    """The labels: numbers, or yes and no as 1 and 0. A label that is missing is a bad one."""

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind

    def parse(self, column: pa.Array) -> Reals:
        """Return labels."""
        cells = parse_numbers(column) if self.kind == "number" else parse_booleans(column)
        return Reals(cells.values, cells.bad | np.isnan(cells.values) | (np.abs(cells.values) > MAX_ABS_LABEL))

    def refusal(self, value: str | None) -> str:
        """Return why a label can't be used."""
        if value is None:
            return "the label is missing"
        if self.kind == "boolean":
            return f"{shown(value)} is not yes or no"
        return why_no_number(value, MAX_ABS_LABEL)

    def to_dict(self) -> Json:
        """Return all that is known of it."""
        return {"name": self.name, "kind": self.kind}

    @classmethod
    def from_dict(cls, data: Json) -> "Target":
        """Return what `to_dict` was taken of."""
        kind = text(data, "kind")
        if kind not in ("number", "boolean"):
            raise broken("kind", "number or boolean", kind)
        return cls(text(data, "name"), kind)
