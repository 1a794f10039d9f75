"""The compiled core, in the build that suits this processor.

Every build gives the same bits. ``ELLIPACK_CPU=baseline`` asks for the one that runs on all processors.
"""

import os

from ellipack._cpu import supports_x86_64_v3

if supports_x86_64_v3() and os.environ.get("ELLIPACK_CPU") != "baseline":
    from ellipack._core_x86_64_v3 import *  # noqa: F403
else:
    from ellipack._core_baseline import *  # noqa: F403
