"""A soak of two seconds."""

import numpy as np
import pytest

from benchmarks import soak
from benchmarks.measurement import memory_bytes
from benchmarks.soak import CallStatistics, DriftingStream, SoakState, batches, exit_code, hourly_growth, targets
from ellipack import MetricRegressor


def test_a_short_run_is_inconclusive_but_checks_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        soak.main(["--minutes", "0.03", "--max-centers", "64", "--threads", "1"])
    shown = capsys.readouterr().out
    assert exited.value.code == 2
    assert "too short" in shown
    assert "growth of memory" in shown
    assert "unknown" in shown
    not_finite, unknown = (
        shown.split(f"predictions {what} ")[1].split("\n")[0] for what in ("that are not finite", "from no known state")
    )
    for line in (not_finite, unknown):
        assert " 0 of " in line
        assert " 0 of 0 " not in line
        assert "reached" in line


def test_growth_is_distinguished_from_noise() -> None:
    seconds, rng = np.arange(0, 600, 0.5), np.random.default_rng(0)
    flat = 3e8 + 1e4 * rng.normal(size=len(seconds))
    percent, error = hourly_growth(list(zip(seconds, flat, strict=True)))
    assert abs(percent) < error < 1
    percent, error = hourly_growth(list(zip(seconds, flat + 3e8 * 0.05 * seconds / 3600, strict=True)))
    assert percent == pytest.approx(5, abs=0.1)
    assert hourly_growth([]) == (0.0, np.inf)


def state_after(seconds: float, per_hour: float) -> SoakState:
    """Return the state of a run in which memory grew by so much and nothing else is wrong."""
    state = SoakState([CallStatistics()], full_at=0.0)
    state.sizes += [(t, 3e8 * (1 + per_hour * t / 3600)) for t in np.arange(seconds).tolist()]
    state.calls[0].checked = 1
    return state


def test_failures_are_detected() -> None:
    state = state_after(100, 0.1)
    state.calls[0].add(np.array([1.0, np.nan]), 1e-3)
    state.calls[0].inconsistent = 1
    assert [each.reached for each in targets(state)] == [False, False, False]
    assert exit_code(targets(state)) == 1
    assert exit_code(targets(state_after(100, 0.0))) == 0


def test_unknown_outcomes() -> None:
    short = state_after(4, 0.0)
    assert [each.reached for each in targets(short)] == [None, True, True]
    assert exit_code(targets(short)) == 2
    short.calls[0].inconsistent = 1
    assert exit_code(targets(short)) == 1
    unchecked = state_after(100, 0.0)
    unchecked.calls[0].checked = 0
    assert exit_code(targets(unchecked)) == 2
    assert "unknown" in targets(unchecked)[-1].status


def test_known_states_are_distinguished_from_others() -> None:
    stream, state = DriftingStream(), SoakState([CallStatistics()])
    learner = MetricRegressor(64, n_jobs=1).fit(*stream.draw(128))
    pending = batches(learner, stream, state, 0.0)
    X, y = next(pending)
    known_states = state.known_states
    assert known_states is not None
    assert len(known_states.states) > 900
    for row, label in zip(X, y, strict=True):
        state.calls[0].check(known_states, learner.predict(known_states.probes))
        learner.partial_fit(row[np.newaxis], [label])
    assert (state.calls[0].checked, state.calls[0].inconsistent) == (len(y), 0)
    before, after = (
        learner.predict(known_states.probes),
        learner.partial_fit(*next(pending)).predict(known_states.probes),
    )
    state.calls[0].check(known_states, np.r_[before[:4], after[4:]])
    assert state.calls[0].inconsistent == 1
    while state.known_states is known_states:
        last = learner.predict(known_states.probes)
        learner.partial_fit(*next(pending))
    assert known_states.contains(last)
    assert not known_states.contains(learner.predict(known_states.probes))
    assert state.known_states is None


def test_the_stream_drifts_and_memory_is_measured() -> None:
    stream = DriftingStream()
    sizes = [np.abs(stream.draw(100)[1]).max() for _ in range(2000)]
    assert max(sizes) / min(sizes) > 1e3
    assert memory_bytes("VmRSS") > 2**20
