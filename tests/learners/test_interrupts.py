"""An interrupt at any line leaves the state of a completed round, from which learning can continue."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import pytest

from ellipack.learners import packing, phased, rescaled
from ellipack.learners.metric import call_sizes, learner, serialization
from ellipack.learners.metric.config import MetricConfig
from ellipack.learners.metric.initial_state import LearnerSize, initial_state
from ellipack.learners.metric.state import MetricState
from ellipack.learners.packing import PackingState
from ellipack.learners.phased import PhasedState
from ellipack.learners.rescaled import RescaledState
from ellipack.metric import GopEstimator, LocalSlopes, Metric
from ellipack.validation import Floats
from tests.interrupts import interrupted

State = PackingState | PhasedState | RescaledState[Any] | MetricState
Learn = Callable[[Any, Floats, Floats], Floats]

slopes = partial(phased.learn, alpha=0.5, estimator=GopEstimator(LocalSlopes(5)))


def learn_rescaled(state: RescaledState[PackingState], X: Floats, y: Floats) -> Floats:
    return rescaled.learn(state, X, y, packing.learn, packing.predict)


def small_metric_state() -> MetricState:
    """Return a state that evicts centers at 16."""
    return initial_state(
        2, LearnerSize(1, 4, 16), 0, MetricConfig(powers=(0.5,), ridges=(0.01,), validation_points=8, pool=8)
    )


FIRST, ROWS = 9, 17
"""Rows that are learned before those with interrupts, and all rows.

In between, phases end and centers are evicted. The rescaled learner, which has no phases, sees fewer rows.
"""

LEARNERS: dict[str, tuple[Callable[[], State], Learn, float]] = {
    "packing": (lambda: packing.init(Metric.identity(2)), packing.learn, 0.3),
    "phased": (lambda: phased.init(2), slopes, 0.3),
    "metric": (small_metric_state, learner.learn, 5.0),
    "rescaled": (lambda: rescaled.init(packing.init(Metric.identity(2)), 2), learn_rescaled, 50.0),
}


def bits(state: State) -> list[bytes]:
    if isinstance(state, MetricState):
        archive = serialization.to_archive(state)
        return [
            repr(archive.facts).encode(),
            *(array.tobytes() for _, array in sorted(archive.arrays_by_full_name().items())),
        ]
    if isinstance(state, RescaledState):
        return [*bits(state.inner), *(each.tobytes() for each in (state.box.low, state.box.high, state.box.label))]
    if isinstance(state, PhasedState):
        parts = [state.rows, state.labels, *(phase.gop for phase in state.phases)]
        return [*bits(state.packing), *(each.tobytes() for each in parts)]
    *arrays, deferred = state.core.to_arrays()
    intervals = deferred.calibrated
    numbers = intervals.mean_error, intervals.labels, intervals.rounds, intervals.excess_misses
    calibration = *numbers, *intervals.widths, *intervals.scale_losses, *deferred.errors
    return [np.array(each).tobytes() for each in (*arrays, calibration, state.metric.matrix)]


@pytest.mark.parametrize("name", LEARNERS)
def test_interrupt_leaves_the_state_of_a_completed_round(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (packing, phased):
        monkeypatch.setattr(module, "_ROUNDS_PER_CALL", 3)
    monkeypatch.setattr(call_sizes, "_MAX_ROUNDS", 3)
    init, learn, scale = LEARNERS[name]
    rng = np.random.default_rng(0)
    rows = FIRST + 4 if name == "rescaled" else ROWS
    X, y = scale * rng.uniform(-1, 1, size=(rows, 2)), rng.random(rows)
    X[FIRST + 2 :] *= 3 if name == "rescaled" else 1  # outside of the ranges
    fresh, first, states = init(), init(), {}
    learn(first, X[:FIRST], y[:FIRST])
    for t in range(rows):
        learn(fresh, X[t : t + 1], y[t : t + 1])
        states[t + 1] = bits(fresh)
    line, seen = 0, set()
    while True:
        state = deepcopy(first)
        stopped = interrupted(line, ("/ellipack/learners/",), learn, state, X[FIRST:], y[FIRST:])
        clock = state.inner.clock if isinstance(state, RescaledState) else state.clock
        assert bits(state) == states[clock]
        seen.add(clock)
        if clock < rows:
            learn(state, X[clock:], y[clock:])
        assert bits(state) == states[rows]
        if not stopped:
            break
        line += 1
    assert len(seen) >= 2
    assert line > 10
