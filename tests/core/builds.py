"""The builds of the compiled core that this processor supports."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from ellipack._cpu import supports_x86_64_v3, supports_x86_64_v4

_SUPPORTED = {
    "_core_baseline": True,
    "_core_x86_64_v3": supports_x86_64_v3(),
    "_core_x86_64_v4": supports_x86_64_v4(),
}
NAMES = [name for name, supported in _SUPPORTED.items() if supported and find_spec(f"ellipack.{name}") is not None]
modules = [import_module(f"ellipack.{name}") for name in NAMES]
builds = pytest.mark.parametrize("core", modules, ids=NAMES)
"""Runs a test on each build. Builds that are bitwise equal to one reference agree with each other."""

Core = Any
