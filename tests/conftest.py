"""How hypothesis runs here: the same examples every time, and no deadline.

And the command's door, which is opened by the first test that goes through it.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.door import Door

settings.register_profile(
    "ellipack", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ellipack"), max_examples=5)
settings.load_profile("ellipack")


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Return what runs commands."""
    opened = Door(tmp_path_factory.mktemp("door"))
    yield opened
    opened.close()
