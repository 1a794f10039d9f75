"""The compiled core, in the build that this processor supports.

All builds give the same results, bit for bit. Set ``ELLIPACK_CPU=x86-64-v3`` to use no AVX-512, or
``ELLIPACK_CPU=baseline`` to use the build that runs on all processors.
"""

import os

from ellipack._cpu import supports_x86_64_v3, supports_x86_64_v4

_highest = os.environ.get("ELLIPACK_CPU")
if supports_x86_64_v4() and _highest not in {"baseline", "x86-64-v3"}:
    from ellipack._core_x86_64_v4 import *  # noqa: F403
elif supports_x86_64_v3() and _highest != "baseline":
    from ellipack._core_x86_64_v3 import *  # noqa: F403
else:
    from ellipack._core_baseline import *  # noqa: F403

# A pickle stores the module of a class. With this module, another processor can load it with another build.
for _value in tuple(globals().values()):
    if isinstance(_value, type):
        _value.__module__ = __name__
