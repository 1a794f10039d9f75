"""How every kernel is compiled: free of the interpreter's lock, and kept on disk.

``fastmath`` stays off: it would let the compiler reorder sums, and the promise that the same rows give the same
bits, however they are batched, would be gone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numba
from numba.core import types
from numba.experimental import structref

_Function = TypeVar("_Function", bound=Callable[..., object])
_Arrays = TypeVar("_Arrays")
_INTERPRETED = bool(cast(Any, numba).config.DISABLE_JIT)


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; its type, for the checker, stays what it says."""
    # Options that numba's own types leave out.
    return cast(_Function, cast(Any, numba.njit)(cache=True, nogil=True, _nrt=True)(function))


def subkernel(function: _Function) -> _Function:
    """Compile a part of kernels that only they call: no way in from Python, nothing of its own on disk.

    That is a good part of the time it takes to compile one.
    """
    # An option that numba's own types leave out.
    compiled = cast(Any, numba.njit)(nogil=True, no_cpython_wrapper=True, _nrt=False)
    return cast(_Function, compiled(function))


def inlined(function: _Function) -> _Function:
    """Compile a part of kernels as if it were written out in them.

    A subkernel is compiled by itself, then again with each kernel that calls it, and with those that call these, and
    every array of a tuple that it is handed is handed over one by one. For parts that are called from one place, or
    are short, or are handed many arrays, this halves the time that it takes to compile.
    """
    return cast(_Function, numba.njit(cache=True, nogil=True, inline="always")(function))


def entry(function: _Function, *arguments: object) -> _Function:
    """Return a kernel as it is compiled for arguments like these, and must only be called with such from then on.

    It is spared the look at the types of its arguments, which for `Held` ones takes longer than the call.
    """
    if _INTERPRETED:
        return function
    typeof = cast(Any, numba).typeof
    return cast(_Function, cast(Any, function).compile(tuple(typeof(each) for each in arguments)))


if TYPE_CHECKING or _INTERPRETED:

    class Held(Generic[_Arrays]):
        """A tuple of arrays, however nested, that stays unpacked from one call of a kernel to the next.

        To unpack a tuple takes a third of a microsecond an array, which for a kernel that is called with a single row
        can be more than all it does. Kernels get at it by `value`. It can't be pickled.
        """

        def __init__(self, value: _Arrays) -> None:
            self.value = value

    def hold(value: _Arrays) -> Held[_Arrays]:
        """Return a tuple of arrays held for kernels; the arrays are shared, not copied."""
        return Held(value)

else:

    @structref.register
    class _HeldType(types.StructRef):
        """What a `Held` is to numba."""

    class Held(structref.StructRefProxy):
        """A tuple of arrays, unpacked once."""

        def __new__(cls, value):
            return structref.StructRefProxy.__new__(cls, value)

        def __class_getitem__(cls, arrays):
            return cls

    structref.define_proxy(Held, _HeldType, ["value"])

    @kernel
    def hold(value):
        """Return a tuple of arrays, unpacked once."""
        return Held(value)
