"""Keys of rows: 64-bit hashes of the values in one or more columns, such as a store and a product.

The same values have the same key on every machine. Different values have different keys, except with the probability
of a collision of 64-bit hashes, which is negligible.
"""

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack.errors import KindError, ShapeError
from ellipack.validation import Ints

_MASK = 2**64 - 1
_LARGE, _HUGE = 2**53, 2**63  # between them, integers are told apart that are the same as floats
_MISSING_TYPES = {"NAType", "NaTType"}  # of pandas, by name, because it may not be installed
_MISSING = 0x7FF8000000000000  # the bits of NaN, for all missing values
_INCREMENT, _FIRST_FACTOR, _SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # SplitMix64


class RowKeys(NamedTuple):
    """Keys of rows with the values that they stand for.

    Attributes
    ----------
    hashes : array of int64, shape (n,)
        Keys.
    columns : tuple of arrays of shape (n,)
        Values.

    Examples
    --------
    >>> RowKeys.of([["north", "south"], [1.0, 2.5]]).name(1)
    'south, 2.5'
    """

    hashes: Ints
    columns: tuple[NDArray[Any], ...]

    @classmethod
    def of(cls, columns: Sequence[ArrayLike]) -> "RowKeys":
        """Return the keys of rows from their columns."""
        # NumPy would turn a list of numbers and text into text.
        arrays = (np.asarray(each, dtype=object) if isinstance(each, list | tuple) else each for each in columns)
        return cls(hash_rows(columns), tuple(np.asarray(each) for each in arrays))

    def part(self, rows: slice) -> "RowKeys":
        """Return the keys of some rows."""
        return RowKeys(self.hashes[rows], tuple(column[rows] for column in self.columns))

    def check(self, count: int) -> None:
        """Raise `ShapeError` unless there is one key per row."""
        if self.hashes.shape != (count,):
            raise ShapeError(f"keys must have one entry per row, {count}, got shape {self.hashes.shape}")

    def name(self, row: int) -> str:
        """Return the values of a row as text."""
        return ", ".join(_text(column[row]) for column in self.columns)


def _text(value: Any) -> str:
    """Return a value as text, the same for equal numbers of all types."""
    if _code(value) == _MISSING:
        return "missing"
    if not _is_number(value):
        return str(value)
    return str(int(value)) if _LARGE <= abs(float(value)) < _HUGE else f"{float(value):.15g}"


def hash_rows(columns: Sequence[ArrayLike]) -> Ints:
    """Return the key of each row.

    Parameters
    ----------
    columns : sequence of array-like of shape (n,)
        Columns of numbers, text or other values. Equal numbers are the same value, whatever their type. Values of other
        types are compared by their text. All missing values are the same value.

    Returns
    -------
    keys : array of int64, shape (n,)

    Raises
    ------
    ShapeError
        If the columns are not one-dimensional and of the same length.

    Examples
    --------
    >>> keys = hash_rows([["north", "south", "north"], [1, 1, 1.0]])
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    keys: NDArray[np.uint64] | None = None
    for column in columns:
        codes = _column_codes(column)
        if keys is not None and len(codes) != len(keys):
            raise ShapeError(f"columns of keys must have the same length, got {len(keys)} and {len(codes)}")
        with np.errstate(over="ignore"):  # arithmetic is modulo 2^64
            keys = _mix(codes if keys is None else keys ^ codes)
    return np.zeros(0, dtype=np.int64) if keys is None else keys.view(np.int64)


def hash_row(values: Sequence[Any]) -> int:
    """Return the key of one row.

    Parameters
    ----------
    values : sequence
        Its values.

    Returns
    -------
    key : int
        The same as that of `hash_rows`.

    Examples
    --------
    >>> hash_row(["north", 1]) == int(hash_rows([["north"], [1]])[0])
    True
    """
    key = 0
    for value in values:
        mixed = ((key ^ _code(value)) + _INCREMENT) & _MASK
        mixed = ((mixed ^ (mixed >> 30)) * _FIRST_FACTOR) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * _SECOND_FACTOR) & _MASK
        key = mixed ^ (mixed >> 31)
    return key - 2**64 if key >= 2**63 else key


def _mix(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return codes whose bits are mixed, as in the random number generator SplitMix64."""
    mixed = codes + np.uint64(_INCREMENT)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(_FIRST_FACTOR)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(_SECOND_FACTOR)
    return mixed ^ (mixed >> np.uint64(31))


def _column_codes(values: ArrayLike) -> NDArray[np.uint64]:
    """Return a code of each value."""
    # NumPy would turn a list of numbers and text into text.
    column = np.asarray(values, dtype=object) if isinstance(values, list | tuple) else np.asarray(values)
    if column.ndim != 1:
        raise ShapeError(f"a column of keys must have one dimension, got shape {column.shape}")
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        codes = numbers.view(np.uint64).copy()
        codes[np.isnan(numbers)] = _MISSING
        large = (np.abs(numbers) >= _LARGE) & (np.abs(numbers) < _HUGE)
        codes[large] = column[large].astype(np.int64).view(np.uint64)
        return codes
    known: dict[Any, int] = {}
    try:
        return np.array([known[v] if v in known else known.setdefault(v, _code(v)) for v in column.tolist()], np.uint64)
    except TypeError as error:
        raise KindError(f"keys must be numbers, text or other values that can be compared: {error}") from error


def _code(value: Any) -> int:
    """Return the code of a value."""
    if value is None or type(value).__name__ in _MISSING_TYPES or value != value:  # noqa: PLR0124 (NaN)
        return _MISSING
    if not _is_number(value):
        return _text_code(str(value))
    try:
        number = float(value) + 0.0
    except OverflowError:  # an integer beyond the largest float
        return _text_code(hex(value))
    if _LARGE <= abs(number) < _HUGE:
        return int(value) & _MASK
    return int.from_bytes(struct.pack("<d", number), "little")


def _text_code(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | int | float | np.number | np.bool_)
