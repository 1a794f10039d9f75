"""How every kernel is compiled: free of the interpreter's lock, and kept on disk.

``fastmath`` stays off: it would let the compiler reorder sums, and the promise that the same rows give the same
bits, however they are batched, would be gone.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; its type, for the checker, stays what it says."""
    return cast(_Function, numba.njit(cache=True, nogil=True)(function))


def subkernel(function: _Function) -> _Function:
    """Compile a part of kernels that only they call: no way in from Python, nothing of its own on disk.

    That is a good part of the time it takes to compile one.
    """
    # An option that numba's own types leave out.
    compiled = cast(Any, numba.njit)(nogil=True, no_cpython_wrapper=True)
    return cast(_Function, compiled(function))
