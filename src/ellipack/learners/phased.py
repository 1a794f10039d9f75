"""Section 4: Algorithm 1 restarted in phases, each in the metric learned from all the rounds before it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
from ellipack.learners import packing
from ellipack.learners.packing import PackingHistory
from ellipack.metric import UNSEEN, GopEstimator, Metric
from ellipack.packing.centers import padded
from ellipack.theory.schedules import phase_end, phase_of, regularization
from ellipack.threads import Gate
from ellipack.validation import UNIT_SLACK, Floats, Ints, in_unit_ball, in_unit_interval, labels, rows, whole

_AT_A_TIME = 4096  # rounds, between which those who predict on other threads have their turn


class Phase(NamedTuple):
    """What a phase that is over was like."""

    number: int
    rounds: int
    metric: Metric  # the one that it ran in
    radius: float  # at its end, as are the next two
    effective_rank: int
    n_centers: int
    founded: Ints  # the rounds, by the phase's own clock, at which its centres were founded
    gop: Floats  # estimated at its end


@dataclass(eq=False)
class PhasedState:
    """What the phased algorithm carries: Algorithm 1 in its present phase, all rows so far, and the phases over."""

    packing: packing.PackingState
    rows: Floats
    labels: Floats
    clock: int = 0
    phases: list[Phase] = field(default_factory=list)
    gate: Gate = field(default_factory=Gate)


def init(d: int) -> PhasedState:
    """Return the phased algorithm before its first round, in the metric ``M-hat(0) = I``."""
    return PhasedState(packing.init(Metric.identity(d)), np.empty((1, whole(d, "d", 1))), np.empty(1))


def contents(state: PhasedState) -> Contents:
    """Return what is saved of a state, in arrays of its own."""
    with state.gate.looking():
        arrays = {"rows": state.rows[: state.clock], "labels": state.labels[: state.clock]}
        phases = {f"phase{phase.number}": _phase_contents(phase) for phase in state.phases}
        parts = {"packing": packing.contents(state.packing), **phases}
        return Contents({"clock": state.clock, "phases": len(state.phases)}, arrays).having(**parts).copy()


def restore(saved: Contents, d: int) -> PhasedState:
    """Return the state for d features that was saved as these contents."""
    clock = saved.whole("clock", 1)
    over = phase_of(clock + 1) - 1
    phases = [_restored_phase(saved.part(f"phase{i + 1}"), d, i + 1) for i in range(saved.whole("phases", over, over))]
    state = PhasedState(
        packing.restore(saved.part("packing"), d, least=0),
        saved.between(-1.0 - UNIT_SLACK, 1.0 + UNIT_SLACK, "rows", clock, d),
        saved.between(0.0, 1.0, "labels", clock),
        clock,
        phases,
    )
    if state.packing.clock != clock - sum(phase.rounds for phase in phases):
        raise CheckpointError(f"packing/clock must fit the phases and {clock} rounds, got {state.packing.clock}")
    return state


def _phase_contents(phase: Phase) -> Contents:
    facts = {name: getattr(phase, name) for name in ("number", "rounds", "radius", "effective_rank", "n_centers")}
    return Contents(facts, {"founded": phase.founded, "gop": phase.gop}).having(metric=phase.metric.contents())


def _restored_phase(saved: Contents, d: int, number: int) -> Phase:
    rounds, count = 2**number, saved.whole("n_centers", 1)
    return Phase(
        saved.whole("number", number, number),
        saved.whole("rounds", rounds, rounds),
        Metric.restore(saved.part("metric"), d),
        saved.number("radius"),
        saved.whole("effective_rank", 1, d),
        count,
        saved.ints("founded", count, least=1, most=rounds),
        saved.floats("gop", d, d),
    )


def predict(state: PhasedState, X: ArrayLike) -> Floats:
    """Return what would be predicted for each row now; nothing changes."""
    with state.gate.looking():
        return packing.predict(state.packing, X)


def learn(
    state: PhasedState,
    X: ArrayLike,
    y: ArrayLike,
    *,
    alpha: float,
    estimator: GopEstimator,
    keep_founding_label: bool = True,
) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    Each phase restarts Algorithm 1, its own clock at t = 1, in the metric ``G-hat(i) + gamma-bar_T(i) I`` over its
    spectral norm, ``G-hat(i)`` being estimated at the end of phase i from all rounds so far.
    """
    table = in_unit_ball(rows(X, state.rows.shape[1]))
    targets = in_unit_interval(labels(y, len(table)))
    # An estimate depends on rows and labels alone. So all of them come first: whatever fails, fails before the
    # state has moved.
    _make_room(state, table, targets)
    gops, metrics = _estimates(state, len(table), alpha, estimator)
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        phase = phase_of(state.clock + 1)
        part = slice(done, min(len(table), done + _AT_A_TIME, done + phase_end(phase) - state.clock))
        with state.gate.changing():
            predictions[part] = packing.learn(
                state.packing, table[part], targets[part], keep_founding_label=keep_founding_label
            )
            state.clock += part.stop - part.start
            if phase in metrics and state.clock == phase_end(phase):
                _end_phase(state, phase, gops[phase], metrics[phase])
        done = part.stop
    return predictions


def widen(state: PhasedState, count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far.

    In the metric of the present phase each has an eigenvalue of 1. In those of phases that are over they weigh next to
    nothing: no row was seen to differ there, and radius and effective rank stay what they were.
    """
    now = packing.widened(state.packing, count)
    rows = np.pad(state.rows, ((0, 0), (0, count)))
    phases = [
        phase._replace(metric=phase.metric.widened(count, UNSEEN), gop=np.pad(phase.gop, (0, count)))
        for phase in state.phases
    ]
    with state.gate.changing():
        state.packing, state.rows, state.phases = now, rows, phases


def history(state: PhasedState) -> PackingHistory:
    """Return radius, effective rank and number of centres at the end of every round, phase after phase."""
    now = state.packing
    parts = [packing.look_back(phase.metric, phase.founded, np.arange(1, phase.rounds + 1)) for phase in state.phases]
    parts.append(packing.look_back(now.metric, now.centers.founded[: now.centers.size], np.arange(1, now.clock + 1)))
    _, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PackingHistory(np.arange(1, state.clock + 1), *columns)


def _make_room(state: PhasedState, table: Floats, targets: Floats) -> None:
    """Write rows and labels past the clock, where they count for nothing until it moves."""
    needed = state.clock + len(table)
    if needed > len(state.rows):
        room = max(needed, 2 * len(state.rows))
        state.rows, state.labels = padded(state.rows, room), padded(state.labels, room)
    state.rows[state.clock : needed] = table
    state.labels[state.clock : needed] = targets


def _estimates(
    state: PhasedState, coming: int, alpha: float, estimator: GopEstimator
) -> tuple[dict[int, Floats], dict[int, Metric]]:
    """Return the gradient outer product and the metric at the end of each phase that ends in the coming rounds."""
    last = state.clock + coming
    ends = {phase: phase_end(phase) for phase in range(phase_of(state.clock + 1), phase_of(last) + 1)}
    ended = {phase: end for phase, end in ends.items() if end <= last}
    ridges = {phase: regularization(end, alpha) for phase, end in ends.items()}
    gops = {phase: estimator.estimate(state.rows[:end], state.labels[:end]) for phase, end in ended.items()}
    return gops, {phase: Metric.from_gop(gop, ridges[phase]) for phase, gop in gops.items()}


def _end_phase(state: PhasedState, phase: int, gop: Floats, metric: Metric) -> None:
    now = state.packing
    founded = now.centers.founded[: now.centers.size].copy()
    past = packing.look_back(now.metric, founded, np.array([now.clock]))
    summary = float(past.radius[0]), int(past.effective_rank[0]), int(past.n_centers[0])
    state.phases.append(Phase(phase, now.clock, now.metric, *summary, founded, gop))
    state.packing = packing.init(metric)
