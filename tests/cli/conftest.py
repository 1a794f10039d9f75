from collections.abc import Iterator

import pytest

from tests.cli.door import Door


@pytest.fixture(scope="session")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """Return what runs commands."""
    opened = Door(tmp_path_factory.mktemp("door"))
    yield opened
    opened.close()
