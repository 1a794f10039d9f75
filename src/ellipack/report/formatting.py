"""Text and numbers for people: cleaned, shortened and formatted."""

import math
import unicodedata
from html import escape

MISSING = "\N{EN DASH}"
"""Text in place of a number that is not defined."""

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Marks that change the writing direction, also of the text that follows the name they are in.
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    r"""Return `text` on one line, with control characters and direction marks replaced.

    Examples
    --------
    >>> ascii(clean("a\n b\x00"))
    "'a b\\ufffd'"
    """
    line = " ".join(text.split())
    return "".join(
        _REPLACEMENT if c in _DIRECTION_MARKS or unicodedata.category(c) in ("Cc", "Cs") else c for c in line
    )


def plotly_text(text: str, max_length: int = 200) -> str:
    """Return `text`, truncated and escaped for Plotly, which interprets some tags and entities.

    Examples
    --------
    >>> plotly_text("a <b> & so on", max_length=7)
    'a &lt;b&gt;\u2026'
    """
    return escape(truncate(clean(text), max_length), quote=False)


def truncate(text: str, max_length: int) -> str:
    """Return `text`, shortened to `max_length` characters if it is longer.

    Examples
    --------
    >>> truncate("temperature", 6)
    'tempe\u2026'
    """
    return text if len(text) <= max_length else text[: max_length - 1].rstrip() + _ELLIPSIS


def format_number(value: float | None) -> str:
    """Return a number with four significant digits and thousands separators.

    Examples
    --------
    >>> [format_number(value) for value in (12345.6, 182.94, 0.0012345, -3.0, 1.5e-9, 2e21, None)]
    ['12,346', '182.9', '0.001234', '-3', '1.5e-09', '2e+21', '\u2013']
    """
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.4g}"
    # Numbers with more than four digits before the point keep all of them.
    digits = max(0, 3 - math.floor(math.log10(size))) if size > 0 else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_percent(share: float | None) -> str:
    """Return a share in percent, with one decimal if it is small.

    Examples
    --------
    >>> [format_percent(share) for share in (0.684, 0.0123, 0.0, 0.0001, -0.05, None)]
    ['68%', '1.2%', '0%', '<0.1%', '-5.0%', '\u2013']
    """
    if share is None:
        return MISSING
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share:.0%}" if share == 0 or abs(share) >= 0.0995 else f"{share:.1%}"


def format_change(share: float) -> str:
    """Return a share that may be negative in percent, with one decimal; one that rounds to 0 has no sign.

    Examples
    --------
    >>> format_change(-0.026), format_change(-0.0004)
    ('-2.6%', '0.0%')
    """
    return f"{round(share, 3) + 0.0:.1%}"


def format_count(count: int, noun: str) -> str:
    """Return a count with its noun in the singular or plural.

    Examples
    --------
    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
