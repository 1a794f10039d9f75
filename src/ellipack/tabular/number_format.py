"""How the numbers of a column are written: decimal comma, thousands separators, currency, unit, parentheses.

A format is inferred from the first values of a column and then fixed. All values must have it.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from ellipack.tabular.arrow import pa, pc
from ellipack.tabular.columns import Bools, JsonDict, get_str, invalid_entry, is_numeric_type
from ellipack.tabular.table_batch import to_clean_strings, to_strings
from ellipack.validation import MAX_ABS_VALUE, Floats

DECIMALS = (".", ",")
"""Characters before the decimals of a number."""

THOUSANDS = ("", ",", ".", " ", "'", "_")
"""Characters between groups of three digits."""

_CURRENCY_SIGNS = "$€£¥₹₽₩₺฿₫₪₴₦"
_CURRENCY_CODES = "USD EUR GBP JPY CNY INR CHF CAD AUD NZD SEK NOK DKK PLN CZK HUF BRL MXN ZAR KRW TRY RUB SGD HKD"
_CURRENCY = rf"(?:US|C|A|NZ|HK|S|R)?[{_CURRENCY_SIGNS}]|{_CURRENCY_CODES.replace(' ', '|')}|kr|zł|Kč|Ft|Fr|Rs"
_UNIT = r"[%‰]|°[CFK]?|[A-Za-zµ][A-Za-zµ²³/]{0,9}"
_NO_UNITS = ("am", "pm", "st", "nd", "rd", "th", "e")
_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}(\.[0-9]{3})+$")  # a point that may separate thousands
_SAMPLED = 100  # values in which a decimal point is searched
_MIN_DIGITS = 0.05  # share of the values that must have digits
_PREFERENCE = [(".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
_PREFERENCE += [(".", "_"), (",", "_")]  # decimal and thousands, if nothing else decides
_SPACES = "[\u00a0\u2007\u2009\u202f]"
_GROUPS = "before", "open", "after", "body", "close", "behind"


@dataclass(frozen=True)
class NumberFormat:
    """How numbers are written.

    A number in parentheses, or with a minus sign behind it, is negative. A thousands separator may be left out.

    Attributes
    ----------
    decimal : {".", ","}, default "."
        Character before the decimals.
    thousands : {"", ",", ".", " ", "'", "_"}, default ""
        Character between groups of digits.
    currency : str, default ""
        Sign or code of a currency, which may stand before or after a number.
    unit : str, default ""
        Text that follows each number, such as ``%``. It does not change the value: ``12%`` is 12.

    Examples
    --------
    >>> NumberFormat(",", ".", "€").parse(pa.array(["1.234,5 €", "(7)", "soon"])).values.tolist()
    [1234.5, -7.0, nan]
    """

    decimal: str = "."
    thousands: str = ""
    currency: str = ""
    unit: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in Python."""
        return self == PLAIN

    def parse(self, column: pa.Array) -> "NumberCells":
        """Parse cells. Integers beyond 2^53 are rounded to the nearest float."""
        floats, invalid = self._to_floats(column)
        values = floats.to_numpy(zero_copy_only=False)
        return NumberCells(values, invalid | (np.abs(values) > MAX_ABS_VALUE))

    def describe(self) -> str:
        """Return what distinguishes the format, for the user; an empty string if it is plain."""
        parts = ["decimal comma" if self.decimal == "," else "", f"in {self.currency}" if self.currency else ""]
        parts += [f"thousands separated by {self.thousands!r}" if self.thousands else ""]
        return ", ".join(filter(None, [*parts, f"in {self.unit}" if self.unit else ""]))

    def to_dict(self) -> JsonDict:
        """Return the format as JSON-compatible data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: JsonDict) -> "NumberFormat":
        """Restore a format; raise ModelFileError if it is invalid."""
        found = cls(**{name: get_str(data, name) for name in ("decimal", "thousands", "currency", "unit")})
        if found.decimal not in DECIMALS or found.thousands not in THOUSANDS or found.decimal == found.thousands:
            raise invalid_entry("decimal", "a comma or point, other than the thousands separator", found.decimal)
        if not (re.fullmatch(f"(?:{_CURRENCY})?", found.currency) and re.fullmatch(f"(?:{_UNIT})?", found.unit)):
            raise invalid_entry("currency", "a currency, with a unit", found.currency)
        return found

    def _to_floats(self, column: pa.Array) -> tuple[pa.Array, Bools]:
        """Return the numbers, null where a cell is missing or invalid, and the mask of the invalid cells."""
        if is_numeric_type(column.type):
            return pc.cast(column, pa.float64(), safe=False), np.zeros(len(column), dtype=bool)
        for convert in (to_strings, to_clean_strings) if self.is_plain else ():
            try:
                return pc.cast(convert(column), pa.float64()), np.zeros(len(column), dtype=bool)
            except pa.ArrowInvalid:
                pass
        return self._parse_strings(to_clean_strings(column))

    def _parse_strings(self, cells: pa.Array) -> tuple[pa.Array, Bools]:
        """Parse stripped strings by a regular expression."""
        parts = pc.extract_regex(_to_ascii(cells), self._pattern)
        before, opened, after, body, closed, behind = (pc.struct_field(parts, name) for name in _GROUPS)
        signs = [_equals(sign, "-") for sign in (before, after, behind)] + [_equals(opened, "(")]
        n_signs = sum(sign.astype(int) for sign in signs) + _equals(before, "+") + _equals(after, "+")
        fits = body.is_valid().to_numpy(zero_copy_only=False)
        fits &= (n_signs <= 1) & (_equals(opened, "(") == _equals(closed, ")"))
        body = pc.replace_substring(body, self.thousands, "") if self.thousands else body
        body = pc.replace_substring(body, ",", ".") if self.decimal == "," else body
        floats = pc.cast(pc.if_else(pa.array(fits), body, None), pa.float64())
        negative = pa.array(np.logical_or.reduce(signs))
        return pc.if_else(negative, pc.negate(floats), floats), cells.is_valid().to_numpy(zero_copy_only=False) & ~fits

    @property
    def _pattern(self) -> str:
        """Pattern of a cell. The group ``body`` is the number without its sign."""
        digits = "[0-9]+"
        if self.thousands:
            mark = re.escape(self.thousands)
            digits = (
                f"(?:[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+|[1-9][0-9]?(?:{mark}[0-9]{{2}})+{mark}[0-9]{{3}}|[0-9]+)"
            )
        point = re.escape(self.decimal)
        body = rf"(?:{digits}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][-+]?[0-9]+)?"
        currency = f" *(?:{re.escape(self.currency)})? *" if self.currency else " *"
        unit = f" *{re.escape(self.unit)}" if self.unit else ""
        return (
            rf"^(?P<before>[-+]?)(?P<open>\(?){currency}(?P<after>[-+]?) *(?P<body>{body}){unit}{currency}"
            r"(?P<close>\)?)(?P<behind>-?)$"
        )


PLAIN = NumberFormat()
"""Numbers as Python writes them."""


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


class FoundFormat(NamedTuple):
    """The format that fits the first values of a column best.

    Attributes
    ----------
    format : NumberFormat
        The format.
    share : float
        Share of the values that have it.
    is_ambiguous : bool, default False
        Whether the values have a format with another decimal character as well, and nothing decides.
    is_decisive : bool, default False
        Whether the values show the decimal character.
    """

    format: NumberFormat
    share: float
    is_ambiguous: bool = False
    is_decisive: bool = False


class Separators(NamedTuple):
    """Decimal character and thousands separator; None where they are not known."""

    decimal: str | None = None
    thousands: str | None = None


_UNKNOWN = Separators()


def find_number_format(values: pa.Array, given: Separators = _UNKNOWN, usual: Separators = _UNKNOWN) -> FoundFormat:
    """Return the format that most values have.

    Parameters
    ----------
    values : pyarrow.Array
        Values that are not missing; text must be stripped.
    given : Separators, default Separators()
        Characters that are not inferred.
    usual : Separators, default Separators()
        Characters of the other columns, which decide where several are possible.

    Returns
    -------
    FoundFormat
        The format and the share of the values that have it.

    Examples
    --------
    >>> find_number_format(pa.array(["0,33", "12,5"])).format
    NumberFormat(decimal=',', thousands='', currency='', unit='')
    >>> found = find_number_format(pa.array(["1,234", "500"]))
    >>> found.format.thousands, found.is_ambiguous
    (',', True)
    """
    if is_numeric_type(values.type) or not len(values):
        return FoundFormat(PLAIN, float(len(values) > 0))
    values = to_strings(values)
    if given.decimal != "," and not given.thousands and usual.decimal != "," and not usual.thousands:
        try:
            pc.cast(values, pa.float64())
            return FoundFormat(PLAIN, 1.0, is_decisive=_shows_decimal_point(values))
        except pa.ArrowInvalid:
            pass
    values = _to_ascii(values)
    if not _have_digits(values):
        return FoundFormat(PLAIN, 0.0)
    currency, unit = _find_affixes(values)
    marks = {mark for mark in THOUSANDS if pc.any(pc.match_substring(values, mark)).as_py()} | {usual.thousands}
    candidates = [
        NumberFormat(*pair, currency, unit)
        for pair in _PREFERENCE
        if given.decimal in (None, pair[0])
        and (pair[1] in marks if given.thousands is None else pair[1] == given.thousands)
    ]
    shares = [1.0 - float(each.parse(values).invalid.mean()) for each in candidates]
    best = [each for each, share in zip(candidates, shares, strict=True) if share == max(shares)]
    found = min(best, key=lambda each: (each.decimal != usual.decimal, each.thousands != usual.thousands))
    is_decisive = len({each.decimal for each in best}) == 1
    is_ambiguous = not is_decisive and found.thousands == "," and usual.decimal is None
    return FoundFormat(found, max(shares), is_ambiguous, is_decisive)


def find_usual_separators(found: Iterable[FoundFormat]) -> Separators:
    """Return the characters that the columns of a table have in common.

    Examples
    --------
    >>> find_usual_separators([find_number_format(pa.array(["0,33"])), find_number_format(pa.array(["1.234"]))])
    Separators(decimal=',', thousands=None)
    """
    formats = [each.format for each in found if each.is_decisive and each.share == 1.0]
    decimals = {each.decimal for each in formats}
    if len(decimals) != 1:
        return _UNKNOWN
    marks = {each.thousands for each in formats} - {""}
    return Separators(decimals.pop(), marks.pop() if len(marks) == 1 else None)


def _find_affixes(values: pa.Array) -> tuple[str, str]:
    """Return the currency and the unit of most values, empty if there is none."""
    starts, ends = rf"^[-+(]* *(?P<text>{_CURRENCY}) *[-+]?[0-9.,]", rf"[0-9.,] *(?P<text>{_CURRENCY})[-)]*$"
    currency = _most_frequent([*_extract(values, starts), *_extract(values, ends)])
    units = [] if currency else _extract(values, rf"[0-9.,] *(?P<text>{_UNIT})\)?$")
    unit = _most_frequent(units) if len(units) > len(values) / 2 else ""
    return currency, "" if unit.lower() in _NO_UNITS else unit


def _shows_decimal_point(values: pa.Array) -> bool:
    """Return whether one of the first numbers has a point that can't separate thousands."""
    return any("." in text and not _GROUPED.match(text) for text in values.slice(0, _SAMPLED).to_pylist())


def _extract(values: pa.Array, pattern: str) -> list[str]:
    """Return the text that a pattern finds in the values."""
    found: list[str] = pc.struct_field(pc.extract_regex(values, pattern), "text").drop_null().to_pylist()
    return found


def _most_frequent(texts: list[str]) -> str:
    return Counter(texts).most_common(1)[0][0] if texts else ""


def _have_digits(values: pa.Array) -> bool:
    return float(pc.mean(pc.match_substring_regex(values, "[0-9]")).as_py()) > _MIN_DIGITS


def _to_ascii(cells: pa.Array) -> pa.Array:
    """Replace special spaces, minus signs and apostrophes."""
    if pc.all(pc.string_is_ascii(cells)).as_py():
        return cells
    spaces = pc.replace_substring_regex(cells, _SPACES, " ")
    return pc.replace_substring_regex(pc.replace_substring(spaces, "\u2212", "-"), "\u2019", "'")


def _equals(texts: pa.Array, text: str) -> Bools:
    """Return where a text is equal to another; false where it is null."""
    equal: Bools = pc.equal(texts, text).fill_null(False).to_numpy(zero_copy_only=False)
    return equal
