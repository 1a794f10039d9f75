"""Four numbers at a time: what one instruction does to four numbers at once, kernels can say here.

The compiler finds out by itself that a loop can work on several numbers at once, if the loop is long and simple. Where
loops are short, most of the time goes to finding out, and to what is left over at their ends. `Four` numbers add,
subtract, multiply and divide each with its counterpart, or all with one number, and each with the rounding that it
would have alone: what is computed four at a time has the same bits.
"""

import operator
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np

from ellipack.validation import Floats

FOUR = 4

if TYPE_CHECKING or cast(Any, numba).config.DISABLE_JIT:
    Four = Floats

    def load(array: Floats, at: int) -> Four:
        """Return the four numbers of a flat array from one position on, which must all be there."""
        return array[at : at + FOUR].copy()

    def store(array: Floats, at: int, four: Four) -> None:
        """Put four numbers into a flat array from one position on, where there must be room for all."""
        array[at : at + FOUR] = four

    def alike(number: float) -> Four:
        """Return a number four times."""
        return np.full(FOUR, number)

    def roots(four: Four) -> Four:
        """Return square roots."""
        return np.sqrt(four)

    def at_least(four: Four, least: float) -> Four:
        """Return numbers, or the least they may be where they are below it."""
        return np.where(four < least, least, four)

    def no_more_than(four: Four, most: float) -> Four:
        """Return numbers, or the most they may be where they are above it."""
        return np.where(four > most, most, four)

    def transposed(first: Four, second: Four, third: Four, fourth: Four) -> tuple[Four, Four, Four, Four]:
        """Return the first numbers of all, the second of all, and so on."""
        one, two, three, four = np.array([first, second, third, fourth]).T.copy()
        return one, two, three, four

else:
    Four = Any

    from llvmlite import ir
    from numba.core import cgutils, types, typing
    from numba.core.typing.templates import ConcreteTemplate, infer_global
    from numba.extending import intrinsic, lower_builtin, models, register_model

    class FourType(types.Type):
        """What `Four` is to numba."""

        def __init__(self):
            super().__init__(name="Four")

    _four = FourType()
    _VECTOR = ir.VectorType(ir.DoubleType(), FOUR)
    _INDEX = ir.IntType(32)

    @register_model(FourType)
    class _FourModel(models.PrimitiveModel):
        def __init__(self, manager, type_):
            super().__init__(manager, type_, _VECTOR)

    def _shuffled(builder, left, right, order):
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_INDEX, len(order)), list(order)))

    def _spread(builder, number):
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
        return _shuffled(builder, first, nothing, [0] * FOUR)

    def _place(context, builder, array_type, array, at):
        data = context.make_array(array_type)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [at]), _VECTOR.as_pointer())

    _PAIRS = ((_four, _four), (types.float64, _four), (_four, types.float64))

    def _define(operation, instruction):
        @infer_global(operation)
        class _Typing(ConcreteTemplate):
            cases = tuple(typing.signature(_four, *pair) for pair in _PAIRS)

        def generate(context, builder, sig, args):
            typed = zip(args, sig.args, strict=True)
            fours = [arg if kind is _four else _spread(builder, arg) for arg, kind in typed]
            return getattr(builder, instruction)(*fours)

        for pair in _PAIRS:
            lower_builtin(operation, *pair)(generate)

    for _operation, _instruction in (
        (operator.add, "fadd"),
        (operator.sub, "fsub"),
        (operator.mul, "fmul"),
        (operator.truediv, "fdiv"),
    ):
        _define(_operation, _instruction)

    @intrinsic
    def load(typing_context, array, at):
        """Load."""

        def generate(context, builder, sig, args):
            return builder.load(_place(context, builder, sig.args[0], *args), align=8)

        return _four(array, types.intp), generate

    @intrinsic
    def store(typing_context, array, at, four):
        """Store."""

        def generate(context, builder, sig, args):
            builder.store(args[2], _place(context, builder, sig.args[0], *args[:2]), align=8)
            return context.get_dummy_value()

        return types.void(array, types.intp, _four), generate

    @intrinsic
    def alike(typing_context, number):
        """Spread."""
        return _four(types.float64), lambda context, builder, sig, args: _spread(builder, args[0])

    @intrinsic
    def roots(typing_context, four):
        """Root."""

        def generate(context, builder, sig, args):
            kind = ir.FunctionType(_VECTOR, [_VECTOR])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.sqrt.v4f64"), args)

        return _four(_four), generate

    @intrinsic
    def at_least(typing_context, four, least):
        """Bound."""

        def generate(context, builder, sig, args):
            least = _spread(builder, args[1])
            return builder.select(builder.fcmp_ordered("<", args[0], least), least, args[0])

        return _four(_four, types.float64), generate

    @intrinsic
    def no_more_than(typing_context, four, most):
        """Bound."""

        def generate(context, builder, sig, args):
            most = _spread(builder, args[1])
            return builder.select(builder.fcmp_ordered(">", args[0], most), most, args[0])

        return _four(_four, types.float64), generate

    @intrinsic
    def transposed(typing_context, first, second, third, fourth):
        """Transpose."""

        def generate(context, builder, sig, args):
            a, b, c, d = args
            low, high = (0, 4, 1, 5), (2, 6, 3, 7)
            halves = [(_shuffled(builder, a, b, part), _shuffled(builder, c, d, part)) for part in (low, high)]
            out = [_shuffled(builder, *half, part) for half in halves for part in ((0, 1, 4, 5), (2, 3, 6, 7))]
            return context.make_tuple(builder, sig.return_type, out)

        return types.UniTuple(_four, 4)(_four, _four, _four, _four), generate
