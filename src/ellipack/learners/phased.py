"""Section 4: Algorithm 1 restarted in phases, each in the metric learned from all the rounds before it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.learners import packing
from ellipack.metric import GopEstimator, Metric
from ellipack.packing.centers import padded
from ellipack.theory.schedules import phase_end, phase_of, regularization
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, in_unit_ball, in_unit_interval, labels, positive, rows, whole


class Phase(NamedTuple):
    """What a phase that is over was like."""

    number: int
    rounds: int
    metric: Metric  # the one that it ran in
    effective_rank: int  # at its end
    n_centers: int  # at its end
    gop: Floats  # estimated at its end


@dataclass(eq=False)
class PhasedState:
    """What the phased algorithm carries: Algorithm 1 in its present phase, all rows so far, and the phases over."""

    packing: packing.PackingState
    rows: Floats
    labels: Floats
    clock: int = 0
    phases: list[Phase] = field(default_factory=list)


def init(d: int) -> PhasedState:
    """Return the phased algorithm before its first round, in the metric ``M-hat(0) = I``."""
    return PhasedState(packing.init(Metric.identity(d)), np.empty((1, whole(d, "d", 1))), np.empty(1))


def predict(state: PhasedState, X: ArrayLike) -> Floats:
    """Return what would be predicted for each row now; nothing changes."""
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
    positive(alpha, "alpha")
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        phase = phase_of(state.clock + 1)
        part = slice(done, min(len(table), done + phase_end(phase) - state.clock))
        predictions[part] = packing.learn(
            state.packing, table[part], targets[part], keep_founding_label=keep_founding_label
        )
        _remember(state, table[part], targets[part])
        done = part.stop
        if state.clock == phase_end(phase):
            _end_phase(state, phase, alpha, estimator)
    return predictions


def _remember(state: PhasedState, table: Floats, targets: Floats) -> None:
    needed = state.clock + len(table)
    if needed > len(state.rows):
        room = max(needed, 2 * len(state.rows))
        state.rows, state.labels = padded(state.rows, room), padded(state.labels, room)
    state.rows[state.clock : needed] = table
    state.labels[state.clock : needed] = targets
    state.clock = needed


def _end_phase(state: PhasedState, phase: int, alpha: float, estimator: GopEstimator) -> None:
    gop = estimator.estimate(state.rows[: state.clock], state.labels[: state.clock])
    before = state.packing
    rank = int(effective_rank(before.metric.eigenvalues, before.clock))
    state.phases.append(Phase(phase, before.clock, before.metric, rank, before.centers.size, gop))
    state.packing = packing.init(Metric.from_gop(gop, regularization(state.clock, alpha)))
