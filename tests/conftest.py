"""Settings of hypothesis, and the fixture that runs commands.

Hypothesis uses the same few examples in every run. ``make fuzz`` draws others, and many more.
"""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.cli.runner import CliRunner
from tests.fuzz.strategies import FUZZ_FACTOR, n_examples

settings.register_profile(
    "ellipack",
    deadline=None,
    derandomize=FUZZ_FACTOR == 1,
    max_examples=n_examples(20),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ellipack"), max_examples=5)
settings.load_profile("ellipack")


def pytest_collection_finish() -> None:
    """Let the garbage collector skip everything that was imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliRunner]:
    """Return a runner of commands, which all tests share."""
    runner = CliRunner(tmp_path_factory.mktemp("cli"))
    yield runner
    runner.close()
