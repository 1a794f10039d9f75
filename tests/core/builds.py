"""Both builds of the compiled core, as far as this processor runs them."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from ellipack._cpu import supports_x86_64_v3

FOR_NEW_PROCESSORS = supports_x86_64_v3() and find_spec("ellipack._core_x86_64_v3") is not None
NAMES = ["_core_baseline", "_core_x86_64_v3"] if FOR_NEW_PROCESSORS else ["_core_baseline"]
modules = [import_module(f"ellipack.{name}") for name in NAMES]
builds = pytest.mark.parametrize("core", modules, ids=NAMES)
"""A test that holds each build to the last bit of a reference shows that builds agree."""

Core = Any
