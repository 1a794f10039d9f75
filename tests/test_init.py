import pytest

import ellipack


@pytest.mark.parametrize("name", ellipack.__all__)
def test_every_name_is_there_when_it_is_asked_for(name: str) -> None:
    assert getattr(ellipack, name) is getattr(ellipack, name)
    assert name in dir(ellipack)


def test_a_name_that_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="module 'ellipack' has no attribute 'Regressor'"):
        ellipack.Regressor  # noqa: B018
