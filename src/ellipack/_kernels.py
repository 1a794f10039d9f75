"""How every kernel is compiled: once, cached on disk, free of the interpreter's lock.

``fastmath`` stays off: it would let the compiler reorder sums, and the promise that the same rows give the same
bits, however they are batched, would be gone.
"""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; its type, for the checker, stays what it says."""
    return cast(_Function, numba.njit(cache=True, nogil=True)(function))
