"""The builds of the compiled core that this processor supports."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from ellipack._cpu import supports_x86_64_v3

HAS_X86_64_V3 = supports_x86_64_v3() and find_spec("ellipack._core_x86_64_v3") is not None
NAMES = ["_core_baseline", "_core_x86_64_v3"] if HAS_X86_64_V3 else ["_core_baseline"]
modules = [import_module(f"ellipack.{name}") for name in NAMES]
builds = pytest.mark.parametrize("core", modules, ids=NAMES)
"""Runs a test on each build. Builds that are bitwise equal to one reference agree with each other."""

Core = Any
