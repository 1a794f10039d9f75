"""How hypothesis runs here: the same examples every time, and no deadline.

And the runner of commands, which the first test that uses it starts.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.runner import CliRunner

settings.register_profile(
    "ellipack", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("ellipack"), max_examples=5)
settings.load_profile("ellipack")


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliRunner]:
    """Return what runs commands."""
    opened = CliRunner(tmp_path_factory.mktemp("cli"))
    yield opened
    opened.close()
