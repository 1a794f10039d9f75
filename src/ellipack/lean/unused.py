"""What is written down and not used by anything, left out again before LLVM has to read it."""

from collections import Counter
from typing import Any, Final

from llvmlite.ir import CastInstr, ExtractValue, GEPInstr, InsertValue, LoadInstr

_HARMLESS: Final = (CastInstr, ExtractValue, GEPInstr, InsertValue, LoadInstr)


def leave_out_unused(function: Any) -> None:
    """Leave out the instructions of a function that do nothing but get a value which nobody uses.

    An argument that is an array comes as its words, and is put together of them whether it is needed whole or not.
    """
    used: Counter[int] = Counter()
    harmless = []
    for block in function.blocks:
        for each in block.instructions:
            used.update(map(id, each.operands))
            used.update(id(value) for value, _ in getattr(each, "incomings", ()))
            if isinstance(each, _HARMLESS):
                harmless.append(each)
    unused = set()
    for each in reversed(harmless):
        if not used[id(each)]:
            unused.add(id(each))
            used.subtract(map(id, each.operands))
    for block in function.blocks:
        block.instructions = [each for each in block.instructions if id(each) not in unused]
