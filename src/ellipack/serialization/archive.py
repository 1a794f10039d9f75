"""What a saved file holds: facts and arrays by name, nested in parts; and how they are asked for.

A loader knows what it wants and asks for it by name, type and shape. The file names no class and no function, and
whatever in it is not as it should be ends in a `CheckpointError` before anything is built.
"""

import math
import reprlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack.errors import CheckpointError
from ellipack.validation import Floats, Ints

_TYPE_NAMES = {bool: "true or false", int: "a whole number", str: "text", list: "a list", dict: "an object"}
_LARGEST_INTEGER = 2**62  # rows, centres and the like: far from where an int64 would overflow

Json = bool | int | float | str | list[Any] | dict[str, Any] | None
"""What a fact may be."""


@dataclass(frozen=True)
class Archive:
    """Facts and arrays, those of a part under the part's name.

    >>> whole = Archive({"clock": 3}).with_parts(metric=Archive(arrays={"eigenvalues": np.ones(2)}))
    >>> whole.part("metric").floats("eigenvalues", 2)
    array([1., 1.])
    >>> whole.part("metric").floats("eigenvalues", 3)
    Traceback (most recent call last):
        ...
    ellipack.errors.CheckpointError: metric/eigenvalues must be float64 of shape (3,), got float64 of shape (2,)
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    prefix: str = ""

    def with_parts(self, **parts: "Archive") -> "Archive":
        """Return this archive with parts added."""
        facts = {**self.facts, **{name: part.facts for name, part in parts.items()}}
        arrays = dict(self.arrays)
        for name, part in parts.items():
            arrays |= {f"{name}/{key}": array for key, array in part.arrays.items()}
        return Archive(facts, arrays, self.prefix)

    def copy(self) -> "Archive":
        """Return the same with arrays of their own, so that what they were taken from may move on."""
        return Archive(self.facts, {name: np.array(array) for name, array in self.arrays.items()}, self.prefix)

    def part(self, name: str) -> "Archive":
        """Return a part."""
        prefix = f"{name}/"
        arrays = {key.removeprefix(prefix): array for key, array in self.arrays.items() if key.startswith(prefix)}
        return Archive(self.fact(name, dict), arrays, self._full_name(prefix))

    def fact(self, name: str, kind: type[Any]) -> Any:
        """Return a fact of this kind."""
        if name not in self.facts:
            raise CheckpointError(f"{self._full_name(name)} must be {_TYPE_NAMES[kind]}, got nothing")
        value = self.facts[name]
        if type(value) is not kind:  # not isinstance: a bool is no number here
            raise CheckpointError(f"{self._full_name(name)} must be {_TYPE_NAMES[kind]}, got {_shortened(value)}")
        return value

    def integer(self, name: str, least: int, most: int = _LARGEST_INTEGER) -> int:
        """Return a whole number from `least` to `most`."""
        value = int(self.fact(name, int))
        if not least <= value <= most:
            raise CheckpointError(f"{self._full_name(name)} must be from {least} to {most}, got {value}")
        return value

    def number(self, name: str) -> float:
        """Return a finite number."""
        value: Any = self.facts.get(name)
        if type(value) not in (int, float) or not _is_finite(value):
            raise CheckpointError(f"{self._full_name(name)} must be a finite number, got {_shortened(value)}")
        return float(value)

    def strings(self, name: str, count: int | None = None) -> list[str]:
        """Return a list of texts, `count` of them if given."""
        values: list[str] = self.fact(name, list)
        if not all(isinstance(value, str) for value in values) or (count is not None and len(values) != count):
            wanted = "a list of texts" if count is None else f"a list of {count} texts"
            raise CheckpointError(f"{self._full_name(name)} must be {wanted}, got {_shortened(values)}")
        return values

    def floats(self, name: str, *shape: int) -> Floats:
        """Return finite floats of this shape, in an array of their own."""
        array = self.any_floats(name, *shape)
        if not np.isfinite(array).all():
            raise CheckpointError(f"{self._full_name(name)} must be finite, got NaN or an infinity")
        return array

    def any_floats(self, name: str, *shape: int) -> Floats:
        """Return floats of this shape, infinities and NaN among them if that is what was saved."""
        return np.array(self._array(name, np.dtype(np.float64), shape))

    def floats_above(self, least: float, name: str, *shape: int) -> Floats:
        """Return floats that are all greater than `least`."""
        array = self.floats(name, *shape)
        if array.size and not array.min() > least:
            raise CheckpointError(f"{self._full_name(name)} must be > {least:g}, got {array.min():g}")
        return array

    def floats_between(self, least: float, most: float, name: str, *shape: int) -> Floats:
        """Return floats that are all from `least` to `most`."""
        array = self.floats(name, *shape)
        if array.size and not (array.min() >= least and array.max() <= most):
            got = f"{array.min():g} to {array.max():g}"
            raise CheckpointError(f"{self._full_name(name)} must be from {least:g} to {most:g}, got {got}")
        return array

    def ints(self, name: str, *shape: int, least: int = 0, most: int = _LARGEST_INTEGER) -> Ints:
        """Return whole numbers of this shape, none below `least` or above `most`."""
        array = self._array(name, np.dtype(np.int64), shape)
        if array.size and array.min() < least:
            raise CheckpointError(f"{self._full_name(name)} must be >= {least}, got {array.min()}")
        if array.size and array.max() > most:
            raise CheckpointError(f"{self._full_name(name)} must be <= {most}, got {array.max()}")
        return np.array(array)

    def counts(self, name: str, count: int, total: int, least: int = 0) -> Ints:
        """Return so many whole numbers that add up to no more than `total`."""
        array = self.ints(name, count, least=least, most=total)
        # A sum of floats: one of ints could overflow. Up to 2**53 it is exact, and beyond that it is no less.
        if total > 2**52 or array.sum(dtype=np.float64) > total:
            raise CheckpointError(f"{self._full_name(name)} must add up to no more than {min(total, 2**52)}")
        return array

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """Return the shape of an array, which must have so many dimensions."""
        array = self.arrays.get(name)
        if array is None or array.ndim != dimensions:
            got = "nothing" if array is None else f"shape {array.shape}"
            raise CheckpointError(f"{self._full_name(name)} must be an array of {dimensions} dimensions, got {got}")
        return array.shape

    def _array(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        array = self.arrays.get(name)
        if array is None or array.dtype != dtype or array.shape != shape:
            got = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise CheckpointError(f"{self._full_name(name)} must be {dtype} of shape {shape}, got {got}")
        return array

    def _full_name(self, name: str) -> str:
        return f"{self.prefix}{name}"


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def _shortened(value: object) -> str:
    text = reprlib.repr(value)  # which does not follow lists within lists for ever
    return text if len(text) <= 40 else f"{text[:40]}..."
