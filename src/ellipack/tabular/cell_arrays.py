"""Make columns of Python values, as JSON, Excel and SQLite have them: `cells_to_array`."""

from collections.abc import Sequence
from typing import Any

from ellipack.tabular.arrow import pa
from ellipack.tabular.table_batch import MAX_EXACT_FLOAT, to_strings


def cells_to_array(cells: Sequence[Any]) -> pa.Array:
    """Make a column of the type of its cells, or of strings if they have several types.

    Integers and floats make floats, unless an integer would lose digits. Integers beyond 64 bits make strings. Thus
    `to_strings` gives the same string for a cell, whatever the other cells are.

    Examples
    --------
    >>> cells_to_array([1, None, 2.5]).to_pylist()
    [1.0, None, 2.5]
    >>> cells_to_array([9007199254740993, 2.5]).to_pylist()
    ['9007199254740993', '2.5']
    """
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds == {int}:
        return _integers(cells)
    if kinds == {int, float} and all(abs(cell) <= MAX_EXACT_FLOAT for cell in cells if isinstance(cell, int)):
        return pa.array([None if cell is None else float(cell) for cell in cells])
    return pa.array(cells) if len(kinds) <= 1 else _strings(cells)


def _integers(cells: Sequence[int | None]) -> pa.Array:
    """Make a column of integers with 64 bits, signed if possible; of strings if some have more."""
    for kind in (pa.int64(), pa.uint64()):
        try:
            return pa.array(cells, kind)
        except (OverflowError, pa.ArrowInvalid):
            continue
    return _strings(cells)


def _strings(cells: Sequence[Any]) -> pa.Array:
    return pa.array([None if cell is None else _to_string(cell) for cell in cells], pa.string())


def _to_string(cell: Any) -> str:
    return str(cell) if type(cell) is int else str(to_strings(pa.array([cell]))[0].as_py())
