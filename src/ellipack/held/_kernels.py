"""Tuples of arrays that stay unpacked from one call of a kernel to the next.

Numba keeps an array as a few machine words: two that say who owns it, its size, the size of an item, where it is, its
shape and its strides; and a tuple as those of its members, one after the other. A `Held` writes them down once, and
hands kernels the address. It owns the arrays, not they themselves: the words of the owner are 0.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numba
import numpy as np

_Function = TypeVar("_Function", bound=Callable[..., object])
_Arrays = TypeVar("_Arrays")
_INTERPRETED = bool(cast(Any, numba).config.DISABLE_JIT)


class Held(Generic[_Arrays]):
    """A tuple of arrays, however nested, that stays unpacked from one call of a kernel to the next.

    To unpack a tuple takes a third of a microsecond an array, which for a kernel that is called with a single row
    can be more than all it does. Kernels get at it by `value`, and, by their names, at what is in it: a member that
    holds tuples is handed on by its address alone. The arrays are shared, not copied. It can't be pickled.
    """

    def __init__(self, value: _Arrays) -> None:
        self.value = value
        words: list[int] = []
        kind: list[object] = []
        _write_down(value, words, kind)
        self.kind = tuple(kind)
        self._words = np.array(words, dtype=np.int64)
        self.address = self._words.ctypes.data

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("Held arrays can't be pickled: their addresses would be those of another process")


def _write_down(value: Any, words: list[int], kind: list[object]) -> None:
    """Append the machine words of arrays, and what numba tells their types by."""
    if isinstance(value, tuple):
        kind += type(value), len(value)
        for each in value:
            _write_down(each, words, kind)
    else:
        if not isinstance(value, np.ndarray):
            raise TypeError(f"Held tuples have arrays in them, and tuples; got {type(value).__name__}")
        kind += value.dtype, value.ndim, value.flags.num
        address = value.__array_interface__["data"][0]
        words += 0, 0, value.size, value.itemsize, address, *value.shape, *value.strides


def entry(function: _Function, *arguments: object) -> _Function:
    """Return a kernel as it is compiled for arguments like these, and must only be called with such from then on.

    It is spared the look at the types of its arguments, which for `Held` ones takes longer than the call.
    """
    if _INTERPRETED:
        return function
    key = function, *(each.kind if isinstance(each, Held) else type(each) for each in arguments)
    if key not in _entries:
        typeof = cast(Any, numba).typeof
        _entries[key] = _function(cast(Any, function).compile(tuple(typeof(each) for each in arguments)))
    return cast(_Function, _entries[key])


def _function(compiled: Callable[..., object]) -> Callable[..., object]:
    """Return what is compiled as a function like any other.

    Who looks through a learner for its memory, as River does, stops at functions; in numba, there is no end.
    """

    def call(*arguments: object) -> object:
        return compiled(*arguments)

    return call


_entries: dict[object, object] = {}


if not (TYPE_CHECKING or _INTERPRETED):
    import operator

    from numba.core import cgutils, types
    from numba.core.datamodel import default_manager
    from numba.core.imputils import impl_ret_borrowed
    from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, infer_global, signature
    from numba.extending import (
        NativeValue,
        infer_getattr,
        lower_builtin,
        lower_getattr_generic,
        models,
        register_model,
        typeof_impl,
        unbox,
    )

    _WORDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")
    if models.ArrayModel(default_manager, types.Array(types.float64, 1, "C"))._fields != _WORDS:
        raise ImportError(f"numba {numba.__version__} keeps arrays in a way unknown to ellipack: try an earlier one")

    class HeldType(types.Type):
        """What a `Held` is to numba."""

        def __init__(self, value):
            self.value = value
            super().__init__(name=f"Held({value})")

        @property
        def key(self):
            """What tells types apart: by their names alone, classes that are called alike would be one."""
            return self.value

    @typeof_impl.register(Held)
    def _typeof(held, context):
        return HeldType(numba.typeof(held.value))

    @register_model(HeldType)
    class _HeldModel(models.PrimitiveModel):
        def __init__(self, manager, type_):
            super().__init__(manager, type_, manager[type_.value].get_value_type().as_pointer())

    @unbox(HeldType)
    def _unbox(type_, held, c):
        address = c.pyapi.object_getattr_string(held, "address")
        pointer = c.builder.bitcast(c.pyapi.long_as_voidptr(address), c.context.get_value_type(type_))
        c.pyapi.decref(address)
        return NativeValue(pointer, is_error=c.pyapi.c_api_error())

    def _member(type_):
        """Return what kernels get of a member: its address, if it holds tuples itself; the words of all others."""
        nested = isinstance(type_, types.BaseTuple) and any(isinstance(each, types.BaseTuple) for each in type_)
        return HeldType(type_) if nested else type_

    def _get(context, builder, type_, pointer):
        """Return a member that is of this type for kernels, given where its words are."""
        if isinstance(type_, HeldType):
            return pointer
        words = builder.load(pointer)
        words.set_metadata("invariant.load", builder.module.add_metadata([]))  # nobody writes to what is held
        return impl_ret_borrowed(context, builder, type_, words)

    @infer_getattr
    class _HeldAttributes(AttributeTemplate):
        key = HeldType

        def resolve_value(self, type_):
            return type_

        def generic_resolve(self, type_, name):
            fields = getattr(type_.value, "fields", ())
            return _member(type_.value[fields.index(name)]) if name in fields else None

    @lower_getattr_generic(HeldType)
    def _attribute(context, builder, type_, pointer, name):
        if name == "value":
            return pointer
        at = type_.value.fields.index(name)
        return _get(context, builder, _member(type_.value[at]), cgutils.gep_inbounds(builder, pointer, 0, at))

    @infer_global(operator.getitem)
    class _HeldItems(AbstractTemplate):
        def generic(self, args, kws):
            held, at = args
            if isinstance(held, HeldType) and isinstance(held.value, types.UniTuple) and isinstance(at, types.Integer):
                return signature(_member(held.value.dtype), held, types.intp)
            return None

    @lower_builtin(operator.getitem, HeldType, types.intp)
    def _item(context, builder, signature_, args):
        pointer, at = args
        if context.enable_boundscheck:
            count = context.get_constant(types.intp, len(signature_.args[0].value))
            cgutils.do_boundscheck(context, builder, at, count)
        return _get(context, builder, signature_.return_type, cgutils.gep_inbounds(builder, pointer, 0, at))

    @infer_global(len)
    class _HeldLength(AbstractTemplate):
        def generic(self, args, kws):
            (held,) = args
            return signature(types.intp, held) if isinstance(held, HeldType) else None

    @lower_builtin(len, HeldType)
    def _length(context, builder, signature_, args):
        return context.get_constant(types.intp, len(signature_.args[0].value))
