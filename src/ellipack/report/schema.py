"""Parsing of JSON into dataclasses by their type hints, and checks of the numbers in them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from ellipack.errors import DomainError, InputError, NonFiniteError, ShapeError

JsonValue = None | bool | int | float | str | list[Any] | dict[str, Any]
"""A value that JSON can represent. Lists and dictionaries hold further JSON values."""

_TYPE_NAMES = {NoneType: "null", bool: "true or false", int: "a whole number", float: "a number", str: "text"}


def parse_value(hint: Any, value: object, name: str) -> Any:
    """Return `value` converted to the type `hint`.

    Lists become tuples, integers become floats and dictionaries become dataclasses where the hint requires it.

    Parameters
    ----------
    hint : type
        Scalar type, list, tuple, dictionary, dataclass, `JsonValue`, or an optional one of these.
    value : object
        Value to convert, as in JSON, or already of that type.
    name : str
        Name of the value in error messages.

    Raises
    ------
    InputError
        If the value is of another type.

    Examples
    --------
    >>> parse_value(list[float | None], [1.5, None], "rmse")
    [1.5, None]
    >>> parse_value(list[float], [1.5, "2"], "rmse")
    Traceback (most recent call last):
        ...
    ellipack.errors.InputError: rmse[1] must be a number, got '2'
    """
    if hint == JsonValue:
        return _parse_json(value, name)
    if isinstance(hint, UnionType):
        return _parse_optional(hint, value, name)
    if is_dataclass(hint):
        return _parse_fields(hint, value, name)
    if (origin := get_origin(hint)) is not None:
        return _COLLECTIONS[origin](get_args(hint), value, name)
    return _parse_scalar(hint, value, name)


@cache
def field_types(cls: type) -> dict[str, Any]:
    """Return the fields of a dataclass with their types."""
    known = get_type_hints(cls)
    return {field.name: known[field.name] for field in fields(cls)}


def _parse_optional(hint: UnionType, value: object, name: str) -> Any:
    """Parse a value that may be None. Records have no other unions."""
    if value is None:
        return None
    (present,) = (each for each in get_args(hint) if each is not NoneType)
    return parse_value(present, value, name)


def _parse_fields(cls: Any, value: object, name: str) -> Any:
    if isinstance(value, cls):
        values = {field: getattr(value, field) for field in field_types(cls)}
    elif isinstance(value, dict):
        values = value
    else:
        raise InputError(f"{name} must be an object, got {_short_repr(value)}")
    expected = field_types(cls)
    for field in values:
        if field not in expected:
            raise InputError(f"{name} must have only the fields {', '.join(expected)}, got {field!r}")
    for field in expected:
        if field not in values:
            raise InputError(f"{name} must have the field {field!r}, got only {', '.join(values) or 'none'}")
    return cls(**{field: parse_value(hint, values[field], f"{name}.{field}") for field, hint in expected.items()})


def _parse_list(entries: tuple[Any, ...], value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name} must be a list, got {_short_repr(value)}")
    return [parse_value(entries[0], each, f"{name}[{i}]") for i, each in enumerate(value)]


def _parse_tuple(entries: tuple[Any, ...], value: object, name: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) != len(entries):
        raise InputError(f"{name} must be a list of {len(entries)}, got {_short_repr(value)}")
    return tuple(
        parse_value(hint, each, f"{name}[{i}]") for i, (hint, each) in enumerate(zip(entries, value, strict=True))
    )


def _parse_dict(entries: tuple[Any, ...], value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{name} must be an object, got {_short_repr(value)}")
    for key in value:
        if not isinstance(key, str):
            raise InputError(f"{name} must have strings as keys, got {_short_repr(key)}")
    return {key: parse_value(entries[1], each, f"{name}.{key}") for key, each in value.items()}


_COLLECTIONS: dict[Any, Callable[[tuple[Any, ...], object, str], Any]] = {
    list: _parse_list,
    tuple: _parse_tuple,
    dict: _parse_dict,
}


def _parse_scalar(hint: type, value: object, name: str) -> Any:
    # In Python, True is an integer; here it is not.
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:
            raise InputError(f"{name} must be a number that a float can hold, got {_short_repr(value)}") from None
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        raise InputError(f"{name} must be {_TYPE_NAMES[hint]}, got {_short_repr(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise NonFiniteError(f"{name} must be finite, got {'NaN' if math.isnan(value) else value}")
    return value


def _parse_json(value: object, name: str) -> JsonValue:
    if isinstance(value, list):
        return [_parse_json(each, f"{name}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, dict):
        return _parse_dict((str, JsonValue), value, name)
    for hint in _TYPE_NAMES:
        if type(value) is hint:
            return _parse_scalar(hint, value, name)  # type: ignore[no-any-return]  # its type is unchanged
    raise InputError(f"{name} must be null, true, false, a number, text, a list or an object, got {_short_repr(value)}")


def _short_repr(value: object) -> str:
    """Return the representation of a value, truncated if it is long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_TOLERANCE = 1e-6  # of a sum that must be 1


def check_length(values: Sequence[object], name: str, others: Sequence[object], what: str) -> None:
    """Raise unless there is one value for each of `others`."""
    if len(values) != len(others):
        raise ShapeError(f"{name} must have one entry for each of {len(others)} {what}, got {len(values)}")


def check_proportions(values: Sequence[float], name: str, others: Sequence[object], what: str) -> None:
    """Raise unless there is one value for each of `others`, none is negative and they sum to 1."""
    check_length(values, name, others, what)
    for i, value in enumerate(values):
        check_non_negative(value, f"{name}[{i}]")
    total = sum(values)  # infinite if it overflows, where fsum would raise
    if values and abs(total - 1) > _TOLERANCE:
        raise DomainError(f"{name} must sum to 1, got {total:.6g}")


def check_non_negative(value: float, name: str) -> None:
    """Raise if a value is negative."""
    if value < 0:
        raise DomainError(f"{name} must be >= 0, got {value}")


def check_increasing(numbers: Sequence[int], name: str) -> None:
    """Raise unless the numbers are increasing row numbers, counted from 1."""
    for before, after in pairwise([0, *numbers]):
        if after <= before:
            raise DomainError(f"{name} must be increasing row numbers, got {after} after {before}")


def check_decreasing(values: Sequence[float], name: str) -> None:
    """Raise unless the values are non-negative and in decreasing order."""
    for before, after in pairwise(values):
        if after > before:
            raise DomainError(f"{name} must be in decreasing order, got {after:.6g} after {before:.6g}")
    if values:
        check_non_negative(values[-1], name)
