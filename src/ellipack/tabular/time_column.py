"""Dates and times: where in the day, the week and the year, on a circle each, and how long since the first row."""

import math
from collections.abc import Callable
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
    entry,
    is_moment,
    number,
    text,
    whole_number,
    wholes,
)
from ellipack.tabular.table_batch import as_text, clean, shown
from ellipack.validation import Floats, Ints

FORMS = ("date", "datetime", "clock")
"""Dates; dates with a time of day; times of day alone."""

_SECOND, _DAY = 10**6, 86_400 * 10**6  # in microseconds
_EARLIEST, _LATEST = -62_167_219_200 * _SECOND, 253_402_300_800 * _SECOND  # the years 0 to 9999
_FINER = r"(\.[0-9]{6})[0-9]+"  # digits past the microsecond
_UNITS = {
    "s": (_SECOND, 1),
    "ms": (1000, 1),
    "us": (1, 1),
    "ns": (1, 1000),
    "date32": (_DAY, 1),
    "date64": (1000, 1),
}  # what to multiply and to divide a count by, for microseconds
PARTS = {
    "date": ("weekday sin", "weekday cos", "day of year sin", "day of year cos", "days since start"),
    "clock": ("hour sin", "hour cos"),
}
PARTS["datetime"] = PARTS["clock"] + PARTS["date"]
"""The features that a column of each form has."""


def _circle(steps: int) -> Floats:
    """Return sine and cosine at so many steps around.

    Looked up and not computed for each row: a vectorised sine may differ in the last bit with its place in a batch.
    """
    turns = [2 * math.pi * step / steps for step in range(steps)]
    return np.array([[math.sin(turn), math.cos(turn)] for turn in turns])


_SECONDS, _WEEK, _YEAR = _circle(86_400), _circle(7), _circle(366)


@dataclass(frozen=True)
class Instants:
    """Microseconds since 1970 in UTC, or since midnight; 0 where one is missing."""

    values: Ints
    missing: Flags
    bad: Flags

    def kept(self, rows: Flags) -> "Instants":
        """Return the instants in some of the rows."""
        return Instants(self.values[rows], self.missing[rows], self.bad[rows])


def parse_moments(column: pa.Array) -> Instants:
    """Return dates as in ISO 8601, with or without a time of day and a zone; those without a zone are taken for UTC."""
    if is_moment(column.type):
        unit = str(column.type) if pa.types.is_date(column.type) else column.type.unit
        return _instants(column, *_UNITS[unit.partition("[")[0]], np.zeros(len(column), dtype=bool))
    cells, bad = _converted(as_text(column), _moments)
    return _instants(cells, 1, 1, bad)


def parse_clock(column: pa.Array) -> Instants:
    """Return times of day: hours and minutes, maybe seconds."""
    if pa.types.is_time(column.type):
        return _instants(column, *_UNITS[column.type.unit], np.zeros(len(column), dtype=bool))
    cells, bad = _converted(as_text(column), _clock)
    return _instants(cells, 1, 1, bad)


def _converted(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, Flags]:
    try:
        return convert(column), np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        return convert_each(pc.replace_substring_regex(clean(column), _FINER, r"\1"), convert)


def _moments(cells: pa.Array) -> pa.Array:
    """Return texts as moments, if all have a zone or none has."""
    try:
        return pc.cast(cells, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(cells, pa.timestamp("us", "UTC")), pa.timestamp("us"))


def _clock(cells: pa.Array) -> pa.Array:
    """Return texts as moments of the day that the count of microseconds starts with."""
    padded = pc.replace_substring_regex(cells, "^([0-9]:)", r"0\1")
    return pc.cast(pc.binary_join_element_wise("1970-01-01T", padded, ""), pa.timestamp("us"))


def _instants(cells: pa.Array, times: int, over: int, bad: Flags) -> Instants:
    """Return cells as microseconds, which are their counts `times` one number and `over` another."""
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    narrow = pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type)
    counts = cells.view(pa.int32() if narrow else pa.int64()).fill_null(0).to_numpy().astype(np.int64)
    outside = (counts < _EARLIEST * over // times) | (counts >= _LATEST * over // times)
    values = np.where(outside | missing, 0, counts) * times // over
    return Instants(values, missing & ~bad, bad | (outside & ~missing))


class TimeColumn:
    """A column of dates or times.

    A missing one is in the middle of each circle, and as long after the first as the last that there was.
    """

    kind = "time"

    def __init__(self, name: str, form: str, features: list[int], note: str = "") -> None:
        self.name, self.form, self.note = name, form, note
        self._features, self._mark = features, MissingMark()
        self._origin: int | None = None
        self._latest = 0.0

    @property
    def missing(self) -> int:
        """How many values were missing so far."""
        return self._mark.count

    def parse(self, column: pa.Array) -> Instants:
        """Return cells as instants."""
        return parse_clock(column) if self.form == "clock" else parse_moments(column)

    def refusal(self, value: str) -> str:
        """Return why a value is no time that can be taken."""
        example = "12:30" if self.form == "clock" else "2024-05-31 or 2024-05-31T12:30:00Z"
        return f"{shown(value)} is not a {'time of day' if self.form == 'clock' else 'date'} like {example}"

    def learn(self, cells: Instants) -> tuple[tuple[Floats, Flags], list[Event]]:
        """Return the features, those of a missing time by the times before."""
        there = np.flatnonzero(~cells.missing)
        if self._origin is None and len(there):
            self._origin = int(cells.values[there[0]])
        days = self._days(cells)
        # For each row, the last one up to it that has a time.
        last = np.maximum.accumulate(np.where(cells.missing, -1, np.arange(len(days))))
        days = np.where(last >= 0, days[last], self._latest)
        self._latest = float(days[-1]) if len(days) else self._latest
        return (self._parts(cells, days), cells.missing), self._mark.learn(cells.missing)

    def apply(self, cells: Instants) -> tuple[Floats, Flags]:
        """Return the features, those of a missing time by the last that was learned."""
        return self._parts(cells, np.where(cells.missing, self._latest, self._days(cells))), cells.missing

    def write(self, encoded: tuple[Floats, Flags], X: Floats) -> None:
        """Write the features, and where the time is missing."""
        X[:, self._features], missing = encoded
        self._mark.write(missing, X)

    def grow(self, level: str | None, feature: int) -> None:
        """Take a feature for what is missing."""
        self._mark.feature = feature

    def features(self) -> dict[int, str]:
        """Return the names of the features by their places."""
        names = (f"{self.name} {part}" for part in PARTS[self.form])
        return dict(zip(self._features, names, strict=True)) | self._mark.features(self.name)

    def to_dict(self) -> Json:
        """Return all that is known of the column."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "form": self.form, "features": self._features}
        return own | {"origin": self._origin, "latest": self._latest} | self._mark.to_dict()

    @classmethod
    def from_dict(cls, data: Json) -> "TimeColumn":
        """Return what `to_dict` was taken of."""
        form, places = text(data, "form"), wholes(data, "features")
        if form not in FORMS or len(places) != len(PARTS[form]):
            raise broken("form", f"one of {', '.join(FORMS)}, with its features", form)
        column = cls(text(data, "name"), form, places, text(data, "note"))
        origin = entry(data, "origin")
        column._origin = None if origin is None else whole_number(data, "origin", _EARLIEST)
        column._latest = number(data, "latest")
        column._mark = MissingMark.from_dict(data)
        return column

    def _days(self, cells: Instants) -> Floats:
        return np.asarray((cells.values - (self._origin or 0)) / _DAY)

    def _parts(self, cells: Instants, days: Floats) -> Floats:
        """Return the features that the column's form has, in the order of their names."""
        parts = []
        if self.form != "date":
            parts.append(_SECONDS[cells.values % _DAY // _SECOND])
        if self.form != "clock":
            dates = (cells.values // _DAY).astype("M8[D]")
            parts.append(_WEEK[(cells.values // _DAY + 3) % 7])  # counting starts with a Thursday
            parts.append(_YEAR[(dates - dates.astype("M8[Y]").astype("M8[D]")).astype(np.int64)])
        parts = [np.where(cells.missing[:, None], 0.0, part) for part in parts]
        return np.column_stack(parts if self.form == "clock" else [*parts, days])
