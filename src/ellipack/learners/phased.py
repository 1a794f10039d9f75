"""Section 4: Algorithm 1 restarted in phases, each in the metric learned from all the rounds before it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import CheckpointError
from ellipack.learners import packing
from ellipack.learners.packing import PackingHistory, PackingState
from ellipack.metric import UNSEEN_EIGENVALUE, GopEstimator, Metric
from ellipack.serialization import Archive
from ellipack.theory.schedules import phase_end, phase_of, regularization
from ellipack.validation import (
    UNIT_SLACK,
    Floats,
    Ints,
    check_in_unit_ball,
    check_in_unit_interval,
    check_integer,
    check_labels,
    check_positive,
    check_rows,
)

_ROUNDS_PER_CALL = 4096  # rounds a call: between calls, other threads predict and interrupts are handled


class Phase(NamedTuple):
    """What a phase that is over was like."""

    number: int
    rounds: int
    metric: Metric  # the one that it ran in
    radius: float  # at its end, as are the next two
    effective_rank: int
    n_centers: int
    creation_rounds: Ints  # the rounds, by the phase's own clock, at which its centers were added
    gop: Floats  # estimated at its end


class Samples:
    """Rows and labels in the order in which they came, in arrays with room to grow."""

    def __init__(self, rows: Floats, labels: Floats) -> None:
        self._arrays = rows, labels

    def first(self, count: int) -> tuple[Floats, Floats]:
        """Return the first rows and labels, so many of them."""
        rows, labels = self._arrays
        return rows[:count], labels[:count]

    def write(self, start: int, rows: Floats, labels: Floats) -> None:
        """Write samples from position `start` on; those before stay as they are."""
        held, end = self._arrays, start + len(rows)
        if end > len(held[1]):
            room = max(end, 2 * len(held[1]))
            larger = np.empty((room, rows.shape[1])), np.empty(room)
            for new, old in zip(larger, self.first(start), strict=True):
                new[:start] = old
            self._arrays = held = larger
        held[0][start:end], held[1][start:end] = rows, labels


class PhasedParts(NamedTuple):
    """Algorithm 1 in the present phase, the phases that are over, and the samples of all rounds."""

    packing: PackingState
    phases: tuple[Phase, ...]
    samples: Samples


class PhasedState:
    """The phased algorithm.

    All is kept in one attribute, which the end of a phase replaces: threads and interrupts find a phase ended whole or
    not at all. The clock follows from the phases and the packing, so that it cannot disagree with them.
    """

    def __init__(self, parts: PhasedParts) -> None:
        self.parts = parts

    @property
    def packing(self) -> PackingState:
        """Algorithm 1 in the present phase."""
        return self.parts.packing

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases that are over."""
        return self.parts.phases

    @property
    def clock(self) -> int:
        """The number of rounds played."""
        packing, phases, _ = self.parts
        return phase_end(len(phases)) + packing.clock

    @property
    def dimension(self) -> int:
        """The number of features."""
        return self.packing.metric.dimension

    @property
    def rows(self) -> Floats:
        """The rows of all rounds."""
        return self.parts.samples.first(self.clock)[0]

    @property
    def labels(self) -> Floats:
        """The labels of all rounds."""
        return self.parts.samples.first(self.clock)[1]


def init(d: int) -> PhasedState:
    """Return the phased algorithm before its first round, in the metric ``M-hat(0) = I``."""
    samples = Samples(np.empty((1, check_integer(d, "d", 1))), np.empty(1))
    return PhasedState(PhasedParts(packing.init(Metric.identity(d)), (), samples))


def to_archive(state: PhasedState) -> Archive:
    """Return what is saved of a state, in arrays of its own."""
    present, over, samples = state.parts
    now = packing.to_archive(present)
    clock = phase_end(len(over)) + now.integer("clock", 0)
    X, y = samples.first(clock)
    phases = {f"phase{phase.number}": _phase_to_archive(phase) for phase in over}
    kept = Archive({"clock": clock, "phases": len(over)}, {"rows": X, "labels": y})
    return kept.with_parts(packing=now, **phases).copy()


def from_archive(saved: Archive, d: int) -> PhasedState:
    """Return the state for d features that was saved as this archive."""
    clock = saved.integer("clock", 1)
    over = phase_of(clock + 1) - 1
    phases = [
        _phase_from_archive(saved.part(f"phase{i + 1}"), d, i + 1) for i in range(saved.integer("phases", over, over))
    ]
    present = packing.from_archive(saved.part("packing"), d, least=0)
    X = saved.floats_between(-1.0 - UNIT_SLACK, 1.0 + UNIT_SLACK, "rows", clock, d)
    y = saved.floats_between(0.0, 1.0, "labels", clock)
    if present.clock != clock - phase_end(over):
        raise CheckpointError(f"packing/clock must fit the phases and {clock} rounds, got {present.clock}")
    return PhasedState(PhasedParts(present, tuple(phases), Samples(X, y)))


def _phase_to_archive(phase: Phase) -> Archive:
    facts = {name: getattr(phase, name) for name in ("number", "rounds", "radius", "effective_rank", "n_centers")}
    return Archive(facts, {"creation_rounds": phase.creation_rounds, "gop": phase.gop}).with_parts(
        metric=phase.metric.to_archive()
    )


def _phase_from_archive(saved: Archive, d: int, number: int) -> Phase:
    rounds, count = 2**number, saved.integer("n_centers", 1)
    return Phase(
        saved.integer("number", number, number),
        saved.integer("rounds", rounds, rounds),
        Metric.from_archive(saved.part("metric"), d),
        saved.number("radius"),
        saved.integer("effective_rank", 1, d),
        count,
        saved.ints("creation_rounds", count, least=1, most=rounds),
        saved.floats("gop", d, d),
    )


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
    """Play one round a row; return the predictions, each made before its label was seen.

    Each phase restarts Algorithm 1, its own clock at t = 1, in the metric ``G-hat(i) + gamma-bar_T(i) I`` over its
    spectral norm, ``G-hat(i)`` being estimated at the end of phase i from all rounds so far.
    """
    check_positive(alpha, "alpha")
    table = check_in_unit_ball(check_rows(X, state.dimension))
    targets = check_in_unit_interval(check_labels(y, len(table)))
    # Samples past the clock do not count until their rounds are played. An estimate depends on samples alone: all come
    # first, so that an estimator that fails leaves the state as it was.
    state.parts.samples.write(state.clock, table, targets)
    gops = _estimates(state, len(table), estimator)
    metrics = {phase: Metric.from_gop(gop, regularization(phase_end(phase), alpha)) for phase, gop in gops.items()}
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        phase, clock = phase_of(state.clock + 1), state.clock
        part = slice(done, min(len(table), done + _ROUNDS_PER_CALL, done + phase_end(phase) - clock))
        ends = clock + part.stop - part.start == phase_end(phase)
        # The last rounds of a phase are played on a copy: the state goes from before them to the next phase at once.
        now = state.packing.copy() if ends else state.packing
        predictions[part] = packing.learn(now, table[part], targets[part], keep_founding_label=keep_founding_label)
        if ends:
            over = _summary(phase, now, gops[phase])
            state.parts = PhasedParts(packing.init(metrics[phase]), (*state.phases, over), state.parts.samples)
        done = part.stop
    return predictions


def add_features(state: PhasedState, count: int) -> None:
    """Take so many more features, the last ones, which were 0 in every row so far.

    In the metric of the present phase each has an eigenvalue of 1. In those of phases that are over they weigh next to
    nothing: no row was seen to differ there, and radius and effective rank stay what they were.
    """
    X, y = np.pad(state.rows, ((0, 0), (0, count))), state.labels.copy()
    phases = [
        phase._replace(
            metric=phase.metric.with_added_features(count, UNSEEN_EIGENVALUE), gop=np.pad(phase.gop, (0, count))
        )
        for phase in state.phases
    ]
    state.parts = PhasedParts(packing.with_added_features(state.packing, count), tuple(phases), Samples(X, y))


def history(state: PhasedState) -> PackingHistory:
    """Return radius, effective rank and number of centers at the end of every round, phase after phase."""
    now, over, _ = state.parts
    parts = [
        packing.compute_history(phase.metric, phase.creation_rounds, np.arange(1, phase.rounds + 1)) for phase in over
    ]
    parts.append(packing.history(now))
    _, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PackingHistory(np.arange(1, len(columns[0]) + 1), *columns)


def _estimates(state: PhasedState, coming: int, estimator: GopEstimator) -> dict[int, Floats]:
    """Return the gradient outer product at the end of each phase that ends in the coming rounds."""
    last = state.clock + coming
    phases = range(phase_of(state.clock + 1), phase_of(last) + 1)
    ends = {phase: phase_end(phase) for phase in phases if phase_end(phase) <= last}
    return {phase: estimator.estimate(*state.parts.samples.first(end)) for phase, end in ends.items()}


def _summary(phase: int, now: PackingState, gop: Floats) -> Phase:
    """Return what a phase was like, at its end."""
    past = packing.history(now, [now.clock])
    summary = float(past.radius[0]), int(past.effective_rank[0]), int(past.n_centers[0])
    return Phase(phase, now.clock, now.metric, *summary, now.core.creation_rounds, gop)
