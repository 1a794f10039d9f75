"""What kernels must not have, since the shorter ways of compiling them don't know it."""

from collections.abc import Callable
from inspect import CO_GENERATOR
from typing import Any


def refuse(function: Callable[..., Any]) -> None:
    """Raise if a function has what a kernel must not have."""
    code = function.__code__
    if code.co_flags & CO_GENERATOR:
        raise TypeError(f"{code.co_name} is a kernel, or a part of kernels: it must not yield")
    if code.co_exceptiontable:
        raise TypeError(f"{code.co_name} is a kernel, or a part of kernels: it must not try, nor use `with`")
    if "print" in code.co_names:
        raise TypeError(f"{code.co_name} is a kernel, or a part of kernels: only with NUMBA_DISABLE_JIT=1 can it print")
