"""`make bench` without benchmarks needs only the packages that its target installs."""

import pytest

from benchmarks import speed


def test_versions_are_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(speed, "BENCHMARKS", ())
    speed.main()
    assert ", NumPy " in capsys.readouterr().out
