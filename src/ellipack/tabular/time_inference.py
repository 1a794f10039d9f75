"""Find out how the dates and times of a column are written, from its first values: `find_time_format`."""

import re
from typing import NamedTuple

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import Bools, is_numeric_type
from ellipack.tabular.number_format import PLAIN
from ellipack.tabular.table_batch import to_strings
from ellipack.tabular.time_format import DAY, EPOCHS, ISO, SECOND, TIME_OF_DAY, TimeFormat
from ellipack.validation import Ints

_PREVIEW_VALUES = 20  # parsed first, to reject a format early
_MIN_COUNTED = 20  # numbers that must be dates, to be taken for dates whatever their name
_SEPARATORS = "/-. "
_NAMED = ["%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d. %b %Y", "%d %b. %Y", "%d-%b-%y", "%d %b %y", "%d de %b de %Y"]
_NAMED += ["%b %d, %Y", "%b %d %Y", "%Y-%b-%d", "%Y %b %d", "%a, %d %b %Y", "%a %d %b %Y", "%a, %b %d, %Y"]
_NAMED += ["%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S %Z %Y", "%d/%b/%Y:%H:%M:%S %z"]
_MONTHS = ["%Y-%m", "%Y/%m", "%Y.%m", "%m/%Y", "%m-%Y", "%m.%Y", "%b %Y", "%b-%Y", "%b-%y", "%b %y", "%Y-%b", "%YM%m"]
_WEEKS = ["%G-W%V", "%GW%V", "%G-W%V-%u", "%GW%V%u"]
_COMPACT = ["%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%z", "%Y%m%d %H%M%S", "%Y%m%d_%H%M%S", "%Y%m%d %H%M"]
_PATTERNS = [
    *(f"{a}{mark}{b}{mark}%Y" for mark in _SEPARATORS for a, b in (("%d", "%m"), ("%m", "%d"))),
    *(f"{a}{mark}{b}{mark}%y" for mark in _SEPARATORS for a, b in (("%d", "%m"), ("%m", "%d"))),
    *(f"%Y{mark}%m{mark}%d" for mark in _SEPARATORS),
    *("%y-%m-%d", *_NAMED, *_MONTHS, *_WEEKS, *_COMPACT),
]
_FORMATS = [ISO, TIME_OF_DAY, *map(TimeFormat, _PATTERNS)]
_DIGITS_OF_DATES = {8: "%Y%m%d", 6: "%Y%m", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_DIGITS_OF_EPOCHS = dict(zip((10, 13, 16, 19), EPOCHS, strict=True))
_NAME_OF_TIMES = re.compile(r"date|time|stamp|epoch|month|period|when|datum|zeit|fecha|_at$|^ts$|_ts$", re.IGNORECASE)
_FIRST_YEAR, _LAST_YEAR = 1900, 2100  # of compact dates
_FIRST_EPOCH, _LAST_EPOCH = 631_152_000 * SECOND, 2_524_608_000 * SECOND  # the years 1990 to 2050


class FoundTimes(NamedTuple):
    """The format that fits the first values of a column best.

    Attributes
    ----------
    format : TimeFormat
        The format.
    share : float
        Share of the values that have it.
    rivals : tuple of TimeFormat, default ()
        Formats that as many values have, and that mean other dates.
    """

    format: TimeFormat
    share: float
    rivals: tuple[TimeFormat, ...] = ()


def find_time_format(values: pa.Array, usual: TimeFormat | None = None) -> FoundTimes:
    """Return the format that most values have.

    Where days and months may be exchanged, the order of rows decides: dates that only rise or only fall are right. If
    both orders do, and there are several times of day, the order with the shorter span is right.

    Parameters
    ----------
    values : pyarrow.Array
        Stripped strings that are not missing.
    usual : TimeFormat or None, default None
        Format of another column, whose order of day and month decides if nothing else does.

    Returns
    -------
    FoundTimes
        The format, and its rivals if the choice is open.

    Examples
    --------
    >>> find_time_format(pa.array(["12/31/2013", "01/02/2014"])).format.pattern
    '%m/%d/%Y'
    >>> [rival.pattern for rival in find_time_format(pa.array(["01/02/2014", "03/01/2014", "02/02/2014"])).rivals]
    ['%m/%d/%Y']
    """
    preview = values.slice(0, _PREVIEW_VALUES)
    if not pc.any(pc.match_substring_regex(preview, "[0-9]")).as_py():
        return FoundTimes(ISO, 0.0)
    texts = preview.to_pylist()
    likely = [each for each in _FORMATS if 2 * sum(map(each.may_fit, texts)) >= len(texts)]
    likely = [each for each in likely if each.parse(preview).invalid.mean() <= 0.5]
    if not likely:
        return FoundTimes(ISO, 0.0)
    cells = [each.parse(values) for each in likely]
    shares = [1.0 - float(each.invalid.mean()) for each in cells]
    best = [i for i, share in enumerate(shares) if share == max(shares)]
    first = best[0]
    rivals = [i for i in best[1:] if (cells[i].values != cells[first].values).any()]
    if rivals and "." not in likely[first].pattern:  # with points, the day comes first
        monotone = [i for i in (first, *rivals) if _is_monotone(cells[i].values, ~cells[i].invalid)]
        if len(monotone) > 1 and len({*(cells[first].values % DAY).tolist()}) > 1:  # hours do not jump by months
            spans = [int(np.ptp(cells[i].values[~cells[i].invalid])) for i in monotone]
            monotone = [i for i, span in zip(monotone, spans, strict=True) if span == min(spans)]
        same_order = [i for i in (first, *rivals) if _order(likely[i]) == _order(usual)]
        decided = monotone if len(monotone) == 1 else same_order if len(same_order) == 1 else []
        if not decided:
            return FoundTimes(likely[first], max(shares), tuple(likely[i] for i in rivals))
        first = decided[0]
    format = likely[first].with_zone_of(values)
    return FoundTimes(format, 1.0 - float(format.parse(values).invalid.mean()))


def has_known_format(values: pa.Array) -> bool:
    """Return whether some of the first values are dates in a known format, whatever the others are."""
    texts = values.slice(0, _PREVIEW_VALUES).to_pylist()
    return any(each.may_fit(text) for each in _FORMATS if each not in (ISO, TIME_OF_DAY) for text in texts)


def find_reordered_format(format: TimeFormat, text: str) -> TimeFormat | None:
    """Return the format of a date that differs from another format only in the order of its parts.

    Examples
    --------
    >>> find_reordered_format(TimeFormat("%d/%m/%Y"), "12/31/2013")
    TimeFormat(pattern='%m/%d/%Y')
    """
    cells = pa.array([text])
    others = (each for each in _FORMATS if sorted(each.pattern) == sorted(format.pattern) and each != format)
    return next((each for each in others if not each.parse(cells).invalid.any()), None)


def find_numeric_times(name: str, values: pa.Array) -> TimeFormat | None:
    """Return the format of numbers that are dates or epochs, or None if they are just numbers.

    All numbers must be dates between 1900 and 2100, or epochs between 1990 and 2050. In addition, the name must tell
    it, or there must be at least 20 numbers, which rise if they are epochs.

    Examples
    --------
    >>> find_numeric_times("date", pa.array([20131231, 20140101]))
    TimeFormat(pattern='%Y%m%d')
    """
    if not is_numeric_type(values.type):
        lengths = pc.utf8_length(values.slice(0, _PREVIEW_VALUES))
        if pc.min(lengths).as_py() != pc.max(lengths).as_py() or not pc.all(pc.utf8_is_digit(values)).as_py():
            return None
    numbers = PLAIN.parse(values).values
    if not len(numbers) or not (np.isfinite(numbers) & (numbers > 0) & (numbers == np.floor(numbers))).all():
        return None
    n_digits = {len(f"{number:.0f}") for number in (numbers.min(), numbers.max())}
    if len(n_digits) != 1:
        return None
    (count,), is_named = n_digits, _NAME_OF_TIMES.search(name) is not None
    if count in _DIGITS_OF_DATES:
        format = TimeFormat(_DIGITS_OF_DATES[count])
        years = numbers // 10 ** (count - 4)
        is_enough = len(numbers) >= _MIN_COUNTED and numbers.min() < numbers.max() and count > 6
        valid = (years >= _FIRST_YEAR).all() and (years <= _LAST_YEAR).all()
        valid = valid and not format.parse(to_strings(pa.array(numbers).cast(pa.int64()))).invalid.any()
        return format if valid and (is_named or is_enough) else None
    if count in _DIGITS_OF_EPOCHS:
        format = TimeFormat(_DIGITS_OF_EPOCHS[count])
        times = format.parse(values).values
        is_enough = len(numbers) >= _MIN_COUNTED and numbers.min() < numbers.max() and bool((np.diff(times) >= 0).all())
        valid = (times >= _FIRST_EPOCH).all() and (times < _LAST_EPOCH).all()
        return format if valid and (is_named or is_enough) else None
    return None


def _order(format: TimeFormat | None) -> tuple[str, ...]:
    """Return the order of day, month and year."""
    return tuple(each.lower() for each in re.findall("%([dmyY])", format.pattern)) if format else ()


def _is_monotone(times: Ints, valid: Bools) -> bool:
    """Return whether times only rise or only fall, and are not all equal."""
    steps = np.diff(times[valid])
    return bool(steps.any() and ((steps >= 0).all() or (steps <= 0).all()))
