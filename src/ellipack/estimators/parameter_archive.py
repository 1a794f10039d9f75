"""Archives of the parameters of estimators: numbers, strings, arrays and objects of a few known classes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ellipack.errors import InputError, ModelFileError
from ellipack.metric import Metric
from ellipack.serialization import Archive
from ellipack.validation import Floats

Constructors = Mapping[str, Callable[..., Any]]
"""Constructors of the classes that an archive may hold, by name. They check their arguments."""

_SEQUENCES: dict[str, Callable[[Floats], Any]] = {
    "ndarray": np.array,
    "list": np.ndarray.tolist,
    "tuple": lambda array: tuple(array.tolist()),
}

_PLAIN_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {"plain list": list, "plain tuple": tuple}
"""Constructors of sequences of strings and integers, by kind."""


def parameter_to_archive(value: Any) -> Archive:
    """Return the archive of the value of a parameter.

    Raises
    ------
    ModelFileError
        If the value is an object of a class outside this package, or no file could hold it.
    """
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ModelFileError(f"parameters must be finite to be saved, got {value}")
    if value is None or isinstance(value, bool | int | float | str):
        return Archive({"kind": "plain", "value": value})
    if isinstance(value, Metric):
        return Archive({"kind": "Metric"}).with_parts(value=value.to_archive())
    if type(value) in (list, tuple) and all(isinstance(each, str | int) for each in value):
        return Archive({"kind": f"plain {type(value).__name__}", "value": list(value)})
    if type(value).__name__ in _SEQUENCES and np.asarray(value).dtype.kind in "iuf":
        array = np.asarray(value, dtype=np.float64)
        if not 1 <= array.ndim <= 2 or not array.size:
            raise ModelFileError(
                f"arrays must have one or two dimensions and not be empty to be saved, got shape {array.shape}"
            )
        return Archive({"kind": type(value).__name__}, {"value": array})
    return object_to_archive(value)


def object_to_archive(value: Any) -> Archive:
    """Return the archive of an object that its constructor can rebuild from parameters."""
    if not type(value).__module__.startswith("ellipack."):
        raise ModelFileError(
            f"parameters must be numbers, strings, arrays or objects of ellipack to be saved, got {value!r}"
        )
    values = _parameters(value)
    archive = Archive({"kind": type(value).__name__, "names": sorted(values)})
    return archive.with_parts(**{f"value {name}": parameter_to_archive(each) for name, each in values.items()})


def parameter_from_archive(archive: Archive, constructors: Constructors) -> Any:
    """Return the value of a parameter from its archive."""
    kind = archive.fact("kind", str)
    if kind == "plain":
        value = archive.facts.get("value")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise ModelFileError(f"{archive.prefix}value must be a number, a string or null")
        return value
    if kind in _PLAIN_SEQUENCES:
        values = archive.fact("value", list)
        if not all(isinstance(each, str | int) for each in values):
            raise ModelFileError(f"{archive.prefix}value must be a list of strings and integers")
        return _PLAIN_SEQUENCES[kind](values)
    if kind == "Metric":
        part = archive.part("value")
        return Metric.from_archive(part, part.shape("eigenvalues", 1)[0])
    if kind in _SEQUENCES:
        array = archive.arrays.get("value")
        # An array of shape (n, 0) takes no space in a file but could become a list of n lists.
        if (
            not isinstance(array, np.ndarray)
            or array.dtype != np.float64
            or not (array.ndim == 1 or (array.ndim == 2 and array.size))
        ):
            raise ModelFileError(f"{archive.prefix}value must be an array of numbers")
        return _SEQUENCES[kind](array)
    return object_from_archive(archive, constructors)


def object_from_archive(archive: Archive, constructors: Constructors) -> Any:
    """Rebuild an object from its archive with one of the given constructors."""
    kind = archive.fact("kind", str)
    if kind not in constructors:
        raise ModelFileError(f"{archive.prefix}kind must be one of {', '.join(sorted(constructors))}, got {kind!r}")
    values = {
        name: parameter_from_archive(archive.part(f"value {name}"), constructors) for name in archive.strings("names")
    }
    try:
        return constructors[kind](**values)
    except (InputError, TypeError) as error:
        raise ModelFileError(f"{archive.prefix}{kind} can't be built: {error}") from error


def _parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of an object by name."""
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    # scikit-learn has a public method for this, River a private one.
    return dict(value.get_params(deep=False) if hasattr(value, "get_params") else value._get_params())
