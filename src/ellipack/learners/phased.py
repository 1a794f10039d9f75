"""Section 4 of the paper: Algorithm 1 in phases, each with a metric learned from all earlier rounds.

Phase i has ``2**i`` rounds. Its end restarts Algorithm 1 with a new clock, in the metric
``G-hat(i) + gamma-bar_T(i) I`` divided by its spectral norm. ``G-hat(i)`` is the gradient outer product, estimated from
all rounds so far.

References
----------
.. [1] I. Kuzborskij and N. Cesa-Bianchi. Nonparametric Online Regression while Learning the Metric. NeurIPS 2017,
   section 4 and appendix A.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack import validation
from ellipack._core import DeferredCalibration
from ellipack.errors import ModelFileError
from ellipack.learners import packing
from ellipack.learners.intervals import NO_INTERVALS, WantedIntervals
from ellipack.learners.packing import PackingHistory, PackingState
from ellipack.learners.units import UnitChange
from ellipack.locks import LearnLock
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

MAX_FEATURES: Final = 1000
"""Largest number of features.

Signals wait while the eigenvectors of a matrix of this size are computed, or one slope is estimated from as many rows.
Both take up to half a second, and times are cubic in the number of features.
"""

_ROUNDS_PER_CALL = 4096  # of the core; between calls, other threads can predict and interrupts are handled


class Phase(NamedTuple):
    """Summary of a finished phase.

    Attributes
    ----------
    number : int
        Number of the phase, from 1.
    rounds : int
        Number of its rounds.
    metric : Metric
        Metric during the phase.
    radius : float
        Radius at its end.
    effective_rank : int
        Effective rank at its end.
    n_centers : int
        Number of centers at its end.
    creation_rounds : array of int, shape (n_centers,)
        Round of the phase in which each center was added.
    gop : array of shape (d, d)
        Gradient outer product that was estimated at its end.
    """

    number: int
    rounds: int
    metric: Metric
    radius: float
    effective_rank: int
    n_centers: int
    creation_rounds: Ints
    gop: Floats


class Samples:
    """Rows and labels in order of arrival, in arrays with spare capacity."""

    def __init__(self, rows: Floats, labels: Floats) -> None:
        self._arrays = rows, labels

    def first(self, count: int) -> tuple[Floats, Floats]:
        """Return views of the first `count` rows and labels."""
        rows, labels = self._arrays
        return rows[:count], labels[:count]

    def write(self, start: int, rows: Floats, labels: Floats) -> None:
        """Write samples from position `start` on, and enlarge the arrays if necessary."""
        arrays, end = self._arrays, start + len(rows)
        if end > len(arrays[1]):
            capacity = max(end, 2 * len(arrays[1]))
            larger = np.empty((capacity, rows.shape[1])), np.empty(capacity)
            for new, old in zip(larger, self.first(start), strict=True):
                new[:start] = old
            self._arrays = arrays = larger
        arrays[0][start:end], arrays[1][start:end] = rows, labels


class PhasedParts(NamedTuple):
    """State of Algorithm 1 in the current phase, summaries of the finished phases, and the samples of all rounds."""

    packing: PackingState
    phases: tuple[Phase, ...]
    samples: Samples


class PhasedState:
    """State of the phased algorithm.

    Everything is kept in one attribute, which the end of a phase replaces as a whole. Threads and interrupts never see
    a phase that has ended in part. The clock is computed from the phases and the packing.

    Attributes
    ----------
    parts : PhasedParts
        The parts of the state.
    learn_lock : LearnLock
        Lock that a thread holds while it changes the state.
    """

    def __init__(self, parts: PhasedParts) -> None:
        self.parts = parts
        self.learn_lock = LearnLock()

    @property
    def packing(self) -> PackingState:
        """State of Algorithm 1 in the current phase."""
        return self.parts.packing

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Summaries of the finished phases."""
        return self.parts.phases

    @property
    def clock(self) -> int:
        """Number of rounds."""
        packing, phases, _ = self.parts
        return phase_end(len(phases)) + packing.clock

    @property
    def dimension(self) -> int:
        """Number of features."""
        return self.packing.metric.dimension

    @property
    def calibration(self) -> DeferredCalibration:
        """Copy of the calibration of prediction intervals, by the rounds of all phases."""
        return self.packing.calibration

    @calibration.setter
    def calibration(self, calibration: DeferredCalibration) -> None:
        self.packing.calibration = calibration

    @property
    def rows(self) -> Floats:
        """Rows of all rounds."""
        return self.parts.samples.first(self.clock)[0]

    @property
    def labels(self) -> Floats:
        """Labels of all rounds."""
        return self.parts.samples.first(self.clock)[1]

    def in_units(self, change: UnitChange) -> "PhasedState":
        """Return a copy in other units. Finished phases keep the units of their time."""
        samples = Samples(change.convert_rows(self.rows), change.convert_labels(self.labels, 1))
        return PhasedState(PhasedParts(self.packing.in_units(change), self.phases, samples))

    def with_added_features(self, count: int) -> "PhasedState":
        """Return a copy with features added as last columns; see `add_features`."""
        check_feature_count(self.dimension + count)
        phases = [
            phase._replace(
                metric=phase.metric.with_added_features(count, UNSEEN_EIGENVALUE), gop=np.pad(phase.gop, (0, count))
            )
            for phase in self.phases
        ]
        samples = Samples(np.pad(self.rows, ((0, 0), (0, count))), self.labels.copy())
        return PhasedState(PhasedParts(self.packing.with_added_features(count), tuple(phases), samples))


def check_feature_count(d: int) -> None:
    """Raise `DomainError` if there are too many features."""
    validation.check_feature_count(d, "PhasedRegressor", MAX_FEATURES)


def init(d: int) -> PhasedState:
    """Return the initial state, with the metric ``M-hat(0) = I``.

    Parameters
    ----------
    d : int
        Number of features.

    Returns
    -------
    state : PhasedState
    """
    check_feature_count(check_integer(d, "d", 1))
    samples = Samples(np.empty((1, d)), np.empty(1))
    return PhasedState(PhasedParts(packing.init(Metric.identity(d)), (), samples))


def to_archive(state: PhasedState) -> Archive:
    """Return an archive of a state, with copies of its arrays."""
    current, finished, samples = state.parts
    saved_packing = packing.to_archive(current)
    clock = phase_end(len(finished)) + saved_packing.integer("clock", 0)
    X, y = samples.first(clock)
    phases = {f"phase{phase.number}": _phase_to_archive(phase) for phase in finished}
    archive = Archive({"clock": clock, "phases": len(finished)}, {"rows": X, "labels": y})
    return archive.with_parts(packing=saved_packing, **phases).copy()


def from_archive(saved: Archive, d: int) -> PhasedState:
    """Restore a state from an archive.

    Parameters
    ----------
    saved : Archive
        The archive.
    d : int
        Number of features.

    Returns
    -------
    state : PhasedState

    Raises
    ------
    ModelFileError
        If the archive is not valid.
    """
    clock = saved.integer("clock", 1)
    finished = phase_of(clock + 1) - 1
    phases = [
        _phase_from_archive(saved.part(f"phase{i + 1}"), d, i + 1)
        for i in range(saved.integer("phases", finished, finished))
    ]
    current = packing.from_archive(saved.part("packing"), d, least=0)
    X = saved.floats_between(-1.0 - UNIT_SLACK, 1.0 + UNIT_SLACK, "rows", clock, d)
    y = saved.floats_between(0.0, 1.0, "labels", clock)
    if current.clock != clock - phase_end(finished):
        raise ModelFileError(f"packing/clock must fit the phases and {clock} rounds, got {current.clock}")
    return PhasedState(PhasedParts(current, tuple(phases), Samples(X, y)))


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


def predict(state: PhasedState, X: ArrayLike, intervals: WantedIntervals = NO_INTERVALS) -> Floats:
    """Return predictions without a change of the state.

    Parameters
    ----------
    state : PhasedState
        The state.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.

    Returns
    -------
    predictions : array of shape (n,)
    """
    return packing.predict(state.packing, X, intervals)


def learn(
    state: PhasedState,
    X: ArrayLike,
    y: ArrayLike,
    intervals: WantedIntervals = NO_INTERVALS,
    *,
    alpha: float,
    estimator: GopEstimator,
    keep_founding_label: bool = True,
) -> Floats:
    """Run one round for each row: predict, then learn the label.

    Parameters
    ----------
    state : PhasedState
        The state, which is updated.
    X : array-like of shape (n, d)
        Rows in the unit ball.
    y : array-like of shape (n,)
        Labels in [0, 1].
    intervals : WantedIntervals, optional
        Array to fill with intervals of the predictions.
    alpha : float
        Exponent of the regularization ``gamma-bar_t = t**-alpha``.
    estimator : GopEstimator
        Estimator of the gradient outer product.
    keep_founding_label : bool, default True
        Whether a new center counts the label of its own instance.

    Returns
    -------
    predictions : array of shape (n,)
        Predictions, each made before its label was learned.
    """
    check_positive(alpha, "alpha")
    with state.learn_lock.turn:
        table = check_in_unit_ball(check_rows(X, state.dimension))
        targets = check_in_unit_interval(check_labels(y, len(table)))
        return _learn(state, table, targets, intervals, alpha, estimator, keep_founding_label)


def _learn(
    state: PhasedState,
    table: Floats,
    targets: Floats,
    intervals: WantedIntervals,
    alpha: float,
    estimator: GopEstimator,
    keep_founding_label: bool,
) -> Floats:
    # Samples beyond the clock are ignored until their rounds have run. Estimates depend on samples only and are made
    # first: if the estimator fails, the state is unchanged.
    state.parts.samples.write(state.clock, table, targets)
    gops = _estimate_gops(state, len(table), estimator)
    metrics = {phase: Metric.from_gop(gop, regularization(phase_end(phase), alpha)) for phase, gop in gops.items()}
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        phase, clock = phase_of(state.clock + 1), state.clock
        part = slice(done, min(len(table), done + _ROUNDS_PER_CALL, done + phase_end(phase) - clock))
        ends = clock + part.stop - part.start == phase_end(phase)
        # The last rounds of a phase run on a copy: the change to the next phase is a single assignment.
        current = state.packing.copy() if ends else state.packing
        predictions[part] = packing.learn(
            current, table[part], targets[part], intervals.part(part), keep_founding_label=keep_founding_label
        )
        if ends:
            finished, following = _summarize_phase(phase, current, gops[phase]), packing.init(metrics[phase])
            following.calibration = current.calibration
            state.parts = PhasedParts(following, (*state.phases, finished), state.parts.samples)
        done = part.stop
    return predictions


def add_features(state: PhasedState, count: int) -> None:
    """Add features as last columns. They were 0 in all earlier rows.

    In the metric of the current phase each has an eigenvalue of 1. In the metrics of finished phases their eigenvalues
    are tiny, so that radius and effective rank do not change.

    Parameters
    ----------
    state : PhasedState
        The state, which is updated.
    count : int
        Number of new features.
    """
    with state.learn_lock.turn:
        state.parts = state.with_added_features(count).parts


def history(state: PhasedState) -> PackingHistory:
    """Return radius, effective rank and number of centers at the end of each round of all phases."""
    current, finished, _ = state.parts
    parts = [
        packing.compute_history(phase.metric, phase.creation_rounds, np.arange(1, phase.rounds + 1))
        for phase in finished
    ]
    parts.append(packing.history(current))
    _, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return PackingHistory(np.arange(1, len(columns[0]) + 1), *columns)


def _estimate_gops(state: PhasedState, rounds: int, estimator: GopEstimator) -> dict[int, Floats]:
    """Return the gradient outer product at the end of each phase that ends in the next rounds."""
    last = state.clock + rounds
    phases = range(phase_of(state.clock + 1), phase_of(last) + 1)
    ends = {phase: phase_end(phase) for phase in phases if phase_end(phase) <= last}
    return {phase: estimator.estimate(*state.parts.samples.first(end)) for phase, end in ends.items()}


def _summarize_phase(number: int, state: PackingState, gop: Floats) -> Phase:
    """Return the summary of a phase after its last round."""
    past = packing.history(state, [state.clock])
    summary = float(past.radius[0]), int(past.effective_rank[0]), int(past.n_centers[0])
    return Phase(number, state.clock, state.metric, *summary, state.core.creation_rounds, gop)
