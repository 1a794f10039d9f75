"""Columns of dates and times: sine and cosine of the hour, weekday and day of the year, and a trend in days."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    MissingIndicator,
    NewFeature,
    convert_each_cell,
    get_entry,
    get_float,
    get_int,
    get_ints,
    get_str,
    invalid_entry,
    is_datetime_type,
)
from ellipack.tabular.table_batch import quote_value, to_clean_strings, to_strings
from ellipack.validation import Floats, Ints

TIME_FORMS = ("date", "datetime", "time of day")
"""Forms of time columns: dates, dates with a time of day, and times of day without a date."""

_SECOND, _DAY = 10**6, 86_400 * 10**6  # in microseconds
_EARLIEST, _LATEST = -62_167_219_200 * _SECOND, 253_402_300_800 * _SECOND  # the years 0 to 9999
_BEYOND_MICROSECONDS = r"(\.[0-9]{6})[0-9]+"  # digits beyond microseconds
_MICROSECONDS_PER_UNIT = {
    "s": (_SECOND, 1),
    "ms": (1000, 1),
    "us": (1, 1),
    "ns": (1, 1000),
    "date32": (_DAY, 1),
    "date64": (1000, 1),
}  # multiplier and divisor to convert a count to microseconds
TIME_FEATURES = {
    "date": ("weekday sin", "weekday cos", "day of year sin", "day of year cos", "days since start"),
    "time of day": ("hour sin", "hour cos"),
}
TIME_FEATURES["datetime"] = TIME_FEATURES["time of day"] + TIME_FEATURES["date"]
"""Features of each form of time column."""


def _circle_points(steps: int) -> Floats:
    """Return sine and cosine at equally spaced angles, one row for each of `steps` angles.

    Features are looked up in this table, because a vectorized sine may depend on the position in the batch in its
    last bit.
    """
    turns = [2 * math.pi * step / steps for step in range(steps)]
    return np.array([[math.sin(turn), math.cos(turn)] for turn in turns])


_SECONDS, _WEEK, _YEAR = _circle_points(86_400), _circle_points(7), _circle_points(366)


@dataclass(frozen=True)
class TimeCells:
    """Parsed times.

    Attributes
    ----------
    values : ndarray of int
        Microseconds since 1970 in UTC, or since midnight for times of day; 0 where the value is missing.
    missing : ndarray of bool
        Mask of the missing values.
    invalid : ndarray of bool
        Mask of the invalid cells.
    """

    values: Ints
    missing: Bools
    invalid: Bools

    def filter(self, rows: Bools) -> "TimeCells":
        """Return the cells of the rows where the mask is true."""
        return TimeCells(self.values[rows], self.missing[rows], self.invalid[rows])


def parse_datetimes(column: pa.Array) -> TimeCells:
    """Parse dates in ISO 8601 format, with or without a time of day and a time zone. The default time zone is UTC."""
    if is_datetime_type(column.type):
        unit = str(column.type) if pa.types.is_date(column.type) else column.type.unit
        return _to_microseconds(
            column, *_MICROSECONDS_PER_UNIT[unit.partition("[")[0]], np.zeros(len(column), dtype=bool)
        )
    cells, invalid = _convert_cells(to_strings(column), _to_datetimes)
    return _to_microseconds(cells, 1, 1, invalid)


def parse_times_of_day(column: pa.Array) -> TimeCells:
    """Parse times of day: hours, minutes and optional seconds."""
    if pa.types.is_time(column.type):
        return _to_microseconds(column, *_MICROSECONDS_PER_UNIT[column.type.unit], np.zeros(len(column), dtype=bool))
    cells, invalid = _convert_cells(to_strings(column), _to_times_of_day)
    return _to_microseconds(cells, 1, 1, invalid)


def _convert_cells(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, Bools]:
    """Convert cells at once; if that fails, strip and truncate them and convert the valid ones."""
    try:
        return convert(column), np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        return convert_each_cell(
            pc.replace_substring_regex(to_clean_strings(column), _BEYOND_MICROSECONDS, r"\1"), convert
        )


def _to_datetimes(cells: pa.Array) -> pa.Array:
    """Convert strings to timestamps. Either all or none must have a time zone."""
    try:
        return pc.cast(cells, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(cells, pa.timestamp("us", "UTC")), pa.timestamp("us"))


def _to_times_of_day(cells: pa.Array) -> pa.Array:
    """Convert strings to timestamps on 1970-01-01."""
    padded = pc.replace_substring_regex(cells, "^([0-9]:)", r"0\1")
    return pc.cast(pc.binary_join_element_wise("1970-01-01T", padded, ""), pa.timestamp("us"))


def _to_microseconds(cells: pa.Array, times: int, over: int, invalid: Bools) -> TimeCells:
    """Convert counts of a unit to microseconds: multiply by `times` and divide by `over`."""
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    narrow = pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type)
    counts = cells.view(pa.int32() if narrow else pa.int64()).fill_null(0).to_numpy().astype(np.int64)
    outside = (counts < _EARLIEST * over // times) | (counts >= _LATEST * over // times)
    values = np.where(outside | missing, 0, counts) * times // over
    return TimeCells(values, missing & ~invalid, invalid | (outside & ~missing))


class TimeColumn:
    """Column of dates or times.

    For a missing value, sines and cosines are 0 and the trend is that of the last value before it.

    Parameters
    ----------
    name : str
        Name of the column.
    form : {"date", "datetime", "time of day"}
        Form of the values, which determines the features.
    features : list of int
        Indices of the features.
    note : str, default ""
        Remark for the report.
    """

    kind = "time"

    def __init__(self, name: str, form: str, features: list[int], note: str = "") -> None:
        self.name, self.form, self.note = name, form, note
        self._features, self._indicator = features, MissingIndicator()
        self._first_time: int | None = None
        self._last_days = 0.0

    @property
    def n_missing(self) -> int:
        """Number of missing values so far."""
        return self._indicator.count

    def describe_format(self) -> str:
        """Return an empty string: nothing is unusual."""
        return ""

    def parse(self, column: pa.Array) -> TimeCells:
        """Parse cells as times."""
        return parse_times_of_day(column) if self.form == "time of day" else parse_datetimes(column)

    def explain_invalid(self, value: str) -> str:
        """Return why a value is invalid."""
        example = "12:30" if self.form == "time of day" else "2024-05-31 or 2024-05-31T12:30:00Z"
        form = "time of day" if self.form == "time of day" else "date"
        return f"{quote_value(value)} is not a {form} like {example}"

    def partial_fit_transform(self, cells: TimeCells, labels: Floats) -> tuple[tuple[Floats, Bools], list[NewFeature]]:
        """Return the features and the mask of missing values, and update the state."""
        present = np.flatnonzero(~cells.missing)
        if self._first_time is None and len(present):
            self._first_time = int(cells.values[present[0]])
        days = self._days(cells)
        # Index of the last row with a value, for each row.
        last = np.maximum.accumulate(np.where(cells.missing, -1, np.arange(len(days))))
        days = np.where(last >= 0, days[last], self._last_days)
        self._last_days = float(days[-1]) if len(days) else self._last_days
        return (self._time_features(cells, days), cells.missing), self._indicator.update(cells.missing)

    def transform(self, cells: TimeCells) -> tuple[Floats, Bools]:
        """Return the features and the mask of missing values."""
        return self._time_features(cells, np.where(cells.missing, self._last_days, self._days(cells))), cells.missing

    def write_features(self, encoded: tuple[Floats, Bools], X: Floats) -> None:
        """Write the features and the missing indicator to `X`."""
        X[:, self._features], missing = encoded
        self._indicator.write_features(missing, X)

    def add_feature(self, feature: int) -> None:
        """Assign an index to the missing indicator."""
        self._indicator.feature = feature

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        names = (f"{self.name} {part}" for part in TIME_FEATURES[self.form])
        return dict(zip(self._features, names, strict=True)) | self._indicator.feature_names(self.name)

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self.note, "form": self.form, "features": self._features}
        return own | {"first_time": self._first_time, "last_days": self._last_days} | self._indicator.to_dict()

    @classmethod
    def from_dict(cls, data: JsonDict) -> "TimeColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        form, indices = get_str(data, "form"), get_ints(data, "features")
        if form not in TIME_FORMS or len(indices) != len(TIME_FEATURES[form]):
            raise invalid_entry("form", f"one of {', '.join(TIME_FORMS)}, with its features", form)
        column = cls(get_str(data, "name"), form, indices, get_str(data, "note"))
        first_time = get_entry(data, "first_time")
        column._first_time = None if first_time is None else get_int(data, "first_time", _EARLIEST)
        column._last_days = get_float(data, "last_days")
        column._indicator = MissingIndicator.from_dict(data)
        return column

    def _days(self, cells: TimeCells) -> Floats:
        """Return the days since the first time."""
        return np.asarray((cells.values - (self._first_time or 0)) / _DAY)

    def _time_features(self, cells: TimeCells, days: Floats) -> Floats:
        """Return the features of the form, in the order of `TIME_FEATURES`."""
        parts = []
        if self.form != "date":
            parts.append(_SECONDS[cells.values % _DAY // _SECOND])
        if self.form != "time of day":
            dates = (cells.values // _DAY).astype("M8[D]")
            parts.append(_WEEK[(cells.values // _DAY + 3) % 7])  # 1970-01-01 was a Thursday
            parts.append(_YEAR[(dates - dates.astype("M8[Y]").astype("M8[D]")).astype(np.int64)])
        parts = [np.where(cells.missing[:, None], 0.0, part) for part in parts]
        return np.column_stack(parts if self.form == "time of day" else [*parts, days])
