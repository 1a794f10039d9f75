"""Several numbers at a time: what one instruction does to many numbers at once, kernels can say here.

The compiler finds out by itself that a loop can work on several numbers at once, if the loop is long and simple. Where
loops are short, most of the time goes to finding out, and to what is left over at their ends. `Four` numbers add,
subtract, multiply and divide each with its counterpart, or all with one number, and each with the rounding that it
would have alone: what is computed four at a time has the same bits. `Eight` are the same in single precision; which of
both are taken out of an array goes by the numbers in it. `Many` are 64 numbers of single precision, and `Tallies` as
many sums of squares of small whole numbers; which of them pass a test comes out as the bits of one whole number.
"""

import operator
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from numpy.typing import NDArray

FOUR, EIGHT, MANY = 4, 8, 64

FULL_TALLY = 2**16 - 1
"""What a tally stays at that would be more."""

_LARGEST_GAP = 255  # whose square is still less than a full tally

Singles = NDArray[np.float32]
"""Numbers of single precision."""

Several = NDArray[np.floating[Any]]
"""Four numbers, or eight of single precision, or an array out of which as many are taken."""

Codes = NDArray[np.uint8]
"""Small whole numbers."""

if TYPE_CHECKING or cast(Any, numba).config.DISABLE_JIT:
    Four = Several
    Eight = Several
    Many = Singles
    Tallies = NDArray[np.uint16]

    def lanes(array: Several) -> int:
        """Return how many numbers are taken out of an array at once: four, or eight of single precision."""
        return FOUR * 8 // array.itemsize

    def load(array: Several, at: int) -> Several:
        """Return the next four or eight numbers of an array, laid flat, from one position on; all must be there."""
        return array.reshape(-1)[at : at + lanes(array)].copy()

    def store(array: Several, at: int, several: Several) -> None:
        """Put four or eight numbers into a flat array from one position on, where there must be room for all."""
        array[at : at + lanes(array)] = several

    def alike(number: float) -> Four:
        """Return a number four times."""
        return np.full(FOUR, number)

    def alike_in(array: Several, number: float) -> Several:
        """Return a number as often as numbers are taken out of an array at once."""
        return np.full(lanes(array), number, dtype=array.dtype)

    def roots(several: Several) -> Several:
        """Return square roots."""
        return cast(Several, np.sqrt(several))

    def at_least(several: Several, least: float) -> Several:
        """Return numbers, or the least they may be where they are below it."""
        return np.where(several < least, several.dtype.type(least), several)

    def no_more_than(four: Four, most: float) -> Four:
        """Return numbers, or the most they may be where they are above it."""
        return np.where(four > most, most, four)

    def transposed(first: Four, second: Four, third: Four, fourth: Four) -> tuple[Four, Four, Four, Four]:
        """Return the first numbers of all, the second of all, and so on."""
        one, two, three, four = np.array([first, second, third, fourth]).T.copy()
        return one, two, three, four

    def load_many(array: Singles, block: int, row: int) -> Many:
        """Return many numbers: a row of a block, out of an array of blocks whose rows are that long."""
        return cast(Singles, array[block, row])

    def many_alike(number: np.float32) -> Many:
        """Return a number many times."""
        return np.full(MANY, number, dtype=np.float32)

    def greater(left: Many, right: Many) -> Many:
        """Return the greater of each two numbers, the right ones where they can't be compared."""
        return np.where(left > right, left, right)

    def no_tallies() -> Tallies:
        """Return many tallies of nothing."""
        return np.zeros(MANY, dtype=np.uint16)

    def tallied(tallies: Tallies, array: Codes, block: int, row: int, number: int) -> Tallies:
        """Return tallies with the squares added of how far a row of a block is from a number (that fits 15 bits)."""
        gaps = np.minimum(np.abs(array[block, row].astype(np.int64) - number), _LARGEST_GAP)
        return cast(Tallies, np.minimum(tallies + gaps * gaps, FULL_TALLY).astype(np.uint16))

    def least(tallies: Tallies) -> int:
        """Return the least of many tallies."""
        return int(tallies.min())

    def which(many: Many | Tallies, most: np.float32 | int) -> int:
        """Return which of many numbers, or tallies, are at most so large: bit i of the answer is for number i."""
        return sum(1 << int(i) for i in np.flatnonzero(many <= most))

    def lowest(bits: int) -> int:
        """Return which of the bits that are set is the lowest; there must be one."""
        return (bits & -bits).bit_length() - 1

else:
    Four = Eight = Many = Tallies = Any

    from llvmlite import ir
    from numba.core import cgutils, types, typing
    from numba.core.typing.templates import ConcreteTemplate, infer_global
    from numba.extending import intrinsic, lower_builtin, models, register_model

    _INDEX = ir.IntType(32)

    def _shuffled(builder, left, right, order):
        return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(_INDEX, len(order)), list(order)))

    def _spread(builder, number, size=FOUR):
        nothing = ir.Constant(ir.VectorType(number.type, size), ir.Undefined)
        first = builder.insert_element(nothing, number, ir.Constant(_INDEX, 0))
        return _shuffled(builder, first, nothing, [0] * size)

    def _call(builder, name, kind, *args):
        function = ir.FunctionType(kind, [arg.type for arg in args])
        return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)

    def _alike(builder, vector, number):
        if number.type != vector.element:
            number = builder.fptrunc(number, vector.element)
        return _spread(builder, number, vector.count)

    class NumbersType(types.Type):
        """What `Four`, `Eight`, `Many` and `Tallies` are to numba."""

    @register_model(NumbersType)
    class _NumbersModel(models.PrimitiveModel):
        def __init__(self, manager, type_):
            super().__init__(manager, type_, _VECTORS[type_.name])

    _VECTORS = {
        "Four": ir.VectorType(ir.DoubleType(), FOUR),
        "Eight": ir.VectorType(ir.FloatType(), EIGHT),
        "Many": ir.VectorType(ir.FloatType(), MANY),
        "Tallies": ir.VectorType(ir.IntType(16), MANY),
    }
    _four, _eight, _many, _tallies = (NumbersType(name=name) for name in _VECTORS)

    def _place(context, builder, array_type, array, at, vector):
        if array_type.layout != "C":
            raise TypeError(f"numbers are taken out of arrays row by row, got {array_type}")
        data = context.make_array(array_type)(context, builder, array).data
        return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())

    def _pairs(kind, number):
        return (kind, kind), (number, kind), (kind, number)

    _PAIRS = (*_pairs(_four, types.float64), *_pairs(_eight, types.float64), *_pairs(_many, types.float32))

    def _define(operation, instruction):
        @infer_global(operation)
        class _Typing(ConcreteTemplate):
            cases = tuple(typing.signature(max(pair, key=_is_vector), *pair) for pair in _PAIRS)

        def generate(context, builder, sig, args):
            vector, typed = _VECTORS[sig.return_type.name], zip(args, sig.args, strict=True)
            return getattr(builder, instruction)(
                *(arg if _is_vector(kind) else _alike(builder, vector, arg) for arg, kind in typed)
            )

        for pair in _PAIRS:
            lower_builtin(operation, *pair)(generate)

    def _is_vector(kind):
        return isinstance(kind, NumbersType)

    for _operation, _instruction in (
        (operator.add, "fadd"),
        (operator.sub, "fsub"),
        (operator.mul, "fmul"),
        (operator.truediv, "fdiv"),
    ):
        _define(_operation, _instruction)

    def _taken(array):
        return _eight if array.dtype == types.float32 else _four

    @intrinsic
    def lanes(typing_context, array):
        """Count."""
        size = _VECTORS[_taken(array).name].count
        return types.intp(array), lambda context, builder, sig, args: context.get_constant(types.intp, size)

    @intrinsic
    def load(typing_context, array, at):
        """Load."""

        def generate(context, builder, sig, args):
            vector = _VECTORS[sig.return_type.name]
            place = _place(context, builder, sig.args[0], *args, vector)
            return builder.load(place, align=32 // vector.count)

        return _taken(array)(array, types.intp), generate

    @intrinsic
    def store(typing_context, array, at, several):
        """Store."""

        def generate(context, builder, sig, args):
            vector = _VECTORS[sig.args[2].name]
            place = _place(context, builder, sig.args[0], *args[:2], vector)
            builder.store(args[2], place, align=32 // vector.count)
            return context.get_dummy_value()

        return types.void(array, types.intp, _taken(array)), generate

    @intrinsic
    def alike(typing_context, number):
        """Spread."""
        return _four(types.float64), lambda context, builder, sig, args: _spread(builder, args[0])

    @intrinsic
    def alike_in(typing_context, array, number):
        """Spread."""

        def generate(context, builder, sig, args):
            return _alike(builder, _VECTORS[sig.return_type.name], args[1])

        return _taken(array)(array, types.float64), generate

    @intrinsic
    def roots(typing_context, several):
        """Root."""

        def generate(context, builder, sig, args):
            name = "llvm.sqrt.v4f64" if sig.args[0] == _four else "llvm.sqrt.v8f32"
            return _call(builder, name, _VECTORS[sig.args[0].name], *args)

        return several(several), generate

    @intrinsic
    def at_least(typing_context, several, least):
        """Bound."""

        def generate(context, builder, sig, args):
            least = _alike(builder, _VECTORS[sig.args[0].name], args[1])
            return builder.select(builder.fcmp_ordered("<", args[0], least), least, args[0])

        return several(several, types.float64), generate

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

    def _load_row(context, builder, array_type, args, vector, align):
        array, block, row = args
        rows = builder.extract_value(context.make_array(array_type)(context, builder, array).shape, 1)
        at = builder.mul(builder.add(builder.mul(block, rows), row), ir.Constant(row.type, MANY))
        return builder.load(_place(context, builder, array_type, array, at, vector), align=align)

    @intrinsic
    def load_many(typing_context, array, block, row):
        """Load."""

        def generate(context, builder, sig, args):
            return _load_row(context, builder, sig.args[0], args, _VECTORS["Many"], 4)

        return _many(array, types.intp, types.intp), generate

    @intrinsic
    def many_alike(typing_context, number):
        """Spread."""
        return _many(types.float32), lambda context, builder, sig, args: _spread(builder, args[0], MANY)

    @intrinsic
    def greater(typing_context, left, right):
        """Compare."""

        def generate(context, builder, sig, args):
            return builder.select(builder.fcmp_ordered(">", *args), *args)

        return _many(_many, _many), generate

    @intrinsic
    def no_tallies(typing_context):
        """Nothing."""
        return _tallies(), lambda context, builder, sig, args: ir.Constant(_TALLIES, None)

    _TALLIES, _CODES = _VECTORS["Tallies"], ir.VectorType(ir.IntType(8), MANY)

    @intrinsic
    def tallied(typing_context, tallies, array, block, row, number):
        """Subtract, square, add."""

        def generate(context, builder, sig, args):
            codes = builder.zext(_load_row(context, builder, sig.args[1], args[1:4], _CODES, 1), _TALLIES)
            number = _spread(builder, builder.trunc(args[4], _TALLIES.element), MANY)
            apart = _call(
                builder, "llvm.abs.v64i16", _TALLIES, builder.sub(codes, number), ir.Constant(ir.IntType(1), 0)
            )
            largest = _spread(builder, ir.Constant(_TALLIES.element, _LARGEST_GAP), MANY)
            gaps = _call(builder, "llvm.umin.v64i16", _TALLIES, apart, largest)
            return _call(builder, "llvm.uadd.sat.v64i16", _TALLIES, args[0], builder.mul(gaps, gaps))

        return _tallies(_tallies, array, types.intp, types.intp, types.intp), generate

    @intrinsic
    def least(typing_context, tallies):
        """Compare."""

        def generate(context, builder, sig, args):
            found = _call(builder, "llvm.vector.reduce.umin.v64i16", _TALLIES.element, args[0])
            return builder.zext(found, ir.IntType(64))

        return types.int64(_tallies), generate

    @intrinsic
    def which(typing_context, many, most):
        """Compare; in parts of which a processor has all bits at once."""
        whole = ir.IntType(64)

        def generate(context, builder, sig, args):
            few, most, compare = 8, args[1], builder.fcmp_ordered
            if sig.args[0] == _tallies:
                few, most, compare = 32, builder.trunc(most, _TALLIES.element), builder.icmp_unsigned
            most, bits = _spread(builder, most, few), ir.Constant(whole, 0)
            for at in range(0, MANY, few):
                passed = compare("<=", _shuffled(builder, args[0], args[0], range(at, at + few)), most)
                more = builder.zext(builder.bitcast(passed, ir.IntType(few)), whole)
                bits = builder.or_(bits, builder.shl(more, ir.Constant(whole, at)))
            return bits

        return types.int64(many, types.float32 if many == _many else types.int64), generate

    @intrinsic
    def lowest(typing_context, bits):
        """Count zeros."""
        return types.int64(types.int64), lambda context, builder, sig, args: builder.cttz(
            args[0], ir.Constant(ir.IntType(1), 0)
        )
