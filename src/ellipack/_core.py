"""The compiled core, in the build that this processor supports.

All builds give the same results, bit for bit. Set ``ELLIPACK_CPU=baseline`` to use the build that runs on all
processors.
"""

import os

from ellipack._cpu import supports_x86_64_v3

if supports_x86_64_v3() and os.environ.get("ELLIPACK_CPU") != "baseline":
    from ellipack._core_x86_64_v3 import *  # noqa: F403
else:
    from ellipack._core_baseline import *  # noqa: F403

# A pickle stores the module of a class. With this module, another processor can load it with another build.
for _value in tuple(globals().values()):
    if isinstance(_value, type):
        _value.__module__ = __name__
