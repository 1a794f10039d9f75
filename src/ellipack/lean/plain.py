"""`min`, `max` and `int` of numbers: by itself numba compiles a function for all kinds that they are called with."""

from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import signature

_NUMBERS: Final = (types.int64, types.float64)
_FIRST_IF: Final = {min: "<", max: ">"}


def signature_of(function: Any, arguments: Any) -> Any:
    """Return what such a function takes and returns when called with arguments of these types; None for all others."""
    named = getattr(function, "typing_key", None)
    kinds = [types.unliteral(each) for each in arguments]
    if not all(each in _NUMBERS for each in kinds):
        return None
    if named in _FIRST_IF and len(kinds) > 1:
        kind = types.float64 if types.float64 in kinds else types.int64
        return signature(kind, *[kind] * len(kinds))
    if named is int and len(kinds) == 1:
        return signature(types.int64, *kinds)
    return None


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
