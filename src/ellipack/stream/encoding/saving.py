"""What was saved, read back with suspicion: each entry is there, of its type and in its range, or CheckpointError."""

import math
from typing import Any

from ellipack.errors import CheckpointError

_LARGEST = 2**62
_Json = dict[str, Any]


def entry(data: object, key: str) -> Any:
    """Return an entry of what should be an object."""
    if not isinstance(data, dict) or key not in data:
        raise CheckpointError(f"the encoding is broken: it has no {key!r} where there should be one")
    return data[key]


def whole_number(data: _Json, key: str, least: int = 0) -> int:
    """Return an entry that is a whole number."""
    value = entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value < _LARGEST:
        raise broken(key, f"a whole number >= {least}", value)
    return value


def optional_whole(data: _Json, key: str) -> int | None:
    """Return an entry that is a whole number or nothing."""
    return None if entry(data, key) is None else whole_number(data, key)


def number(data: _Json, key: str) -> float:
    """Return an entry that is a finite number."""
    value = entry(data, key)
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300 or math.isnan(value):
        raise broken(key, "a finite number", value)
    return float(value)


def flag(data: _Json, key: str) -> bool:
    """Return an entry that is true or false."""
    value = entry(data, key)
    if not isinstance(value, bool):
        raise broken(key, "true or false", value)
    return value


def text(data: _Json, key: str) -> str:
    """Return an entry that is a text."""
    value = entry(data, key)
    if not isinstance(value, str):
        raise broken(key, "a text", value)
    return value


def listed(data: _Json, key: str) -> list[Any]:
    """Return an entry that is a list."""
    value = entry(data, key)
    if not isinstance(value, list):
        raise broken(key, "a list", value)
    return value


def wholes(data: _Json, key: str) -> list[int]:
    """Return an entry that is a list of whole numbers."""
    return [whole_number({key: value}, key) for value in listed(data, key)]


def broken(key: str, rule: str, value: object) -> CheckpointError:
    """Return the error that says which entry breaks which rule."""
    got = repr(value) if isinstance(value, int | float | str | None) else type(value).__name__
    return CheckpointError(f"the encoding is broken: {key!r} must be {rule}, got {got[:60]}")
