"""The compiled core, in the build that suits this processor.

Every build gives the same bits. ``ELLIPACK_CPU=baseline`` asks for the one that runs on all processors.
"""

import os

from ellipack._cpu import supports_x86_64_v3

if supports_x86_64_v3() and os.environ.get("ELLIPACK_CPU") != "baseline":
    from ellipack._core_x86_64_v3 import *  # noqa: F403
else:
    from ellipack._core_baseline import *  # noqa: F403

# A pickle names the class that it restores: by this module, so that any build can.
for _each in list(globals().values()):
    if isinstance(_each, type):
        _each.__module__ = __name__

for _value in tuple(globals().values()):
    if isinstance(_value, type):
        _value.__module__ = __name__  # pickles name this module, which chooses a build, and not the build
