"""`min`, `max` and `int` of numbers: by itself numba compiles a function for all kinds that they are called with."""

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

_WHOLE: Final = (types.boolean, types.int32, types.int64)
_FIRST_IF: Final = {min: "<", max: ">"}


def signature_of(function: Any, arguments: Any) -> Any:
    """Return what such a function takes and returns when called with arguments of these types; None for all others."""
    named = getattr(function, "typing_key", None)
    kinds = [types.unliteral(each) for each in arguments]
    if (named not in _FIRST_IF or len(kinds) < 2) and (named is not int or len(kinds) != 1):
        return None
    if not all(each in _WHOLE or each == types.float64 for each in kinds):
        return None
    kind = types.float64 if types.float64 in kinds else types.int64
    return signature(types.int64 if named is int else kind, *[kind] * len(kinds))


def call(builder: Any, function: Any, numbers: list[Any]) -> Any:
    """Return what such a function makes of numbers, all of one kind."""
    floating = isinstance(numbers[0].type, ir.DoubleType)
    if function.typing_key is int:
        return builder.fptosi(numbers[0], ir.IntType(64)) if floating else numbers[0]
    compare = builder.fcmp_ordered if floating else builder.icmp_signed
    best = numbers[0]
    for each in numbers[1:]:  # as Python does it: the first of equals, and of those that don't compare
        best = builder.select(compare(_FIRST_IF[function.typing_key], each, best), each, best)
    return best
