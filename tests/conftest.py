"""Settings of hypothesis, which uses the same examples in every run, and the fixture that runs commands."""

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
    """Return a runner of commands, which all tests share."""
    runner = CliRunner(tmp_path_factory.mktemp("cli"))
    yield runner
    runner.close()
