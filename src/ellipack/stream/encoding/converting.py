"""Text into values, all at once if it can be done, and else down to the cells that can't."""

from collections.abc import Callable

import numpy as np

from ellipack.errors import StreamError
from ellipack.stream.arrow import pa
from ellipack.stream.encoding.column import Flags


def convert_each(column: pa.Array, convert: Callable[[pa.Array], pa.Array]) -> tuple[pa.Array, Flags]:
    """Return what `convert` makes of each cell, null where it raises, and the cells where it does.

    Halves what can't be converted until what is left is one cell: quick if few are bad, and what a cell comes to
    never depends on the cells beside it.
    """
    try:
        return convert(column), np.zeros(len(column), dtype=bool)
    except pa.ArrowInvalid:
        if len(column) == 1:
            return convert(pa.nulls(1, column.type)), np.ones(1, dtype=bool)
    middle = len(column) // 2
    (first, first_bad), (second, second_bad) = (
        convert_each(part, convert) for part in (column.slice(0, middle), column.slice(middle))
    )
    return pa.concat_arrays([first, second]), np.concatenate([first_bad, second_bad])


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds numbers."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Return whether a column of that type holds dates, or dates with a time of day."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def plain(column: pa.Array, source: str, name: str) -> pa.Array:
    """Return a column if it is of a type that can be read, no longer as a dictionary."""
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    known = (is_text, is_number, is_moment, pa.types.is_time, pa.types.is_boolean, pa.types.is_null)
    if not any(test(value) for test in known):
        raise StreamError(
            f"{source}, column '{name}': is of type {kind}, which can't be read: run with --drop '{name}'"
        )
    return column if kind is value else column.cast(value)
