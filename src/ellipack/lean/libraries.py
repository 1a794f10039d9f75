"""What LLVM makes of kernels.

By itself numba makes a library of every function: it optimises it, makes machine code of it, and does both again with
all that call it. Here the parts of a kernel stay as they were written until they are linked into the kernel, and all
of it is optimised once.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Part = Whole = Any  # numba has no types for what follows
else:
    from llvmlite.binding import create_pass_builder, create_pipeline_tuning_options
    from numba.core import config
    from numba.core.codegen import JITCodeLibrary

    class Whole(JITCodeLibrary):
        """The code of what Python calls, with all that it is made of."""

        def _optimize_functions(self, ll_module):
            """Leave functions as they are until all are there."""
            ll_module.data_layout = self._codegen._data_layout

        def _optimize_final_module(self):
            tuning = create_pipeline_tuning_options(int(config.OPT))
            tuning.loop_vectorization, tuning.slp_vectorization = config.LOOP_VECTORIZE, config.SLP_VECTORIZE
            # Kernels are as fast without, and machine code takes a fifth less time to make.
            tuning.loop_unrolling = False
            builder = create_pass_builder(self._codegen._tm, tuning)
            passes = builder.getModulePassManager()
            passes.add_refprune_pass()
            passes.run(self._final_module, builder)

    class Part(Whole):
        """The code of a part of kernels as it was written."""

        def finalize(self):
            """Leave it as it is, with nothing linked to it."""
            self._finalized = True
