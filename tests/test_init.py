import pytest

import ellipack


@pytest.mark.parametrize("name", ellipack.__all__)
def test_public_names_are_imported_on_first_use(name: str) -> None:
    assert getattr(ellipack, name) is getattr(ellipack, name)
    assert name in dir(ellipack)


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="module 'ellipack' has no attribute 'Regressor'"):
        ellipack.Regressor  # noqa: B018


def test_the_package_has_a_version() -> None:
    assert ellipack.__version__
