"""How the dates and times of a column are written: ISO 8601, a pattern in the notation of `strptime`, or an epoch.

A format is inferred from the first values of a column and then fixed. All values must have it.
"""

import re
from dataclasses import dataclass, field, replace

import numpy as np

from ellipack.errors import DomainError
from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import Bools, convert_each_cell, is_datetime_type, is_string_type
from ellipack.tabular.number_format import PLAIN
from ellipack.tabular.table_batch import to_clean_strings, to_strings
from ellipack.tabular.time_names import MONTH_NAMES, ZONE_OFFSETS
from ellipack.validation import Ints

SECOND, DAY = 10**6, 86_400 * 10**6
"""In microseconds."""

EARLIEST, LATEST = -62_167_219_200 * SECOND, 253_402_300_800 * SECOND
"""The years 0 to 9999, in microseconds since 1970."""

EPOCHS = {"epoch": SECOND, "epoch-ms": 1000, "epoch-us": 1, "epoch-ns": 1e-3}
"""Names of formats that count from 1970 on, and the unit in microseconds."""

_BEYOND_MICROSECONDS = r"(\.[0-9]{6})[0-9]+"  # digits beyond microseconds
_MICROSECONDS_PER_UNIT = {
    "s": (SECOND, 1),
    "ms": (1000, 1),
    "us": (1, 1),
    "ns": (1, 1000),
    "date32": (DAY, 1),
    "date64": (1000, 1),
}  # multiplier and divisor to convert a count to microseconds
_HALF = r"(?P<p>[AaPp]\.?[Mm]\.?)"
_ZONE = rf"(?P<z>[-+][0-9]{{2}}:?[0-9]{{2}}|[-+][0-9]{{2}}|{'|'.join(ZONE_OFFSETS)})"
_CLOCK = rf"(?P<H>[0-9]{{1,2}}):(?P<M>[0-9]{{2}})(?::(?P<S>[0-9]{{2}})(?:[.,](?P<f>[0-9]+))?)?(?: *{_HALF})?"
_WITHOUT_ZONE = rf"[T ,][0-9]{{1,2}}:[0-9:.,]+(?: *{_HALF})?\s*$"  # of texts that end with a time of day
_WITH_ZONE = rf"[T ,][0-9]{{1,2}}(?::[0-9:.,]+)?(?: *{_HALF})? *{_ZONE}\s*$"
_DIRECTIVES = {
    **dict.fromkeys("mdHI", "[0-9]{1,2}"),
    **dict.fromkeys("yMS", "[0-9]{2}"),
    **dict.fromkeys("bB", r"\p{L}+\.?"),
    "Y": "[0-9]{4}",
    "j": "[0-9]{1,3}",
    "f": "[0-9]+",
    "G": "[0-9]{4}",
    "V": "[0-9]{1,2}",
    "u": "[1-7]",
}
_NOT_UNIQUE, _SAME = "aA", {"B": "b", "I": "H"}
_ALLOWED = " ".join(f"%{each}" for each in "YymdbBaAjGVuHIMSfpzZ")


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


@dataclass(frozen=True)
class TimeFormat:
    """How dates and times are written. The default time zone is UTC.

    Attributes
    ----------
    pattern : str, default "iso"
        ``iso`` (ISO 8601), ``time of day`` (such as 12:30), one of `EPOCHS`, or a pattern in the notation of `strptime`
        with %Y %y %m %d %b %B %a %A %j %G %V %u %H %I %M %S %f %p %z %Z. A week without %u is its Monday. After a
        pattern without a time of day, a time of day and a time zone may follow. Names of months are known in several
        languages.
    has_zone : bool or None, default None
        Whether a time zone must follow each time of day. If None, it may.

    Examples
    --------
    >>> cells = TimeFormat("%d.%m.%Y").parse(pa.array(["31.12.2013 10:30", "1.2.2014"]))
    >>> cells.values.astype("M8[us]").astype("M8[m]").astype(str).tolist()
    ['2013-12-31T10:30', '2014-02-01T00:00']
    """

    pattern: str = "iso"
    has_zone: bool | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.pattern in ("iso", "time of day", *EPOCHS):
            return
        directives = re.findall(r"%(.?)", self.pattern)
        unknown = [f"%{each}" for each in directives if f"%{each}" not in _ALLOWED.split()]
        if unknown:
            given = f"{unknown[0]} in {self.pattern!r}"
            raise DomainError(f"a time format must contain only {_ALLOWED}, got {given}: weeks are %G-W%V (ISO 8601)")
        found = [_SAME.get(each, each) for each in directives if each not in _NOT_UNIQUE]
        if len(set(found)) != len(found):
            raise DomainError(f"a time format must contain each directive at most once, got {self.pattern!r}")
        if {*found} & set("GVu") and (not {*"GV"} <= {*found} or {*found} & set("Yymdbj")):
            others = "no %Y %y %m %d %b %B %j"
            raise DomainError(f"a time format of weeks must contain %G and %V, and {others}, got {self.pattern!r}")
        if not {*found} & set("YyG"):
            names = ", ".join(["iso", *EPOCHS])
            raise DomainError(f"a time format must contain %Y or %y, or be one of {names}, got {self.pattern!r}")

    @property
    def is_time_of_day(self) -> bool:
        """Whether there is no date."""
        return self.pattern == "time of day"

    @property
    def has_days(self) -> bool:
        """Whether dates are more exact than months."""
        return self.pattern in ("iso", *EPOCHS) or any(f"%{each}" in self.pattern for each in "djV")

    def describe(self) -> str:
        """Return how times are written, for the user; an empty string if that is usual."""
        if self.pattern in EPOCHS:
            return {"epoch": "seconds"}.get(self.pattern, self.pattern.removeprefix("epoch-")) + " since 1970"
        return "" if self.pattern in ("iso", "time of day") else self.pattern

    def parse(self, column: pa.Array) -> TimeCells:
        """Parse cells."""
        valid = np.zeros(len(column), dtype=bool)
        if is_datetime_type(column.type):
            unit = str(column.type) if pa.types.is_date(column.type) else column.type.unit
            return _to_microseconds(column, *_MICROSECONDS_PER_UNIT[unit.partition("[")[0]], valid)
        if pa.types.is_time(column.type):
            return _to_microseconds(column, *_MICROSECONDS_PER_UNIT[column.type.unit], valid)
        if self.pattern in EPOCHS:
            return self._parse_epochs(column)
        is_iso = self.pattern == "iso"
        cells = (
            _to_microseconds(*_convert_iso(to_strings(column)))
            if is_iso
            else self._parse_pattern(to_clean_strings(column))
        )
        if self.has_zone is None:
            return cells
        others = _matches(column, _WITHOUT_ZONE if self.has_zone else _WITH_ZONE)
        return TimeCells(np.where(others, 0, cells.values), cells.missing, cells.invalid | others)

    def with_zone_of(self, values: pa.Array) -> "TimeFormat":
        """Return the same format, in which a time zone follows each time of day, or none, as in most values.

        Examples
        --------
        >>> TimeFormat().with_zone_of(pa.array(["2024-01-01 05:00+01:00", "2024-01-01"])).has_zone
        True
        """
        has_one_form = self.is_time_of_day or self.pattern in EPOCHS or re.search("%[HI]", self.pattern)
        if has_one_form or not is_string_type(values.type):
            return self
        n_with, n_without = (np.count_nonzero(_matches(values, each)) for each in (_WITH_ZONE, _WITHOUT_ZONE))
        return replace(self, has_zone=bool(n_with >= n_without)) if n_with or n_without else self

    def may_fit(self, text: str) -> bool:
        """Return whether a text looks like this format. It is fast for single texts, and does not check the date."""
        return self.pattern == "iso" or re.match(self._regex.replace(r"\p{L}", r"[^\W\d_]"), text) is not None

    def _parse_epochs(self, column: pa.Array) -> TimeCells:
        numbers = PLAIN.parse(column)
        times = np.rint(numbers.values * EPOCHS[self.pattern])
        missing = np.isnan(times)
        outside = ~missing & ~((times >= EARLIEST) & (times < LATEST))
        values = np.where(missing | outside, 0, times).astype(np.int64)
        return TimeCells(values, missing & ~numbers.invalid, numbers.invalid | outside)

    def _parse_pattern(self, cells: pa.Array) -> TimeCells:
        """Parse stripped strings by a regular expression."""
        regex = self._regex
        found = pc.extract_regex(cells, regex)
        parts = {name: pc.struct_field(found, name) for name in re.compile(r"\(\?P<(\w)>").findall(regex)}
        fits = found.is_valid().to_numpy(zero_copy_only=False)
        missing = cells.is_null().to_numpy(zero_copy_only=False)
        days, are_dates = (np.zeros(len(cells), np.int64), fits) if self.is_time_of_day else _to_days(parts, len(cells))
        clock, are_clocks = _to_time_of_day(parts, len(cells))
        valid = fits & are_dates & are_clocks
        values = days * DAY + clock - _zone_offsets(parts.get("z"), len(cells))
        return TimeCells(np.where(valid, values, 0), missing, ~valid & ~missing)

    @property
    def _regex(self) -> str:
        """Regular expression with a group for each directive."""
        if self.is_time_of_day:
            return f"^{_CLOCK}$"
        regex = ""
        for directive, literal in re.findall(r"%(.)|([^%])", self.pattern):
            if literal:
                regex += " +" if literal == " " else re.escape(literal)
            elif directive in "aA":
                regex += r"\p{L}+\.?"
            elif directive in "pzZ":
                regex += _HALF if directive == "p" else _ZONE
            else:
                name = _SAME.get(directive, directive)
                regex += f"(?P<{name}>{_DIRECTIVES[directive]})"
        if re.search(r"%.%", self.pattern):  # nothing separates the directives
            regex = regex.replace("{1,2}", "{2}")
        if not re.search("%[HI]", self.pattern):
            regex += rf"(?:(?:T|,? +){_CLOCK}(?: *{_ZONE})?)?"
        return f"^{regex}$"


ISO, TIME_OF_DAY = TimeFormat(), TimeFormat("time of day")


def _matches(column: pa.Array, pattern: str) -> Bools:
    """Return which cells match a regular expression; false where they are missing."""
    found = pc.match_substring_regex(to_strings(column), pattern).fill_null(False)
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _to_days(parts: dict[str, pa.Array], count: int) -> tuple[Ints, Bools]:
    """Return the days since 1970 of dates, and which of them exist."""
    if "V" in parts:
        return _week_to_days(parts, count)
    year, month, day = _ints(parts.get("Y"), count, 0), _ints(parts.get("m"), count, 1), _ints(parts.get("d"), count, 1)
    if "y" in parts:
        short = _ints(parts["y"], count, 0)
        year = np.where(short < 69, 2000, 1900) + short  # as strptime does
    if "b" in parts:
        month = _month_numbers(parts["b"])
    months = (year - 1970) * 12 + month - 1
    firsts = months.astype("M8[M]").astype("M8[D]")
    days = firsts.astype(np.int64) + day - 1
    valid = (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[D]").astype("M8[M]") == months.astype("M8[M]"))
    if "j" in parts:
        days = days + _ints(parts["j"], count, 1) - 1
        valid &= days.astype("M8[D]").astype("M8[Y]") == firsts.astype("M8[Y]")
    return days, valid


def _week_to_days(parts: dict[str, pa.Array], count: int) -> tuple[Ints, Bools]:
    """Return the days since 1970 of days of ISO weeks, the Monday by default, and which of them exist."""
    year, week, day = _ints(parts["G"], count, 0), _ints(parts["V"], count, 1), _ints(parts.get("u"), count, 1)
    fourth = (year - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64) + 3  # of January, always in week 1
    monday = fourth - (fourth + 3) % 7 + 7 * (week - 1)  # 1970-01-01 was a Thursday
    year_of_week = (monday + 3).astype("M8[D]").astype("M8[Y]").astype(np.int64) + 1970
    return monday + day - 1, (week >= 1) & (year_of_week == year)


def _to_time_of_day(parts: dict[str, pa.Array], count: int) -> tuple[Ints, Bools]:
    """Return the microseconds since midnight, and which of them exist."""
    hour, minute, second = (_ints(parts.get(name), count, 0) for name in "HMS")
    valid = (hour < 24) & (minute < 60) & (second < 60)
    if "p" in parts:
        half = pc.utf8_lower(pc.utf8_slice_codeunits(parts["p"], 0, 1)).fill_null("").to_numpy(zero_copy_only=False)
        valid &= (half == "") | ((hour >= 1) & (hour <= 12))
        hour = np.where(half == "", hour, hour % 12 + 12 * (half == "p"))
    micros = np.zeros(count, np.int64)
    if "f" in parts:
        micros = _ints(pc.utf8_slice_codeunits(pc.utf8_rpad(parts["f"], 6, "0"), 0, 6), count, 0)
    return ((hour * 60 + minute) * 60 + second) * SECOND + micros, valid


def _ints(texts: pa.Array | None, count: int, default: int) -> Ints:
    """Return texts as integers, a default where a group is empty or missing."""
    if texts is None:
        return np.full(count, default, dtype=np.int64)
    known = pc.if_else(pc.equal(texts, ""), None, texts)
    return np.asarray(pc.cast(known, pa.int64()).fill_null(default).to_numpy(zero_copy_only=False))


def _month_numbers(names: pa.Array) -> Ints:
    """Return the numbers of months, 0 where a name is not known."""
    encoded = pc.dictionary_encode(names)
    numbers = [MONTH_NAMES.get((name or "").lower().removesuffix("."), 0) for name in encoded.dictionary.to_pylist()]
    indices: Ints = encoded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)
    return np.array([*numbers, 0], np.int64)[indices]


def _zone_offsets(zones: pa.Array | None, count: int) -> Ints:
    """Return how far time zones are ahead of UTC, in microseconds."""
    if zones is None:
        return np.zeros(count, np.int64)
    encoded = pc.dictionary_encode(zones)
    offsets = [_zone_offset(zone) for zone in encoded.dictionary.to_pylist()]
    indices: Ints = encoded.indices.fill_null(len(offsets)).to_numpy(zero_copy_only=False)
    return np.array([*offsets, 0], np.int64)[indices]


def _zone_offset(zone: str | None) -> int:
    if not zone or zone in ZONE_OFFSETS:
        return ZONE_OFFSETS[zone] * 60 * SECOND if zone else 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return int(f"{zone[0]}1") * (int(digits[:2]) * 60 + int(digits[2:])) * 60 * SECOND


def _convert_iso(column: pa.Array) -> tuple[pa.Array, int, int, Bools]:
    """Convert cells at once; if that fails, strip and truncate them and convert the valid ones."""
    try:
        return _to_datetimes(column), 1, 1, np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        cells = pc.replace_substring_regex(to_clean_strings(column), _BEYOND_MICROSECONDS, r"\1")
        converted, invalid = convert_each_cell(cells, _to_datetimes)
        return converted, 1, 1, invalid


def _to_datetimes(cells: pa.Array) -> pa.Array:
    """Convert strings to timestamps. Either all or none must have a time zone."""
    try:
        return pc.cast(cells, pa.timestamp("us"))
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(cells, pa.timestamp("us", "UTC")), pa.timestamp("us"))


def _to_microseconds(cells: pa.Array, times: int, over: int, invalid: Bools) -> TimeCells:
    """Convert counts of a unit to microseconds: multiply by `times` and divide by `over`."""
    missing = cells.is_null().to_numpy(zero_copy_only=False)
    narrow = pa.types.is_date32(cells.type) or pa.types.is_time32(cells.type)
    counts = cells.view(pa.int32() if narrow else pa.int64()).fill_null(0).to_numpy().astype(np.int64)
    outside = (counts < EARLIEST * over // times) | (counts >= LATEST * over // times)
    values = np.where(outside | missing, 0, counts) * times // over
    return TimeCells(values, missing & ~invalid, invalid | (outside & ~missing))
