"""Facts and arrays of a saved model, by name and nested in parts.

A loader requests each value by name, type and shape. A file names no class and no function that could be imported. A
value that does not meet the request raises a `ModelFileError` before anything is built from it.
"""

import math
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ellipack._core import all_between
from ellipack.errors import ModelFileError
from ellipack.validation import Floats, Ints

_TYPE_NAMES = {bool: "true or false", int: "an integer", str: "a string", list: "a list", dict: "an object"}
_LARGEST_INTEGER = 2**62  # for counts of rows, centers and the like: far below the overflow of int64

Json = bool | int | float | str | list[Any] | dict[str, Any] | None
"""Type of a fact."""

Arrays = Mapping[str, "NDArray[Any] | Arrays"]
"""Arrays by name, and those of each part by the name of the part."""


@dataclass(frozen=True)
class Archive:
    """Facts and arrays of a saved object.

    An archive may have parts, which are archives themselves. The facts of a part are a dictionary among the facts, its
    arrays a dictionary among the arrays. Accessors check type, shape and range and return copies of arrays.

    Parameters
    ----------
    facts : dict of str to JSON value, default {}
        Numbers, strings, lists and dictionaries.
    arrays : dict of str to array, default {}
        NumPy arrays. Names have no slash.
    prefix : str, default ""
        Path of this archive in the whole one. Error messages begin with it.

    Examples
    --------
    >>> archive = Archive({"clock": 3}).with_parts(metric=Archive(arrays={"eigenvalues": np.ones(2)}))
    >>> archive.integer("clock", least=0)
    3
    >>> archive.part("metric").floats("eigenvalues", 2)
    array([1., 1.])
    >>> archive.part("metric").floats("eigenvalues", 3)
    Traceback (most recent call last):
        ...
    ellipack.errors.ModelFileError: metric/eigenvalues must be float64 of shape (3,), got float64 of shape (2,)
    """

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    prefix: str = ""

    @classmethod
    def from_full_names(cls, facts: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Archive":
        """Return the archive with given facts, and arrays by full name.

        Parameters
        ----------
        facts : dict of str to JSON value
            Facts, those of each part in a dictionary.
        arrays : dict of str to array
            Result of `arrays_by_full_name`.

        Returns
        -------
        archive : Archive

        Raises
        ------
        ModelFileError
            If an array has the name of a part, or is in a part without facts.

        Examples
        --------
        >>> Archive.from_full_names({"p": {"b": 2}}, {"p/x": np.ones(2)}).part("p")
        Archive(facts={'b': 2}, arrays={'x': array([1., 1.])}, prefix='p/')
        """
        nested: dict[str, Any] = {}
        for full_name, array in arrays.items():
            *path, name = full_name.split("/")
            inside: Any = nested
            part_facts: Any = facts
            for part in path:
                # A part must have facts. Otherwise a small file with long names could create very many parts.
                inside, part_facts = inside.setdefault(part, {}), part_facts.get(part)
                if type(inside) is not dict or type(part_facts) is not dict:
                    raise ModelFileError(f"the array {_shortened(full_name)} must be in a part")
            if name in inside:
                raise ModelFileError(f"the array {_shortened(full_name)} must not have the name of a part")
            inside[name] = array
        return cls(facts, nested)

    def arrays_by_full_name(self) -> dict[str, NDArray[Any]]:
        """Return all arrays. The full name of an array in a part begins with the name of the part and a slash.

        Returns
        -------
        arrays : dict of str to array

        Examples
        --------
        >>> Archive().with_parts(p=Archive(arrays={"x": np.ones(2)})).arrays_by_full_name()
        {'p/x': array([1., 1.])}
        """
        return dict(_by_full_name(self.arrays, ""))

    def with_parts(self, **parts: "Archive") -> "Archive":
        """Return this archive with parts added.

        Parameters
        ----------
        **parts : Archive
            Parts by name.

        Returns
        -------
        archive : Archive

        Examples
        --------
        >>> Archive({"a": 1}).with_parts(p=Archive({"b": 2})).facts
        {'a': 1, 'p': {'b': 2}}
        """
        facts = {**self.facts, **{name: part.facts for name, part in parts.items()}}
        arrays = {**self.arrays, **{name: part.arrays for name, part in parts.items()}}
        return Archive(facts, arrays, self.prefix)

    def copy(self) -> "Archive":
        """Return an archive with copies of the arrays, so that the original arrays may change."""
        return Archive(self.facts, _copied(self.arrays), self.prefix)

    def part(self, name: str) -> "Archive":
        """Return a part.

        Parameters
        ----------
        name : str
            Name of the part.

        Returns
        -------
        part : Archive

        Raises
        ------
        ModelFileError
            If there is no such part.
        """
        facts, arrays = self.fact(name, dict), self.arrays.get(name, {})
        if isinstance(arrays, np.ndarray):
            raise ModelFileError(f"{self._full_name(name)} must be a part, got an array")
        return Archive(facts, arrays, f"{self.prefix}{name}/")

    def fact(self, name: str, kind: type[Any]) -> Any:
        """Return a fact of a given type.

        Parameters
        ----------
        name : str
            Name of the fact.
        kind : {bool, int, str, list, dict}
            Exact type. A bool is not an int here.

        Returns
        -------
        value : object of type `kind`
        """
        if name not in self.facts:
            raise ModelFileError(f"{self._full_name(name)} must be {_TYPE_NAMES[kind]}, got nothing")
        value = self.facts[name]
        if type(value) is not kind:  # isinstance would accept a bool as an int
            raise ModelFileError(f"{self._full_name(name)} must be {_TYPE_NAMES[kind]}, got {_shortened(value)}")
        return value

    def integer(self, name: str, least: int, most: int = _LARGEST_INTEGER) -> int:
        """Return an integer from `least` to `most`."""
        value = int(self.fact(name, int))
        if not least <= value <= most:
            raise ModelFileError(f"{self._full_name(name)} must be from {least} to {most}, got {value}")
        return value

    def number(self, name: str) -> float:
        """Return a finite number."""
        value: Any = self.facts.get(name)
        if type(value) not in (int, float) or not _is_finite(value):
            raise ModelFileError(f"{self._full_name(name)} must be a finite number, got {_shortened(value)}")
        return float(value)

    def number_between(self, least: float, most: float, name: str) -> float:
        """Return a number from `least` to `most`."""
        value = self.number(name)
        if not least <= value <= most:
            raise ModelFileError(f"{self._full_name(name)} must be from {least:g} to {most:g}, got {value:g}")
        return value

    def strings(self, name: str, count: int | None = None) -> list[str]:
        """Return a list of strings, with `count` entries if given."""
        values: list[str] = self.fact(name, list)
        if not all(isinstance(value, str) for value in values) or (count is not None and len(values) != count):
            wanted = "a list of strings" if count is None else f"a list of {count} strings"
            raise ModelFileError(f"{self._full_name(name)} must be {wanted}, got {_shortened(values)}")
        return values

    def floats(self, name: str, *shape: int) -> Floats:
        """Return an array of finite floats of a given shape."""
        array = self.any_floats(name, *shape)
        self._require_finite(name, array)
        return array

    def any_floats(self, name: str, *shape: int) -> Floats:
        """Return an array of floats of a given shape, which may hold infinities and NaN."""
        return np.array(self._array(name, np.dtype(np.float64), shape))

    def floats_above(self, least: float, name: str, *shape: int) -> Floats:
        """Return an array of finite floats greater than `least`."""
        array = self.floats(name, *shape)
        if array.size and not array.min() > least:
            raise ModelFileError(f"{self._full_name(name)} must be > {least:g}, got {array.min():g}")
        return array

    def floats_between(self, least: float, most: float, name: str, *shape: int) -> Floats:
        """Return an array of floats from `least` to `most`."""
        array = self.any_floats(name, *shape)
        if not all_between(array, least, most):
            self._require_finite(name, array)
            got = f"{array.min():g} to {array.max():g}"
            raise ModelFileError(f"{self._full_name(name)} must be from {least:g} to {most:g}, got {got}")
        return array

    def ints(self, name: str, *shape: int, least: int = 0, most: int = _LARGEST_INTEGER) -> Ints:
        """Return an array of integers from `least` to `most`."""
        array = self._array(name, np.dtype(np.int64), shape)
        if array.size and array.min() < least:
            raise ModelFileError(f"{self._full_name(name)} must be >= {least}, got {array.min()}")
        if array.size and array.max() > most:
            raise ModelFileError(f"{self._full_name(name)} must be <= {most}, got {array.max()}")
        return np.array(array)

    def data(self, name: str) -> bytes:
        """Return an array of bytes."""
        return bytes(self._array(name, np.dtype(np.uint8), self.shape(name, 1)).tobytes())

    def counts(self, name: str, count: int, total: int, least: int = 0) -> Ints:
        """Return `count` integers, each at least `least`, whose sum is at most `total`."""
        array = self.ints(name, count, least=least, most=total)
        # A sum of int64 could overflow. A sum of floats is exact up to 2**53, and beyond that it does not fall.
        if total > 2**52 or array.sum(dtype=np.float64) > total:
            raise ModelFileError(f"{self._full_name(name)} must add up to no more than {min(total, 2**52)}")
        return array

    def shape(self, name: str, dimensions: int) -> tuple[int, ...]:
        """Return the shape of an array with a given number of dimensions."""
        array = self.arrays.get(name)
        if not isinstance(array, np.ndarray) or array.ndim != dimensions:
            got = f"shape {array.shape}" if isinstance(array, np.ndarray) else "nothing"
            raise ModelFileError(f"{self._full_name(name)} must be an array of {dimensions} dimensions, got {got}")
        return array.shape

    def _array(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """Return an array of a given type and shape, without a copy."""
        array = self.arrays.get(name)
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.shape != shape:
            got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else "nothing"
            raise ModelFileError(f"{self._full_name(name)} must be {dtype} of shape {shape}, got {got}")
        return array

    def _require_finite(self, name: str, array: Floats) -> None:
        if not all_between(array, -math.inf, math.inf):
            raise ModelFileError(f"{self._full_name(name)} must be finite, got NaN or an infinity")

    def _full_name(self, name: str) -> str:
        return f"{self.prefix}{name}"


def _by_full_name(arrays: Arrays, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield all arrays with their full names."""
    for name, each in arrays.items():
        if "/" in name:
            raise ValueError(f"names of arrays and parts must not have a slash, got {name!r}")
        if isinstance(each, np.ndarray):
            yield f"{prefix}{name}", each
        else:
            yield from _by_full_name(each, f"{prefix}{name}/")


def _copied(arrays: Arrays) -> Arrays:
    """Return copies of all arrays."""
    return {name: np.array(each) if isinstance(each, np.ndarray) else _copied(each) for name, each in arrays.items()}


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the largest float
        return False


def _shortened(value: object) -> str:
    """Return the representation of a value, cut to 40 characters."""
    text = reprlib.repr(value)  # limits the depth of nested lists
    return text if len(text) <= 40 else f"{text[:40]}..."
