"""What a cell means whatever file it came in: when it is missing, and what it is as text."""

from ellipack.stream.arrow import pa, pc

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None", "?")
"""The spellings of a missing value, in any column, once space around them is taken off; quotes make no difference."""

_MISSING = pa.array(MISSING)
_SHOWN = 40  # characters of a value that a message shows


def as_text(column: pa.Array) -> pa.Array:
    """Return a column as strings, so that equal values are equal strings however they were stored.

    A whole number reads the same whether it was stored as an integer or as a float.

    >>> as_text(pa.array([1.0, 0.5])).to_pylist()
    ['1', '0.5']
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def clean(column: pa.Array) -> pa.Array:
    """Return a column as strings without space around them, missing ones as nulls.

    >>> clean(pa.array([" rain", "NA ", None])).to_pylist()
    ['rain', None, None]
    """
    trimmed = pc.utf8_trim_whitespace(as_text(column))
    return pc.if_else(pc.is_in(trimmed, value_set=_MISSING), pa.scalar(None, pa.string()), trimmed)


def shown(value: object) -> str:
    """Return a value as a message shows it: quoted, on one line, and shortened if it is long.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'"
    """
    text = str(value)
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
