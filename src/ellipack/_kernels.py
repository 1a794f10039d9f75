"""How every kernel is compiled: free of the interpreter's lock, and kept on disk.

``fastmath`` stays off: it would let the compiler reorder sums, and the promise that the same rows give the same
bits, however they are batched, would be gone.

What a first call waits for is compiling, so no more is done than has to be. By itself numba would make a library of
every function: optimise it, make machine code of it, and do both again with all that call it. It would count
references to each array of each tuple that is handed on, which is half of the code then. It would find out anew, at
every operator, what that does. And while it works, the garbage collector would look through its many objects again and
again, for nothing.
"""

import ctypes
import gc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import numba

_Function = TypeVar("_Function", bound=Callable[..., object])

_MAKERS = {"array", "copy", "empty", "full", "ones", "zeros"}
"""What makes arrays: a kernel that calls none of these need not count references."""


def kernel(function: _Function) -> _Function:
    """Compile a loop over flat arrays; its type, for the checker, stays what it says."""
    return _compiled(function, _WholeCompiler, cache=True)


def subkernel(function: _Function) -> _Function:
    """Compile a part of kernels that only they call: no way in from Python, nothing of its own on disk.

    It may make arrays to work with but must not return any.
    """
    return _compiled(function, _PartCompiler)


def inlined(function: _Function) -> _Function:
    """Compile a part of kernels as if it were written out in them, which saves handing it what it works on."""
    return _compiled(function, _PartCompiler, forceinline=True)


def _compiled(function: _Function, compiler: type, **options: bool) -> _Function:
    making = not _MAKERS.isdisjoint(cast(Any, function).__code__.co_names)
    # Options that numba's own types leave out.
    compile_ = cast(Any, numba.njit)(nogil=True, no_cfunc_wrapper=True, _nrt=making, pipeline_class=compiler, **options)
    compiled = compile_(function)
    if compiled is not function:
        _take_whole_numbers_alike(compiled)
    return cast(_Function, compiled)


if TYPE_CHECKING:
    _WholeCompiler = _PartCompiler = object  # numba has no types for what follows

    def _take_whole_numbers_alike(compiled: Any) -> None: ...

else:
    from llvmlite.binding import create_new_function_pass_manager
    from numba import _dynfunc, types
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering

    def _take_whole_numbers_alike(compiled):
        """Let kernels call a function with constants and with 32 bits: numba would compile it anew for each."""
        template = compiled.get_call_template

        def get_call_template(args, kws):
            kinds = [types.unliteral(arg) for arg in args]
            return template([types.int64 if kind == types.int32 else kind for kind in kinds], kws)

        compiled.get_call_template = get_call_template

    class _Remembering:
        """Numba's context of types, with a memory for what it finds out about its own functions, such as operators.

        By itself it goes through all that is known of an operator, for lists, texts and sets, again and again.
        """

        _found: ClassVar[dict[Any, Any]] = {}

        def __init__(self, context, counting):
            self._context, self._counting = context, counting

        def __getattr__(self, name):
            return getattr(self._context, name)

        def resolve_function_type(self, function, args, kws):
            if type(function) is not types.Function or kws:
                return self._context.resolve_function_type(function, args, kws)
            return self._recall(lambda: self._context.resolve_function_type(function, args, kws), function, *args)

        def resolve_setitem(self, *args):
            return self._recall(lambda: self._context.resolve_setitem(*args), "setitem", *args)

        def _recall(self, find, *asked):
            """Return what was found when the same was asked before, or find it."""
            key = self._counting, *asked
            if self._found.get(key) is None:
                self._found[key] = find()
            return self._found[key]

    class _WholeCompiler(CompilerBase):
        """Compiles what Python calls, with all that it is made of."""

        def define_pipelines(self):
            return [DefaultPassBuilder.define_nopython_pipeline(self.state)]

        def compile_extra(self, func):
            """Compile a function, and don't look for garbage meanwhile."""
            self.state.typingctx = _Remembering(self.state.typingctx, self.state.flags.nrt)
            collecting = gc.isenabled()
            gc.disable()
            try:
                return super().compile_extra(func)
            finally:
                if collecting:
                    gc.enable()

    class _PartCompiler(_WholeCompiler):
        """Compiles what only kernels call."""

        def define_pipelines(self):
            (passes,) = super().define_pipelines()
            passes.add_pass_after(_PartLowering, NativeLowering)
            passes.passes = [each for each in passes.passes if each[0] is not NativeLowering]
            passes.finalize()
            return [passes]

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _PartLowering(NativeLowering):
        """Writes down a part of kernels, and makes nothing of it that could be called from Python."""

        _name = "part_lowering"

        def run_pass(self, state):
            name = state.func_id.func_name
            if state.targetctx.data_model_manager[state.return_type].contains_nrt_meminfo():
                # Nobody would let go of it: what calls a part may not count references.
                raise TypeError(f"{name} is a part of kernels: it must not return an array")
            state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            # Options, but not declared as such: for callers that differ in them, numba compiles its own functions anew.
            state.flags.no_compile = state.flags.no_cpython_wrapper = True
            super().run_pass(state)
            # Who calls it links not only it, but all that it calls in turn.
            lowered, keep = state.cr, tuple(dict.fromkeys([state.library, *state.library._linking_libraries]))
            module = lowered.fndesc.lookup_module()
            standing_in = _dynfunc.make_function(module, name, name, _NOT_CALLABLE, lowered.env, keep)
            state.targetctx.insert_user_function(standing_in, lowered.fndesc, keep)
            state.cr = lowered._replace(cfunc=standing_in)
            return True

    class _PartLibrary(JITCodeLibrary):
        """The code of a part of kernels as it was written, to be optimised and made executable with each of them."""

        def _optimize_functions(self, ll_module):
            """Make the code short, so that there is less to link; all else is done when it is optimised."""
            ll_module.data_layout = self._codegen._data_layout
            builder = self._codegen._pass_builder()
            for function in ll_module.functions:
                if not function.is_declaration:
                    passes = create_new_function_pass_manager()
                    passes.add_sroa_pass()
                    passes.add_instruction_combine_pass()
                    passes.add_simplify_cfg_pass()
                    passes.run(function, builder)

        def finalize(self):
            """Leave the code as it is, with nothing linked to it."""
            self._finalize_dynamic_globals()
            self._finalized = True

    # What Python calls with a part of kernels, if told to call that: it finds out, and says, that it can't be called.
    _NOT_CALLABLE = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
