"""How the practical learner's cost grows on a stream of 20 features and 2 directions, and what it learns there.

Features are in arbitrary units, from thousandths to thousands. Costs are of one thread.
"""

import copy
import itertools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rich.table import Table
from scipy.linalg import subspace_angles

from benchmarks.command_line import Verdict, at_most, figures
from benchmarks.timing import best_of
from ellipack import MetricRegressor
from ellipack._core import MetricCore, MetricSettings
from ellipack.learners.metric.eviction import without_redundant_centers
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.state import MetricState
from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

STREAM = LowRankStream(d=20, rank=2)
EARLY, LATE = 10_000, 100_000
SINGLE = 5_000
"""Rounds played in a call each, to see what a caller waits for."""

_TURNS = 5
_UNITS = 10.0 ** np.random.default_rng(0).uniform(-3, 3, STREAM.d)
_GROWTH, _DEGREES, _STALL = 1.5, 5.0, 0.5


class Costs(NamedTuple):
    """Microseconds a round about some round: where no phase ends, and with what its end costs."""

    plain: float
    amortised: float


class Grown(NamedTuple):
    """What was measured on the way to so many rounds."""

    rounds: tuple[int, int]
    costs: list[Costs]
    degrees: float
    latencies: tuple[Floats, Floats]
    """Seconds of calls of one row: the first ones, and those after all rounds, the first of which fills the memory."""
    n_centers: int
    phase_end: float
    repacking: float


def grow(views: int = 1, early: int = EARLY, late: int = LATE, single: int = SINGLE) -> Grown:
    """Let a learner grow from nothing and measure; its memory is full one round after `late`."""
    X, y = STREAM.draw(late + single)
    X = X * _UNITS
    learner = MetricRegressor(late + 1, views=views)
    first = learn_singly(MetricRegressor(late + 1, views=views), X[:single], y[:single])
    amortised = [_amortised(learner, X[:early], y[:early])]
    young = copy.deepcopy(learner)
    amortised.append(_amortised(learner, X[:late], y[:late]))
    costs = itertools.starmap(Costs, zip(_plain(young, learner, X, y), amortised, strict=True))
    phase_end, repacking = _least(_end_phase, learner.state_), _least(_evict, learner.state_)
    n_centers = learner.n_centers_
    last = learn_singly(learner, X[late:], y[late:])
    return Grown((early, late), list(costs), angle(young), (first, last), n_centers, phase_end, repacking)


def angle(learner: MetricRegressor) -> float:
    """Return the largest angle, in degrees, between the leading directions learned and those that matter.

    Directions are like gradients: where a feature is in other units, they are over these. Angles between them have a
    meaning in the stream's own coordinates, where no feature counts for more than another, so there they are taken.
    """
    learned = (learner.directions_[: STREAM.rank] * _UNITS).T
    return float(np.degrees(subspace_angles(learned, STREAM.subspace).max()))


def learn_singly(learner: MetricRegressor, X: Floats, y: Floats) -> Floats:
    """Learn from rows in a call each; return the seconds of each call."""
    seconds = np.empty(len(y))
    for t in range(len(y)):
        start = time.perf_counter()
        learner.partial_fit(X[t : t + 1], y[t : t + 1])
        seconds[t] = time.perf_counter() - start
    return seconds


def verdicts(grown: Grown) -> list[Verdict]:
    """Say of each target whether it was reached."""
    early, late = grown.costs
    rounds = f"cost of a round at {grown.rounds[1]:,} over that at {grown.rounds[0]:,}"
    full = f"at {grown.n_centers:,} centres, d = {STREAM.d}"
    return [
        at_most(f"{rounds}, no phase ending", late.plain / early.plain, _GROWTH),
        at_most(f"{rounds}, phase's end included", late.amortised / early.amortised, _GROWTH),
        at_most(f"angle to the true subspace at {grown.rounds[0]:,} rounds", grown.degrees, _DEGREES, " degrees"),
        at_most(f"end of a phase {full}", grown.phase_end, _STALL, " s"),
        at_most(f"re-packing {full}", grown.repacking, _STALL, " s"),
        at_most("longest of all single calls", max(map(np.max, grown.latencies)), _STALL, " s"),
    ]


def tables(grown: Grown) -> list[Table]:
    """Lay out what a round costs, and how long callers wait."""
    what = f"d = {STREAM.d}, {STREAM.rank} directions"
    costs = figures(f"Microseconds a round, {what}", ("at round", "no phase ending", "phase's end included"))
    for at, each in zip(grown.rounds, grown.costs, strict=True):
        costs.add_row(f"{at:,}", f"{each.plain:.0f}", f"{each.amortised:.0f}")
    heads = ("rounds", "median", "p99", "longest")
    waits = figures(f"Microseconds of a call of partial_fit with one row, {what}", heads)
    count = len(grown.latencies[0])
    spans = f"the first {count:,}", f"{count:,} from {grown.rounds[1]:,} on, memory full at once"
    for span, seconds in zip(spans, grown.latencies, strict=True):
        waits.add_row(span, *(f"{1e6 * np.quantile(seconds, part):,.0f}" for part in (0.5, 0.99, 1.0)))
    return [costs, waits]


def _amortised(learner: MetricRegressor, X: Floats, y: Floats) -> float:
    """Learn the rest of these rows; return the cost of a round over the last third, in which one phase ends."""
    done, begin = _rounds(learner), int(len(y) / 1.5)
    learner.progressive(X[done:begin], y[done:begin])
    start = time.perf_counter()
    learner.progressive(X[begin:], y[begin:])
    return 1e6 * (time.perf_counter() - start) / (len(y) - begin)


def _plain(young: MetricRegressor, old: MetricRegressor, X: Floats, y: Floats) -> list[float]:
    """Return the costs of a round of two learners, over as many rounds in which no phase ends, by turns."""
    span = _rounds(young) // 10

    def plays(learner: MetricRegressor) -> Callable[[], object]:
        copies = [copy.deepcopy(learner) for _ in range(_TURNS)]
        for each in copies:
            state = each.state_
            _double_memory(state)  # lest memory be full before the last round
            end = state.phase.end
            if end - state.clock <= span:
                each.progressive(X[state.clock : end], y[state.clock : end])
        rows = slice(_rounds(copies[0]), _rounds(copies[0]) + span)
        return lambda: copies.pop().progressive(X[rows], y[rows])

    return [1e6 * seconds / span for seconds in best_of(_TURNS, plays(young), plays(old))]


def _double_memory(state: MetricState) -> None:
    old = state.core.settings
    settings = MetricSettings(old.neighbors, 2 * old.max_centers, old.label_margin)
    state.phase = replace(state.phase, core=MetricCore(settings, state.core.parts()))


def _end_phase(state: MetricState) -> object:
    return next_phase(state.phase, state.config, state.random_state)


def _evict(state: MetricState) -> object:
    return without_redundant_centers(state.core)


def _rounds(learner: MetricRegressor) -> int:
    return learner.state_.clock if hasattr(learner, "state_") else 0


def _least(step: Callable[[MetricState], object], state: MetricState) -> float:
    """Return the least seconds that a step took, each time on a copy of the state."""
    least = np.inf
    for _ in range(3):
        fresh = copy.deepcopy(state)
        start = time.perf_counter()
        step(fresh)
        least = min(least, time.perf_counter() - start)
    return least
