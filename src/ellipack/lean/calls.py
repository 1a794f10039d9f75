"""Calls of parts of kernels.

By itself numba asks after each call, in several ways, what it came to, and hands on what was raised from one place to
another: some 20 instructions beside the call itself. Here a part writes down what it raises where its caller's callers
look for it, and a caller asks only parts that can raise.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from ellipack.lean.sharing import Restore

_raising: set[str] = set()


def note(function: Any) -> None:
    """Remember of a function that is written down whether it can raise."""
    ends = (block.terminator for block in function.blocks)
    codes = (end.return_value for end in ends if isinstance(end, ir.Ret))
    if not all(isinstance(code, ir.Constant) and code.constant == 0 for code in codes):
        _raising.add(function.name)


def caller(described: Any, libraries: tuple[Any, ...], *restoring: Restore) -> Callable[..., Any]:
    """Return what numba is to write down where a part is called: of what to link, or of what has to be restored."""

    def call(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        context.active_code_library._reload_init.update(restoring)
        function = context.declare_function(builder.module, described)
        convention = context.call_conv
        result = cgutils.alloca_once(builder, convention.get_return_type(described.restype).pointee)
        words = context.get_arg_packer(described.argtypes).as_arguments(builder, arguments)
        code = builder.call(function, [result, convention._get_excinfo_argument(builder.function), *words])
        if function.name in _raising:
            with cgutils.if_unlikely(builder, builder.icmp_unsigned("!=", code, code.type(0))):
                builder.ret(code)
        return context.get_returned_value(builder, described.restype, builder.load(result))

    return _with(call, signature=described.argtypes, libs=libraries)


def _with(function: Callable[..., Any], **attributes: Any) -> Callable[..., Any]:
    """Return a function with the attributes that numba asks it for."""
    vars(function).update(attributes)
    return function
