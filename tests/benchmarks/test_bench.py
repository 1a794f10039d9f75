"""`make bench` with nothing to measure: it needs no package but those that its target installs."""

import pytest

import benchmarks.__main__ as bench
from benchmarks import foundation


def test_the_versions_of_what_is_measured_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(foundation, "BENCHMARKS", ())
    bench.main()
    assert ", NumPy " in capsys.readouterr().out
