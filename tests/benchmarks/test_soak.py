"""The soak, for a second."""

import numpy as np
import pytest

from benchmarks import soak
from benchmarks.soak import Calls, Drifting, Soaked, growth, resident, verdicts


def test_it_says_that_memory_is_flat_and_predictions_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--minutes", "0.02", "--max-centers", "64", "--threads", "1"])
    shown = capsys.readouterr().out
    assert "too short to tell" in shown
    assert "growth of memory" in shown
    assert " 0 of " in shown


def test_growth_is_told_from_noise() -> None:
    seconds, rng = np.arange(0, 600, 0.5), np.random.default_rng(0)
    flat = 3e8 + 1e4 * rng.normal(size=len(seconds))
    percent, error = growth(list(zip(seconds, flat, strict=True)))
    assert abs(percent) < error < 1
    percent, error = growth(list(zip(seconds, flat + 3e8 * 0.05 * seconds / 3600, strict=True)))
    assert percent == pytest.approx(5, abs=0.1)
    assert growth([]) == (0.0, np.inf)


def test_what_is_wrong_is_seen() -> None:
    soaked = Soaked([Calls()], full=0.0)
    soaked.calls[0].add(np.array([1.0, np.nan]), 1e-3)
    soaked.sizes += [(t, 3e8 * (1 + 0.1 * t / 3600)) for t in np.arange(100.0).tolist()]
    assert [each.reached for each in verdicts(soaked)] == [False, False]


def test_the_stream_drifts_and_memory_is_taken() -> None:
    stream = Drifting()
    sizes = [np.abs(stream.draw(100)[1]).max() for _ in range(2000)]
    assert max(sizes) / min(sizes) > 1e3
    assert resident() > 2**20
