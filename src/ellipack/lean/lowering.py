"""How a kernel is written down for LLVM, once numba knows all its types.

A variable that is assigned once is a value, not a place on the stack that values are written to and read from: numba
does that only for variables of a single block.
"""

import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

from ellipack.lean import arrays, calls, loops, plain
from ellipack.lean.inference import Remembering, holds_references
from ellipack.lean.unused import leave_out_unused

if TYPE_CHECKING:
    Lowering = Any  # numba has no types for what follows
else:
    from llvmlite.ir import InsertValue, IRBuilder
    from numba.core import cgutils, ir, types
    from numba.core.imputils import impl_ret_borrowed
    from numba.core.lowering import Lower

    class _Builder(IRBuilder):
        """Writes down instructions, but no reading of what was just written."""

        def extract_value(self, agg, idx, name=""):
            """Return a member of a tuple: what was put there, or an instruction to get it."""
            path = list(idx) if isinstance(idx, tuple | list) else [idx]
            while isinstance(agg, InsertValue):
                whole, member = agg.operands
                at = list(agg.indices)
                if path == at:
                    return member
                if path[: len(at)] == at:
                    return self.extract_value(member, path[len(at) :], name)
                if at[: len(path)] == path:
                    break  # only a part of what is asked for
                agg = whole
            return super().extract_value(agg, path, name)

    class Lowering(Lower):
        """Writes down a kernel, or a part of kernels."""

        @property
        def _on_stack(self):
            """Whether variables have to be on the stack: where references are counted, and for debuggers."""
            return self.context.enable_nrt or self._disable_sroa_like_opt

        def setup_function(self, fndesc):
            """Begin a function."""
            super().setup_function(fndesc)
            self.builder = _Builder(self.entry_block)
            self.call_helper = self.call_conv.init_call_helper(self.builder)

        def lower_normal_function(self, fndesc):
            """Write down a function."""
            super().lower_normal_function(fndesc)
            leave_out_unused(self.function)
            calls.note(self.function)

        def _find_singly_assigned_variable(self):
            super()._find_singly_assigned_variable()
            if not self._on_stack:
                assigned = (each for block in self.blocks.values() for each in block.find_insts(ir.Assign))
                times = Counter(each.target.name for each in assigned)
                self._singly_assigned_vars = {name for name, count in times.items() if count == 1}

        def storevar(self, value, name, argidx=None):
            """Write down that a variable has a value from here on."""
            if self._on_stack:
                super().storevar(value, name, argidx)
            elif name in self._singly_assigned_vars:
                self._blk_local_varmap[name] = value
            else:
                self.builder.store(value, self.getvar(name))

        def alloca_lltype(self, name, lltype, datamodel=None):
            """Make room for a variable on the stack."""
            if self._disable_sroa_like_opt:
                return super().alloca_lltype(name, lltype, datamodel)
            # Numba works out how large it is, for debuggers: it asks LLVM, and that takes long.
            return cgutils.alloca_once(self.builder, lltype, name=name)

        def lower_inst(self, inst):
            """Write down a statement."""
            if not (isinstance(inst, ir.SetItem | ir.StaticSetItem) and self._set(inst)):
                super().lower_inst(inst)

        def _set(self, inst):
            """Write down that an item of an array is set, if known here; return whether it is."""
            array, index = self.typeof(inst.target.name), self._index(inst, inst.target)
            number = isinstance(self.typeof(inst.value.name), types.Number | types.Boolean)
            if index is None or len(index) < array.ndim or not number:
                return False
            value = self._cast_var(inst.value, array.dtype)
            at = arrays.address(self.context, self.builder, self.loadvar(inst.target.name), index)
            self.context.pack_value(self.builder, array.dtype, value, at)
            return True

        def lower_assign(self, ty, inst):
            """Write down what a variable is assigned."""
            if isinstance(ty, types.Dispatcher):
                # A function is known by its type: by itself numba would have its address as well, and keep that.
                return self.context.get_dummy_value()
            return super().lower_assign(ty, inst)

        def lower_expr(self, resty, expr):
            """Write down an expression."""
            for write in (self._item, self._loop):
                if (value := write(resty, expr)) is not None:
                    return value
            return super().lower_expr(resty, expr)

        def _item(self, resty, expr):
            """Write down what is got of an array, if known here."""
            if expr.op == "getattr" and expr.attr == "shape" and isinstance(self.typeof(expr.value.name), types.Array):
                return self.builder.extract_value(self.loadvar(expr.value.name), arrays.SHAPE)
            index = self._index(expr, expr.value) if expr.op in ("getitem", "static_getitem") else None
            if index is None:
                return None
            type_, array = self.typeof(expr.value.name), self.loadvar(expr.value.name)
            if len(index) < type_.ndim:
                row = arrays.row(self.context, self.builder, resty, array, index)
                return impl_ret_borrowed(self.context, self.builder, resty, row)
            at = arrays.address(self.context, self.builder, array, index)
            item = self.context.unpack_value(self.builder, type_.dtype, at)
            return self.context.cast(self.builder, item, type_.dtype, resty)

        def _index(self, inst, array):
            """Return the index of an array axis by axis, if known here."""
            index = inst.index
            kind = self.typeof(index.name) if isinstance(index, ir.Var) else index
            if not arrays.is_plain(self.typeof(array.name), kind):
                return None
            if kind is index:
                return arrays.constants(index)
            return arrays.axes(self.context, self.builder, kind, self.loadvar(index.name))

        def _loop(self, resty, expr):
            """Write down what a loop over a range is made of, if known here."""
            if expr.op not in ("getiter", "iternext", "pair_first", "pair_second"):
                return None
            type_, value = self.typeof(expr.value.name), self.loadvar(expr.value.name)
            if expr.op == "getiter" and isinstance(type_, types.RangeType) and loops.counts_by_one(value):
                return loops.start(self.context, self.builder, resty, value)
            if expr.op == "iternext" and isinstance(type_, types.RangeIteratorType):
                return loops.advance(self.context, self.builder, resty, value)
            if isinstance(type_, types.Pair) and isinstance(type_.first_type, types.Integer):
                return self.builder.extract_value(value, ("pair_first", "pair_second").index(expr.op))
            return None

        def lower_call(self, resty, expr):
            """Write down a call."""
            function, signature = self.typeof(expr.func.name), self.fndesc.calltypes[expr]
            if isinstance(function, types.Dispatcher):
                self._call_kernel(function.dispatcher, signature)
            if getattr(function, "typing_key", None) is range:
                numbers = self.fold_call_args(function, signature, expr.args, expr.vararg, expr.kws)
                return loops.range_of(self.context, self.builder, resty, numbers)
            if not expr.kws and plain.signature_of(function, signature.args) is not None:
                numbers = self.fold_call_args(function, signature, expr.args, expr.vararg, ())
                result = plain.call(self.builder, function, numbers)
                return self.context.cast(self.builder, result, signature.return_type, resty)
            return super().lower_call(resty, expr)

        def _call_kernel(self, called, signature):
            """Have what a kernel needs that is called by this one, and see that nobody has to let go of its result."""
            if not self.context.enable_nrt and holds_references(signature.return_type):
                name, made = self.func_ir.func_id.func_name, called.py_func.__name__
                raise TypeError(f"{name} makes no arrays, and can't take one that {made} makes: hand that room to fill")
            self.library._reload_init.update(called.overloads[signature.args].reload_init or ())

        def lower_binop(self, resty, expr, op):
            """Write down an operator between two values."""
            if op in (operator.pow, operator.ipow):
                return super().lower_binop(resty, expr, op)  # where numba asks whether the power is a constant
            # Numba would ask anew, up to four times, what it takes and returns.
            asked, signature = self.context.typing_context, self.fndesc.calltypes[expr]
            function = asked.resolve_value_type(op)
            found = Remembering(asked, self.context.enable_nrt).resolve_function_type(function, signature.args, {})
            values = [self._cast_var(*each) for each in zip((expr.lhs, expr.rhs), found.args, strict=True)]
            result = self.context.get_function(function, found)(self.builder, values)
            return self.context.cast(self.builder, result, found.return_type, resty)
