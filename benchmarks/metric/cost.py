"""Growth of the cost of MetricRegressor on a stream of 20 features and 2 directions, and the subspace it learns.

The scales of the features range from thousandths to thousands. All costs are those of one thread.
"""

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rich.table import Table
from scipy.linalg import subspace_angles

from benchmarks.command_line import TargetResult, at_most, new_table
from benchmarks.measurement import best_of
from ellipack import MetricRegressor
from ellipack._core import MetricCore, MetricSettings
from ellipack.learners.metric.eviction import evict_redundant_centers
from ellipack.learners.metric.phase_end import next_phase
from ellipack.learners.metric.state import MetricState
from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

STREAM = LowRankStream(d=20, rank=2)
EARLY_ROUND, LATE_ROUND = 10_000, 100_000
SINGLE_CALLS = 5_000
"""Number of calls with one row each, to measure latency."""

_REPEATS = 5
_COST_HEADS = "within a phase", "one row per call", "phase end included"
_SCALES = 10.0 ** np.random.default_rng(0).uniform(-3, 3, STREAM.d)
_MAX_GROWTH, _MAX_ROW_RATIO, _MAX_DEGREES, _MAX_SECONDS = 1.5, 1.3, 5.0, 0.5


class RoundCosts(NamedTuple):
    """Microseconds per round: within a phase, the same with one row per call, and including the end of a phase."""

    within_phase: float
    row_by_row: float
    amortized: float


class GrowthResult(NamedTuple):
    """What `measure_growth` measures."""

    rounds: tuple[int, int]
    costs: list[RoundCosts]
    degrees: float
    latencies: tuple[Floats, Floats]
    """Seconds of calls with one row: the first ones, and those after `late` rounds; the first of these evicts."""
    n_centers: int
    phase_end: float
    eviction: float


def measure_growth(
    views: int = 1, early: int = EARLY_ROUND, late: int = LATE_ROUND, single: int = SINGLE_CALLS
) -> GrowthResult:
    """Run a learner from the start and measure; its memory is full one round after `late`."""
    X, y = STREAM.draw(late + single)
    X = X * _SCALES
    learner = MetricRegressor(late + 1, views=views)
    first = learn_row_by_row(MetricRegressor(late + 1, views=views), X[:single], y[:single])
    amortized = [_amortized(learner, X[:early], y[:early])]
    young = copy.deepcopy(learner)
    amortized.append(_amortized(learner, X[:late], y[:late]))
    within_phase = _costs_without_phase_end(young, learner, X, y)
    costs = [RoundCosts(*pair, last) for pair, last in zip(within_phase, amortized, strict=True)]
    phase_end, eviction = _least_seconds(_end_phase, learner.state_), _least_seconds(_evict, learner.state_)
    n_centers = learner.n_centers_
    last = learn_row_by_row(learner, X[late:], y[late:])
    return GrowthResult((early, late), costs, subspace_angle(young), (first, last), n_centers, phase_end, eviction)


def subspace_angle(learner: MetricRegressor) -> float:
    """Return the largest principal angle, in degrees, between the learned and the true subspace.

    Directions scale like gradients, inversely to the features. Angles are taken in the coordinates of the stream,
    where all features have the same scale.
    """
    learned = (learner.directions_[: STREAM.rank] * _SCALES).T
    return float(np.degrees(subspace_angles(learned, STREAM.subspace).max()))


def learn_row_by_row(learner: MetricRegressor, X: Floats, y: Floats) -> Floats:
    """Learn one row per call; return the seconds of each call."""
    seconds = np.empty(len(y))
    for t in range(len(y)):
        start = time.perf_counter()
        learner.partial_fit(X[t : t + 1], y[t : t + 1])
        seconds[t] = time.perf_counter() - start
    return seconds


def progressive_row_by_row(learner: MetricRegressor, X: Floats, y: Floats) -> None:
    """Call `progressive` with one row at a time."""
    for row, label in zip(X[:, None], y[:, None], strict=True):
        learner.progressive(row, label)


def targets(result: GrowthResult) -> list[TargetResult]:
    """Compare the measurements with their targets."""
    early, late = result.costs
    rounds = f"cost of a round at {result.rounds[1]:,} over that at {result.rounds[0]:,}"
    full = f"at {result.n_centers:,} centers, d = {STREAM.d}"
    return [
        at_most(f"{rounds}, within a phase", late.within_phase / early.within_phase, _MAX_GROWTH),
        at_most(f"{rounds}, phase end included", late.amortized / early.amortized, _MAX_GROWTH),
        at_most(
            f"cost with one row per call over that in a batch, at {result.rounds[0]:,}",
            early.row_by_row / early.within_phase,
            _MAX_ROW_RATIO,
        ),
        at_most(f"angle to the true subspace at {result.rounds[0]:,} rounds", result.degrees, _MAX_DEGREES, " degrees"),
        at_most(f"end of a phase {full}", result.phase_end, _MAX_SECONDS, " s"),
        at_most(f"eviction {full}", result.eviction, _MAX_SECONDS, " s"),
        at_most("longest of all single calls", max(map(np.max, result.latencies)), _MAX_SECONDS, " s"),
    ]


def cost_tables(result: GrowthResult) -> list[Table]:
    """Return tables of the cost per round and of the latency of calls."""
    what = f"d = {STREAM.d}, {STREAM.rank} directions"
    costs = new_table(f"Microseconds per round, {what}", ("at round", *_COST_HEADS))
    for at, each in zip(result.rounds, result.costs, strict=True):
        costs.add_row(f"{at:,}", *(f"{cost:.1f}" for cost in each))
    heads = ("rounds", "median", "p99", "longest")
    waits = new_table(f"Microseconds per call of partial_fit with one row, {what}", heads)
    count = len(result.latencies[0])
    spans = f"the first {count:,}", f"{count:,} from {result.rounds[1]:,} on, memory full at once"
    for span, seconds in zip(spans, result.latencies, strict=True):
        waits.add_row(span, *(f"{1e6 * np.quantile(seconds, part):,.0f}" for part in (0.5, 0.99, 1.0)))
    return [costs, waits]


def _amortized(learner: MetricRegressor, X: Floats, y: Floats) -> float:
    """Learn the rest of these rows; return the cost per round over the last third, in which one phase ends."""
    done, begin = _rounds(learner), int(len(y) / 1.5)
    learner.progressive(X[done:begin], y[done:begin])
    start = time.perf_counter()
    learner.progressive(X[begin:], y[begin:])
    return 1e6 * (time.perf_counter() - start) / (len(y) - begin)


def _costs_without_phase_end(
    young: MetricRegressor, old: MetricRegressor, X: Floats, y: Floats
) -> list[tuple[float, float]]:
    """Return the costs per round of two learners, in a batch and with one row per call; all four take turns.

    No phase ends in these rounds.
    """
    span = _rounds(young) // 10

    def repeated(learner: MetricRegressor, learn: Callable[..., object]) -> Callable[[], object]:
        copies = [copy.deepcopy(learner) for _ in range(_REPEATS)]
        for each in copies:
            state = each.state_
            _double_memory(state)  # so that memory is not full before the last round
            end = state.phase.end
            if end - state.clock <= span:
                each.progressive(X[state.clock : end], y[state.clock : end])
        rows = slice(_rounds(copies[0]), _rounds(copies[0]) + span)
        return lambda: learn(copies.pop(), X[rows], y[rows])

    ways = MetricRegressor.progressive, progressive_row_by_row
    runs = [repeated(learner, learn) for learner in (young, old) for learn in ways]
    microseconds = [1e6 * seconds / span for seconds in best_of(_REPEATS, *runs)]
    return [(microseconds[0], microseconds[1]), (microseconds[2], microseconds[3])]


def _double_memory(state: MetricState) -> None:
    old = state.core.settings
    settings = MetricSettings(old.neighbors, 2 * old.max_centers, old.label_margin)
    state.phase = replace(state.phase, core=MetricCore(settings, state.core.parts()))


def _end_phase(state: MetricState) -> object:
    return next_phase(state.phase, state.core.parts(), state.config, state.random_state)


def _evict(state: MetricState) -> object:
    return evict_redundant_centers(state.core.parts().plain)


def _rounds(learner: MetricRegressor) -> int:
    return learner.state_.clock if hasattr(learner, "state_") else 0


def _least_seconds(step: Callable[[MetricState], object], state: MetricState) -> float:
    """Return the least seconds of a step, each time on a copy of the state."""
    least = np.inf
    for _ in range(3):
        fresh = copy.deepcopy(state)
        start = time.perf_counter()
        step(fresh)
        least = min(least, time.perf_counter() - start)
    return least
