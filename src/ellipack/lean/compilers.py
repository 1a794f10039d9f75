"""The way of a kernel, and of a part of kernels, through numba."""

import ctypes
import gc
from typing import TYPE_CHECKING, Any

from ellipack.lean import calls
from ellipack.lean.inference import Remembering
from ellipack.lean.libraries import Part, Whole
from ellipack.lean.lowering import Lowering

if TYPE_CHECKING:
    PartCompiler = WholeCompiler = Any  # numba has no types for what follows
else:
    from numba import _dynfunc
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.ir_utils import build_definitions
    from numba.core.ssa import reconstruct_ssa
    from numba.core.typed_passes import (
        IRLegalization,
        NativeLowering,
        NoPythonBackend,
        NopythonTypeInference,
        PreLowerStripPhis,
    )
    from numba.core.untyped_passes import FixupArgs, GenericRewrites, ReconstructSSA, TranslateByteCode

    @register_pass(mutates_CFG=False, analysis_only=False)
    class _SingleAssignment(ReconstructSSA):
        """Gives a variable a name for each of its assignments, and does not ask again where each is needed."""

        _name = "single_assignment"

        def run_pass(self, state):
            state.func_ir = reconstruct_ssa(state.func_ir)
            self._patch_locals(state)
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _Assignments(PreLowerStripPhis):
        """Makes assignments again of what merges such names, and does not ask again where each is needed."""

        _name = "assignments"

        def run_pass(self, state):
            state.func_ir = self._strip_phi_nodes(state.func_ir)
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _WholeLowering(NativeLowering):
        """Writes down what Python calls, and has it compiled."""

        _name = "whole_lowering"
        lowering_class = Lowering

        def run_pass(self, state):
            state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()
            return super().run_pass(state)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class _PartLowering(NativeLowering):
        """Writes down a part of kernels, and makes nothing of it that could be called from Python."""

        _name = "part_lowering"
        lowering_class = Lowering

        def run_pass(self, state):
            name = state.func_id.func_name
            if state.targetctx.data_model_manager[state.return_type].contains_nrt_meminfo():
                # Nobody would let go of it: what calls a part may not count references.
                raise TypeError(f"{name} is a part of kernels: it must not return an array")
            state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
            # Options, but not declared as such: for callers that differ in them, numba compiles its own functions anew.
            state.flags.no_compile = state.flags.no_cpython_wrapper = True
            super().run_pass(state)
            # Who calls it links not only it, but all that it calls in turn.
            lowered, keep = state.cr, tuple(dict.fromkeys([state.library, *state.library._linking_libraries]))
            module = lowered.fndesc.lookup_module()
            standing_in = _dynfunc.make_function(module, name, name, _NOT_CALLABLE, lowered.env, keep)
            called = calls.caller(lowered.fndesc, keep)
            state.targetctx._defns[standing_in].append(called, called.signature)
            state.cr = lowered._replace(cfunc=standing_in)
            return True

    class WholeCompiler(CompilerBase):
        """Compiles what Python calls, with all that it is made of."""

        _lowering = _WholeLowering

        def define_pipelines(self):
            """Return the passes that a kernel needs: not those for closures, comprehensions and array expressions."""
            # Where references are counted, numba has to say where variables end.
            ending = (IRLegalization,) if self.state.flags.nrt else ()
            passes = PassManager("kernel")
            untyped = TranslateByteCode, FixupArgs, GenericRewrites, _SingleAssignment
            for each in (*untyped, NopythonTypeInference, _Assignments, *ending, self._lowering, NoPythonBackend):
                passes.add_pass(each, each._name)
            passes.finalize()
            return [passes]

        def compile_extra(self, func):
            """Compile a function, and don't look through numba's many objects for garbage meanwhile: there is none."""
            self.state.typingctx = Remembering(self.state.typingctx, self.state.flags.nrt)
            collecting = gc.isenabled()
            gc.disable()
            try:
                return super().compile_extra(func)
            finally:
                if collecting:
                    gc.enable()

    class PartCompiler(WholeCompiler):
        """Compiles what only kernels call."""

        _lowering = _PartLowering

    # What Python calls with a part of kernels, if told to call that: it finds out, and says, that it can't be called.
    _NOT_CALLABLE = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
