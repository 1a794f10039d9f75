"""Columns of dates and times: sine and cosine of the parts that vary, and a trend in days if it is wanted."""

import math
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ellipack.errors import DomainError
from ellipack.learners.metric.effects import EffectGrid
from ellipack.tabular.arrow import pa
from ellipack.tabular.columns import (
    Bools,
    JsonDict,
    MissingIndicator,
    NewFeature,
    get_bool,
    get_entry,
    get_float,
    get_int,
    get_ints,
    get_optional_int,
    get_str,
    get_strs,
    invalid_entry,
)
from ellipack.tabular.table_batch import escape_name, quote_value
from ellipack.tabular.time_format import DAY, EARLIEST, SECOND, TimeCells, TimeFormat
from ellipack.tabular.time_inference import find_reordered_format
from ellipack.validation import Floats, Ints


def _circle_points(steps: int) -> Floats:
    """Return sine and cosine at equally spaced angles, one row for each of `steps` angles.

    Features are looked up in this table, because a vectorized sine may depend on the position in the batch in its
    last bit.
    """
    turns = [2 * math.pi * step / steps for step in range(steps)]
    return np.array([[math.sin(turn), math.cos(turn)] for turn in turns])


_CIRCLES = {"hour": _circle_points(86_400), "weekday": _circle_points(7), "day of year": _circle_points(366)}

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November")
_EFFECT_STEPS: dict[str, tuple[list[int], tuple[str, ...]]] = {
    "hour": ([3600 * hour for hour in range(24)], tuple(f"{hour:02}:00" for hour in range(24))),
    "weekday": (list(range(7)), _WEEKDAYS),
    "day of year": ([round(30.5 * month + 15) for month in range(12)], (*_MONTHS, "December")),
}
"""Steps of each part at which effects are computed, and their names. A month stands for its middle."""


def periodic_parts(format: TimeFormat) -> tuple[str, ...]:
    """Return the periodic parts that times of a format can have.

    Examples
    --------
    >>> periodic_parts(TimeFormat("%Y-%m"))
    ('day of year',)
    """
    if format.is_time_of_day:
        return ("hour",)
    return ("hour", "weekday", "day of year") if format.has_days else ("day of year",)


def has_varying_part(cells: TimeCells, format: TimeFormat) -> bool:
    """Return whether a periodic part varies in some cells."""
    times = cells.values[~cells.missing & ~cells.invalid]
    steps = _steps_of_parts(times)
    others = [part for part in periodic_parts(format) if part != "weekday"]
    if any((steps[part] != steps[part][:1]).any() for part in others):
        return True
    return format.has_days and bool(_weekday_varies(times, times[:1]).any())


def _weekday_varies(times: Ints, first: Ints) -> Bools:
    """Return where both the weekday and the day of the month differ from the first. Monthly dates have no weekday."""
    days, first_day = ((each // DAY).astype("M8[D]") for each in (times, first))
    in_month, first_in_month = (day - day.astype("M8[M]").astype("M8[D]") for day in (days, first_day))
    varies: Bools = ((times // DAY - first // DAY) % 7 != 0) & (in_month != first_in_month)
    return varies


def _steps_of_parts(times: Ints) -> dict[str, Ints]:
    """Return the index of each time in the tables of sines and cosines."""
    days = (times // DAY).astype("M8[D]")
    return {
        "hour": times % DAY // SECOND,
        "weekday": (times // DAY + 3) % 7,  # 1970-01-01 was a Thursday
        "day of year": (days - days.astype("M8[Y]").astype("M8[D]")).astype(np.int64),
    }


class EncodedTimes(NamedTuple):
    """Encoded cells: the features of each part, the days since the first row, and the mask of missing values."""

    parts: dict[str, Floats]
    days: Floats
    missing: Bools


class TimeColumn:
    """Column of dates or times.

    A periodic part gets its features when it first varies. They are measured from their first values, so that they are
    0 in the rows before. For a missing value, sines and cosines are 0, and the trend is that of the last value before.

    Parameters
    ----------
    name : str
        Name of the column.
    format : TimeFormat
        How times are written.
    initial : tuple of str
        Periodic parts that have features from the first row on.
    feature : int
        Index of the first feature.
    has_trend : bool, default False
        Whether the days since the first row are a feature.
    note : str, default ""
        Remark for the user.
    """

    kind = "time"

    def __init__(
        self, name: str, format: TimeFormat, initial: tuple[str, ...], feature: int, has_trend: bool, note: str = ""
    ) -> None:
        self.name, self.format, self._note = name, format, note
        self._features = {part: [feature + 2 * i, feature + 2 * i + 1] for i, part in enumerate(initial)}
        self._trend_feature = feature + 2 * len(initial) if has_trend else None
        self._initial = initial
        self._indicator, self._expected = MissingIndicator(), list[list[int]]()
        self._first_time: int | None = None
        self._last_days = 0.0

    @property
    def n_missing(self) -> int:
        """Number of missing values so far."""
        return self._indicator.count

    @property
    def note(self) -> str:
        """Remark for the report."""
        return self.describe_format()

    def describe_format(self) -> str:
        """Return how the times are written if that is unusual, and other remarks."""
        return "; ".join(filter(None, [self.format.describe(), self._note]))

    def parse(self, column: pa.Array) -> TimeCells:
        """Parse cells as times."""
        return self.format.parse(column)

    def explain_invalid(self, value: str) -> str:
        """Return why a value is invalid."""
        if self.format.is_time_of_day:
            return f"{quote_value(value)} is not a time of day like 12:30"
        if not replace(self.format, has_zone=None).parse(pa.array([value])).invalid.any():
            has, others = ("no", "have one") if self.format.has_zone else ("a", "have none")
            return f"{quote_value(value)} has {has} time zone, but the times of the first rows {others}"
        if self.format.pattern == "iso":
            return f"{quote_value(value)} is not a date like 2024-05-31 or 2024-05-31T12:30:00Z"
        reason = f"{quote_value(value)} is not a date as those of the first rows, {self.format.describe()}"
        other = find_reordered_format(self.format, value)
        if other is None:
            return reason
        option = f"--time-format '{escape_name(self.name)}={other.pattern}'"
        return f"{reason}: if {other.pattern} fits all rows, run with {option} from the first row"

    def draft(self) -> "TimeColumn":
        """Return the same column, which can be changed without effect on this one."""
        own = copy(self)
        own._features = {part: list(indices) for part, indices in self._features.items()}
        own._indicator, own._expected = copy(self._indicator), []
        return own

    def partial_fit_transform(self, cells: TimeCells, labels: Floats) -> tuple[EncodedTimes, list[NewFeature]]:
        """Return the encoded cells and the new features, and update the state."""
        present = np.flatnonzero(~cells.missing)
        steps = _steps_of_parts(cells.values)
        if self._first_time is None and len(present):
            self._first_time = int(cells.values[present[0]])
        new_features = self._add_varying_parts(cells.values, present)
        days = self._days(cells)
        # Index of the last row with a value, for each row.
        last = np.maximum.accumulate(np.where(cells.missing, -1, np.arange(len(days))))
        days = np.where(last >= 0, days[last], self._last_days)
        self._last_days = float(days[-1]) if len(days) else self._last_days
        indicators = [(new, list[int]()) for new in self._indicator.update(cells.missing)]
        both = sorted([*new_features, *indicators], key=lambda pair: pair[0].row)  # as the encoder adds them
        self._expected = [indices for _, indices in both]
        return EncodedTimes(self._encode(steps, cells.missing), days, cells.missing), [new for new, _ in both]

    def _add_varying_parts(self, times: Ints, present: Ints) -> list[tuple[NewFeature, list[int]]]:
        """Return the features of parts that vary for the first time, each with the list for its index."""
        new_features, first = [], np.array([self._first_time or 0])
        steps, first_steps = _steps_of_parts(times), _steps_of_parts(first)
        for part in periodic_parts(self.format):
            if part in self._features:
                continue
            varies = _weekday_varies(times, first) if part == "weekday" else steps[part] != first_steps[part]
            changed = present[varies[present]]
            if len(changed):
                self._features[part] = []
                new_features += [(NewFeature(int(changed[0]), 1.0), self._features[part])] * 2
        return new_features

    def transform(self, cells: TimeCells) -> EncodedTimes:
        """Return the encoded cells."""
        days = np.where(cells.missing, self._last_days, self._days(cells))
        return EncodedTimes(self._encode(_steps_of_parts(cells.values), cells.missing), days, cells.missing)

    def write_features(self, encoded: EncodedTimes, X: Floats) -> None:
        """Write the features and the missing indicator to `X`."""
        for part, values in encoded.parts.items():
            X[:, self._features[part]] = values
        if self._trend_feature is not None:
            X[:, self._trend_feature] = encoded.days
        self._indicator.write_features(encoded.missing, X)

    def add_feature(self, feature: int) -> None:
        """Assign an index to a new feature. They come in the order of `partial_fit_transform`."""
        indices = self._expected.pop(0)
        if any(indices is each for each in self._features.values()):
            indices.append(feature)
        else:
            self._indicator.feature = feature

    def start_late(self, first: pa.Array, n_missing: int, feature: int) -> list[float]:
        """Count days from the first of these times on, and say where there is a value if it was missing before."""
        cells = self.parse(first)
        self._first_time = int(cells.values[~cells.invalid][0])
        if n_missing:
            self._indicator = MissingIndicator(n_missing, feature, is_late=True)
        return [1.0] * len(self.feature_names())

    def feature_names(self) -> dict[int, str]:
        """Return the names of the features by index."""
        names = {
            index: f"{self.name} {part} {function}"
            for part, indices in self._features.items()
            for index, function in zip(indices, ("sin", "cos"), strict=True)
        }
        if self._trend_feature is not None:
            names[self._trend_feature] = f"{self.name} days since start"
        return names | self._indicator.feature_names(self.name)

    def effect_grids(self, rows: Floats) -> list[EffectGrid]:
        """Return the values of each part that has features."""
        grids = []
        for part in (each for each in _EFFECT_STEPS if each in self._features):
            features, (steps, labels) = self._features[part], _EFFECT_STEPS[part]
            encoded = self._encode({part: np.array(steps)}, np.zeros(len(steps), dtype=bool))
            X = np.zeros((len(steps), rows.shape[1]))
            X[:, features] = encoded[part]
            self._indicator.write_features(np.zeros(len(steps), dtype=bool), X)
            own = [*features, *self._indicator.feature_names(self.name)]
            grids.append(EffectGrid(part, own, X[:, own], np.arange(float(len(steps))), labels))
        return grids

    def to_dict(self) -> JsonDict:
        """Return the state as JSON-compatible data."""
        own = {"name": self.name, "kind": self.kind, "note": self._note}
        written = {"format": self.format.pattern, "has_zone": self.format.has_zone}
        # In the order of their indices, which does not depend on how rows were batched.
        features = {part: list(self._features[part]) for part in sorted(self._features, key=self._features.__getitem__)}
        parts = {"features": features, "initial": list(self._initial)}
        trend = {"trend": self._trend_feature, "first_time": self._first_time, "last_days": self._last_days}
        return own | written | parts | trend | self._indicator.to_dict()

    @classmethod
    def from_dict(cls, data: JsonDict) -> "TimeColumn":
        """Restore the state from `to_dict`; raise ModelFileError if it is invalid."""
        try:
            has_zone = None if get_entry(data, "has_zone") is None else get_bool(data, "has_zone")
            format = TimeFormat(get_str(data, "format"), has_zone)
        except DomainError as error:
            raise invalid_entry("format", "the format of times", get_str(data, "format")) from error
        features, initial, allowed = get_entry(data, "features"), get_strs(data, "initial"), periodic_parts(format)
        if not isinstance(features, dict) or not {*initial} <= {*features} <= {*allowed}:
            raise invalid_entry("features", f"features of the parts {', '.join(allowed)}", str(features))
        column = cls(get_str(data, "name"), format, tuple(initial), 0, has_trend=False, note=get_str(data, "note"))
        column._trend_feature = get_optional_int(data, "trend")
        column._features = {part: get_ints(features, part) for part in features}
        if any(len(indices) != 2 for indices in column._features.values()):
            raise invalid_entry("features", "two features for each part that varies", str(features))
        first_time = get_entry(data, "first_time")
        column._first_time = None if first_time is None else get_int(data, "first_time", EARLIEST)
        column._last_days = get_float(data, "last_days")
        column._indicator = MissingIndicator.from_dict(data)
        return column

    def _days(self, cells: TimeCells) -> Floats:
        """Return the days since the first time."""
        return np.asarray((cells.values - (self._first_time or 0)) / DAY)

    def _encode(self, steps: dict[str, Ints], missing: Bools) -> dict[str, Floats]:
        """Return sine and cosine of each of these parts that has features."""
        encoded, first_steps = {}, _steps_of_parts(np.array([self._first_time or 0]))
        for part in self._features.keys() & steps:
            circle = _CIRCLES[part]
            values = circle[steps[part]]
            if part not in self._initial:
                values = values - circle[first_steps[part]]
            encoded[part] = np.where(missing[:, None], 0.0, values)
        return encoded
