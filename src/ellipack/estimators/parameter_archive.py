"""Parameters of estimators as they are saved: numbers, texts, arrays, and the few kinds of object that we know."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ellipack.errors import CheckpointError, InputError
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats

Kinds = Mapping[str, Callable[..., Any]]
"""What may be made again, by name: constructors, which check what they are given."""

_SEQUENCES: dict[str, Callable[[Floats], Any]] = {
    "ndarray": np.array,
    "list": np.ndarray.tolist,
    "tuple": lambda array: tuple(array.tolist()),
}


def parameter_to_archive(value: Any) -> Archive:
    """Return what is saved of a parameter's value; refuse a kind of value that could not be made again."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return Archive({"kind": "plain", "value": value})
    if isinstance(value, Metric):
        return Archive({"kind": "Metric"}).with_parts(value=value.to_archive())
    if type(value).__name__ in _SEQUENCES and np.asarray(value).dtype.kind in "iuf":
        array = np.asarray(value, dtype=np.float64)
        return Archive({"kind": type(value).__name__}, {"value": array})
    return object_to_archive(value)


def object_to_archive(value: Any) -> Archive:
    """Return what is saved of an object that its constructor makes of its parameters."""
    if not type(value).__module__.startswith("ellipack."):
        raise CheckpointError(
            f"parameters must be numbers, strings, arrays or objects of ellipack to be saved, got {value!r}"
        )
    values = _values(value)
    archive = Archive({"kind": type(value).__name__, "names": sorted(values)})
    return archive.with_parts(**{f"value {name}": parameter_to_archive(each) for name, each in values.items()})


def parameter_from_archive(archive: Archive, kinds: Kinds) -> Any:
    """Return the value that was saved as this archive."""
    kind = archive.fact("kind", str)
    if kind == "plain":
        value = archive.facts.get("value")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise CheckpointError(f"{archive.prefix}value must be a number, a text or nothing")
        return value
    if kind == "Metric":
        part = archive.part("value")
        return Metric.from_archive(part, part.shape("eigenvalues", 1)[0])
    if kind in _SEQUENCES:
        array = archive.arrays.get("value")
        # A list of lists without entries could be as long as it likes, and take no room in the file.
        if array is None or array.dtype != np.float64 or not (array.ndim == 1 or (array.ndim == 2 and array.size)):
            raise CheckpointError(f"{archive.prefix}value must be an array of numbers")
        return _SEQUENCES[kind](array)
    return object_from_archive(archive, kinds)


def object_from_archive(archive: Archive, kinds: Kinds) -> Any:
    """Return the object, of one of these kinds, that was saved as this archive."""
    kind = archive.fact("kind", str)
    if kind not in kinds:
        raise CheckpointError(f"{archive.prefix}kind must be one of {', '.join(sorted(kinds))}, got {kind!r}")
    values = {name: parameter_from_archive(archive.part(f"value {name}"), kinds) for name in archive.strings("names")}
    try:
        return kinds[kind](**values)
    except (InputError, TypeError) as error:
        raise CheckpointError(f"{archive.prefix}{kind} can't be made: {error}") from error


def _values(value: Any) -> dict[str, Any]:
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    # scikit-learn's estimators say theirs in public, River's in private.
    return dict(value.get_params(deep=False) if hasattr(value, "get_params") else value._get_params())
