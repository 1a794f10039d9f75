"""Items and rows of arrays of numbers in C order, at whole-number indices.

By itself numba puts all words of an array on the stack at each use and gets back those that it needs, strides and
sizes of all axes among them, and asks of each index whether it counts from the end: some 34 instructions for an item,
here 4. In kernels only constants count from the end, as in ``a[-1]``; an index that varies must not be negative. With
``NUMBA_BOUNDSCHECK=1`` that raises `IndexError`, as does one that is too large.
"""

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.datamodel.registry import default_manager

_INT: Final = ir.IntType(64)
_WORDS: Final = models.ArrayModel(default_manager, types.Array(types.float64, 1, "C"))._fields
_SIZE, _DATA, SHAPE, _STRIDES = (_WORDS.index(name) for name in ("nitems", "data", "shape", "strides"))
_HANDED_ON: Final = tuple(_WORDS.index(name) for name in ("meminfo", "parent", "itemsize"))


def is_plain(array: Any, index: Any) -> bool:
    """Return whether an index, or its type, is one of those that are known here for an array of this type."""
    if type(array) is not types.Array or array.layout != "C" or not array.aligned:
        return False
    if not isinstance(array.dtype, types.Number | types.Boolean):
        return False
    along: Any = index if _is_tuple(index) else (index,)
    return 0 < len(along) <= array.ndim and all(isinstance(each, int | types.Integer) for each in along)


def _is_tuple(index: Any) -> bool:
    return isinstance(index, tuple | types.BaseTuple)


def constants(index: int | tuple[int, ...]) -> list[Any]:
    """Return an index that is known beforehand, axis by axis."""
    return [_INT(each) for each in (index if isinstance(index, tuple) else (index,))]


def axes(context: Any, builder: Any, type_: Any, index: Any) -> list[Any]:
    """Return an index of this type axis by axis."""
    if not _is_tuple(type_):
        return [context.cast(builder, index, type_, types.intp)]
    return [context.cast(builder, builder.extract_value(index, i), each, types.intp) for i, each in enumerate(type_)]


def address(context: Any, builder: Any, array: Any, index: list[Any]) -> Any:
    """Return where the item at an index is."""
    return _address(context, builder, array, index, len(index))


def row(context: Any, builder: Any, type_: Any, array: Any, index: list[Any]) -> Any:
    """Return the words of what an index of fewer axes than the array has leaves of it, an array of this type."""
    left = range(len(index), len(index) + type_.ndim)
    words = context.get_value_type(type_)(ir.Undefined)
    for at in _HANDED_ON:
        words = builder.insert_value(words, builder.extract_value(array, at), at)
    words = builder.insert_value(words, _address(context, builder, array, index, left.stop), _DATA)
    size = _INT(1)
    for at, axis in enumerate(left):
        extent = builder.extract_value(array, [SHAPE, axis])
        size = extent if at == 0 else builder.mul(size, extent)
        words = builder.insert_value(words, extent, [SHAPE, at])
        words = builder.insert_value(words, builder.extract_value(array, [_STRIDES, axis]), [_STRIDES, at])
    return builder.insert_value(words, size, _SIZE)


def _address(context: Any, builder: Any, array: Any, index: list[Any], dimensions: int) -> Any:
    """Return where the first item at an index is, in an array of so many dimensions."""
    at = _from_start(context, builder, array, 0, index[0])
    for axis in range(1, dimensions):
        at = builder.mul(at, builder.extract_value(array, [SHAPE, axis]))
        if axis < len(index):
            at = builder.add(at, _from_start(context, builder, array, axis, index[axis]))
    return builder.gep(builder.extract_value(array, _DATA), [at])


def _from_start(context: Any, builder: Any, array: Any, axis: int, index: Any) -> Any:
    """Return an index counted from an axis' start."""
    extent = builder.extract_value(array, [SHAPE, axis])
    if isinstance(index, ir.Constant) and isinstance(index.constant, int) and index.constant < 0:
        index = builder.add(extent, index)
    if context.enable_boundscheck:
        cgutils.do_boundscheck(context, builder, index, extent, axis)
    return index
