"""Text and numbers as a person reads them, made safe for where they are put."""

import json
import math
import unicodedata
from html import escape

MISSING = "\N{EN DASH}"
"""What stands where there is no number."""

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
# Marks that turn the direction of what follows, which may be more than the name they stand in.
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    r"""Return `text` on one line, with a mark for every character that can't be shown or would turn the text around.

    >>> ascii(clean("a\n b\x00"))
    "'a b\\ufffd'"
    """
    line = " ".join(text.split())
    return "".join(_UNKNOWN if c in _TURNING or unicodedata.category(c) in ("Cc", "Cs") else c for c in line)


def in_html(text: str) -> str:
    """Return `text` for HTML, between tags or in a quoted attribute.

    >>> in_html('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return escape(clean(text))


def plotly_text(text: str, most: int = 200) -> str:
    """Return `text` for Plotly, which reads some tags and entities; cut to `most` characters before.

    >>> plotly_text("a <b> & so on", most=7)
    'a &lt;b&gt;\u2026'
    """
    return escape(truncate(clean(text), most), quote=False)


def truncate(text: str, most: int) -> str:
    """Return `text`, its end left out if it is longer than `most` characters.

    >>> truncate("temperature", 6)
    'tempe\u2026'
    """
    return text if len(text) <= most else text[: most - 1].rstrip() + _ELLIPSIS


def in_script(value: object) -> str:
    r"""Return `value` as JSON that can stand inside a script element: no text in it can end the element.

    >>> print(in_script(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def format_number(value: float | None) -> str:
    """Return a number with 4 digits that count, thousands apart.

    >>> [format_number(value) for value in (12345.6, 182.94, 0.0012345, -3.0, 1.5e-9, 2e21, None)]
    ['12,346', '182.9', '0.001234', '-3', '1.5e-09', '2e+21', '\u2013']
    """
    if value is None:
        return MISSING
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.4g}"
    # Whole numbers keep all their digits.
    digits = max(0, 3 - math.floor(math.log10(size))) if size > 0 else 0
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_percent(share: float | None) -> str:
    """Return a share in percent, with a digit after the point where it is small.

    >>> [format_percent(share) for share in (0.684, 0.0123, 0.0, 0.0001, -0.05, None)]
    ['68%', '1.2%', '0%', '<0.1%', '-5.0%', '\u2013']
    """
    if share is None:
        return MISSING
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share:.0%}" if share == 0 or abs(share) >= 0.0995 else f"{share:.1%}"


def format_count(count: int, noun: str) -> str:
    """Return a count and its noun.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
