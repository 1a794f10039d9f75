"""How every kernel is compiled: free of the interpreter's lock, and kept on disk.

``fastmath`` stays off: it would let the compiler reorder sums, and the promise that the same rows give the same
bits, however they are batched, would be gone.

A kernel is a loop over flat arrays of numbers: no closures, comprehensions, generators or expressions of whole arrays,
no ``try`` and no ``print``. Only a constant index counts from the end. It counts references only if it makes arrays,
which would be half of its code otherwise; one that makes none can't take any that another makes.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from ellipack.lean.compilers import PartCompiler, SharedCompiler, WholeCompiler
from ellipack.lean.inference import take_whole_numbers_alike

_Function = TypeVar("_Function", bound=Callable[..., object])

_MAKERS = {"array", "copy", "empty", "full", "ones", "zeros"}
"""What makes arrays: a kernel that calls none of these need not count references."""


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; its type, for the checker, stays what it says."""
    return _compiled(function, WholeCompiler, cache=True)


def subkernel(function: _Function) -> _Function:
    """Compile a part of kernels that only they call: no way in from Python, nothing of its own on disk.

    It may make arrays to work with but must not return any.
    """
    return _compiled(function, PartCompiler)


def shared(function: _Function) -> _Function:
    """Compile a part of kernels that is long, and called by several, once for all of them.

    It must not return arrays, either, nor use any of more than a megabyte by a global name.
    """
    return _compiled(function, SharedCompiler)


def inlined(function: _Function) -> _Function:
    """Compile a part of kernels as if it were written out in them, which saves handing it what it works on."""
    return _compiled(function, PartCompiler, forceinline=True)


def _compiled(function: _Function, compiler: Any, **options: bool) -> _Function:
    making = not _MAKERS.isdisjoint(cast(Any, function).__code__.co_names)
    # Options that numba's own types leave out.
    compile_ = cast(Any, numba.njit)(nogil=True, no_cfunc_wrapper=True, _nrt=making, pipeline_class=compiler, **options)
    compiled = compile_(function)
    if compiled is not function:
        take_whole_numbers_alike(compiled)
    return cast(_Function, compiled)
