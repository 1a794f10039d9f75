"""Passes of numba that go a shorter way."""

import ctypes
from typing import TYPE_CHECKING, Any

from ellipack.lean import calls, sharing
from ellipack.lean.inference import holds_references
from ellipack.lean.libraries import Part, Whole
from ellipack.lean.lowering import Lowering

if TYPE_CHECKING:
    Assignments = PartLowering = SharedLowering = SingleAssignment = WholeLowering = Any  # numba has no types for these
else:
    from numba import _dynfunc, types
    from numba.core.compiler_machinery import register_pass
    from numba.core.ir_utils import build_definitions
    from numba.core.ssa import reconstruct_ssa
    from numba.core.typed_passes import NativeLowering, PreLowerStripPhis
    from numba.core.untyped_passes import ReconstructSSA

    @register_pass(mutates_CFG=False, analysis_only=False)
    class SingleAssignment(ReconstructSSA):
        """Gives a variable a name for each of its assignments, and does not ask again where each is needed."""

        _name = "single_assignment"

        def run_pass(self, state):
            """Run it on a function."""
            state.func_ir = reconstruct_ssa(state.func_ir)
            self._patch_locals(state)
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class Assignments(PreLowerStripPhis):
        """Makes assignments again of what merges such names, and does not ask again where each is needed."""

        _name = "assignments"

        def run_pass(self, state):
            """Run it on a function."""
            state.func_ir = self._strip_phi_nodes(state.func_ir)
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
            return True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class WholeLowering(NativeLowering):
        """Writes down what Python calls, and has it compiled."""

        _name = "whole_lowering"
        lowering_class = Lowering

        def run_pass(self, state):
            """Run it on a function."""
            state.library = _whole(state)
            return super().run_pass(state)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class PartLowering(NativeLowering):
        """Writes down a part of kernels, and makes nothing of it that could be called from Python."""

        _name = "part_lowering"
        lowering_class = Lowering

        def run_pass(self, state):
            """Run it on a function."""
            name = state.func_id.func_name
            if holds_references(state.return_type):
                # Nobody would let go of it: what calls a part may not count references.
                raise TypeError(f"{name} is a part of kernels: it must not return an array")
            if isinstance(state.return_type, types.Optional):
                raise TypeError(f"{name} is a part of kernels: it must return a value, or never any")
            state.library = self._library(state)
            # Options, but not declared as such: for callers that differ in them, numba compiles its own functions anew.
            state.flags.no_compile = state.flags.no_cpython_wrapper = True
            super().run_pass(state)
            lowered, called = state.cr, self._caller(state)
            module = lowered.fndesc.lookup_module()
            standing_in = _dynfunc.make_function(module, name, name, _NOT_CALLABLE, lowered.env, called.libs)
            state.targetctx._defns[standing_in].append(called, called.signature)
            state.cr = lowered._replace(cfunc=standing_in)
            return True

        def _library(self, state):
            return Part(state.targetctx.codegen(), state.func_id.func_qualname)

        def _caller(self, state):
            # Who calls it links not only it, but all that it calls in turn.
            libraries = dict.fromkeys([state.library, *state.library._linking_libraries])
            return calls.caller(state.cr.fndesc, tuple(libraries))

    @register_pass(mutates_CFG=True, analysis_only=False)
    class SharedLowering(PartLowering):
        """Writes down a part of kernels, and makes machine code of it for all of them."""

        _name = "shared_lowering"

        def _library(self, state):
            state.targetctx.mangler = sharing.unique_names()  # of this function's own context
            return _whole(state)

        def _caller(self, state):
            described = state.cr.fndesc
            return calls.caller(described, (), sharing.share(described.mangled_name, state.library))

    def _whole(state):
        library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        return library

    # What Python calls with a part of kernels, if told to call that: it finds out, and says, that it can't be called.
    _NOT_CALLABLE = ctypes.cast(ctypes.pythonapi.PyObject_Call, ctypes.c_void_p).value
