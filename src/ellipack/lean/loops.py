"""Loops over ranges.

By itself numba works out, by division and for steps of either sign, how often a range's loop runs, and asks before
each time whether it may go on: some 100 instructions for a loop, here 30.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils


def range_of(context: Any, builder: Any, type_: Any, numbers: list[Any]) -> Any:
    """Return a range: its start, its stop and its step, of which two may be left out as in Python."""
    kind = numbers[0].type
    start, stop, step = {1: [kind(0), *numbers, kind(1)], 2: [*numbers, kind(1)], 3: numbers}[len(numbers)]
    return _structure(context, builder, type_, start, stop, step)


def counts_by_one(range_: Any) -> bool:
    """Return whether it is known beforehand that a range counts up by one."""
    if not isinstance(range_, ir.InsertValue):
        return False
    step = range_.operands[1]  # it is written last
    return list(range_.indices) == [2] and isinstance(step, ir.Constant) and step.constant == 1


def start(context: Any, builder: Any, type_: Any, range_: Any) -> Any:
    """Return the iterator of a range that counts up by one."""
    first, stop = builder.extract_value(range_, 0), builder.extract_value(range_, 1)
    number, left = (cgutils.alloca_once(builder, first.type) for _ in range(2))
    builder.store(first, number)
    builder.store(builder.sub(stop, first), left)
    return _structure(context, builder, type_, number, stop, first.type(1), left)


def advance(context: Any, builder: Any, type_: Any, iterator: Any) -> Any:
    """Return the next number of a range, and whether there is one."""
    number, step, left = (builder.extract_value(iterator, at) for at in (0, 2, 3))
    value, count = builder.load(number), builder.load(left)
    builder.store(builder.add(value, step), number)
    builder.store(builder.sub(count, count.type(1)), left)
    return _structure(context, builder, type_, value, builder.icmp_signed(">", count, count.type(0)))


def _structure(context: Any, builder: Any, type_: Any, *members: Any) -> Any:
    words = context.get_value_type(type_)(ir.Undefined)
    for at, each in enumerate(members):
        words = builder.insert_value(words, each, at)
    return words
