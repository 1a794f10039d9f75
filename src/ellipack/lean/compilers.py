"""The way of a kernel, and of a part of kernels, through numba."""

import gc
from typing import TYPE_CHECKING, Any

from ellipack.lean.inference import Remembering
from ellipack.lean.passes import Assignments, PartLowering, SharedLowering, SingleAssignment, WholeLowering
from ellipack.lean.refusals import refuse

if TYPE_CHECKING:
    PartCompiler = SharedCompiler = WholeCompiler = Any  # numba has no types for what follows
else:
    from numba.core.compiler import CompilerBase
    from numba.core.compiler_machinery import PassManager
    from numba.core.typed_passes import IRLegalization, NoPythonBackend, NopythonTypeInference
    from numba.core.untyped_passes import FixupArgs, GenericRewrites, TranslateByteCode

    class WholeCompiler(CompilerBase):
        """Compiles what Python calls, with all that it is made of."""

        _lowering = WholeLowering

        def define_pipelines(self):
            """Return the passes that a kernel needs: not those for closures, comprehensions and array expressions."""
            # Where references are counted, numba has to say where variables end.
            ending = (IRLegalization,) if self.state.flags.nrt else ()
            passes = PassManager("kernel")
            untyped = TranslateByteCode, FixupArgs, GenericRewrites, SingleAssignment
            for each in (*untyped, NopythonTypeInference, Assignments, *ending, self._lowering, NoPythonBackend):
                passes.add_pass(each, each._name)
            passes.finalize()
            return [passes]

        def compile_extra(self, func):
            """Compile a function, and don't look through numba's many objects for garbage meanwhile: there is none."""
            refuse(func)
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

        _lowering = PartLowering

    class SharedCompiler(WholeCompiler):
        """Compiles what only kernels call, once for all of them."""

        _lowering = SharedLowering
