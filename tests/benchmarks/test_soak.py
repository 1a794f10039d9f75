"""The soak, for a second."""

import numpy as np
import pytest

from benchmarks import soak
from benchmarks.soak import Calls, Drifting, Soaked, batches, exit_code, growth, resident, verdicts
from ellipack import MetricRegressor


def test_it_says_that_it_was_too_short_and_predictions_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        soak.main(["--minutes", "0.03", "--max-centers", "64", "--threads", "1"])
    shown = capsys.readouterr().out
    assert left.value.code == 2
    assert "too short to tell" in shown
    assert "growth of memory" in shown
    assert "unknown" in shown
    no_numbers, no_states = (shown.split(f"predictions {what} ")[1].split("\n")[0] for what in ("that are", "from no"))
    for told in (no_numbers, no_states):
        assert " 0 of " in told
        assert " 0 of 0 " not in told
        assert "reached" in told


def test_growth_is_told_from_noise() -> None:
    seconds, rng = np.arange(0, 600, 0.5), np.random.default_rng(0)
    flat = 3e8 + 1e4 * rng.normal(size=len(seconds))
    percent, error = growth(list(zip(seconds, flat, strict=True)))
    assert abs(percent) < error < 1
    percent, error = growth(list(zip(seconds, flat + 3e8 * 0.05 * seconds / 3600, strict=True)))
    assert percent == pytest.approx(5, abs=0.1)
    assert growth([]) == (0.0, np.inf)


def soaked_for(seconds: float, per_hour: float) -> Soaked:
    """Return what was seen of a learner whose memory grew by so much, if nothing else was wrong."""
    soaked = Soaked([Calls()], full=0.0)
    soaked.sizes += [(t, 3e8 * (1 + per_hour * t / 3600)) for t in np.arange(seconds).tolist()]
    soaked.calls[0].looks = 1
    return soaked


def test_what_is_wrong_is_seen() -> None:
    soaked = soaked_for(100, 0.1)
    soaked.calls[0].add(np.array([1.0, np.nan]), 1e-3)
    soaked.calls[0].torn = 1
    assert [each.reached for each in verdicts(soaked)] == [False, False, False]
    assert exit_code(verdicts(soaked)) == 1
    assert exit_code(verdicts(soaked_for(100, 0.0))) == 0


def test_what_can_not_be_told_is_not_reached() -> None:
    short = soaked_for(4, 0.0)
    assert [each.reached for each in verdicts(short)] == [None, True, True]
    assert exit_code(verdicts(short)) == 2
    short.calls[0].torn = 1
    assert exit_code(verdicts(short)) == 1
    nobody_looked = soaked_for(100, 0.0)
    nobody_looked.calls[0].looks = 0
    assert exit_code(verdicts(nobody_looked)) == 2
    assert "unknown" in verdicts(nobody_looked)[-1].word


def test_states_that_there_were_are_told_from_others() -> None:
    stream, soaked = Drifting(), Soaked([Calls()])
    learner = MetricRegressor(64, n_jobs=1).fit(*stream.draw(128))
    played = batches(learner, stream, soaked, 0.0)
    X, y = next(played)
    stretch = soaked.stretch
    assert stretch is not None
    assert len(stretch.states) > 900
    for row, label in zip(X, y, strict=True):
        soaked.calls[0].look(stretch, learner.predict(stretch.probes))
        learner.partial_fit(row[np.newaxis], [label])
    assert (soaked.calls[0].looks, soaked.calls[0].torn) == (len(y), 0)
    before, after = learner.predict(stretch.probes), learner.partial_fit(*next(played)).predict(stretch.probes)
    soaked.calls[0].look(stretch, np.r_[before[:4], after[4:]])
    assert soaked.calls[0].torn == 1
    while soaked.stretch is stretch:
        last = learner.predict(stretch.probes)
        learner.partial_fit(*next(played))
    assert stretch.has(last)
    assert not stretch.has(learner.predict(stretch.probes))
    assert soaked.stretch is None


def test_the_stream_drifts_and_memory_is_taken() -> None:
    stream = Drifting()
    sizes = [np.abs(stream.draw(100)[1]).max() for _ in range(2000)]
    assert max(sizes) / min(sizes) > 1e3
    assert resident() > 2**20
