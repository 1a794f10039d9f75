"""`make bench` with nothing to measure: it needs no package but those that its target installs."""

import pytest

from benchmarks import speed


def test_the_versions_of_what_is_measured_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speed, "BENCHMARKS", ())
    speed.main()
    assert ", NumPy " in capsys.readouterr().out
