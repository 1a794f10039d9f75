"""The practical learner's rounds: `predict`, `learn`.

**Wild labels.** One label of absurd size (a failing sensor, a slipped decimal point) must not spoil what was learned.
With [a, b] the range of the labels learned so far, of which there are five or more that are not all equal, and c how
many wild ones there were in the phase (plus half of what c was at the end of the phase before), a label is *wild* if it
lies more than ``3 * 10**c * (b - a)`` outside [a, b]. From a wild label nothing is learned but that there was one. So a
single one changes nothing at all, and a level that is there to stay is believed in a few rounds, one for each power
of ten that it is away.

**The guarantee** of `ellipack.learners.aggregation.bernstein` is about the rounds whose label was not wild, and for
these it holds on every stream, phase by phase. A phase has at most ``1 + log10(R / (3 (b - a)))`` wild rounds, where
R is how far labels of the phase reach beyond [a, b], its range at the start.

**Wild features**, by the same rule within each, are held instead, to a width of the range beyond it, in learning and in
predicting alike; the row is learned.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.learners.metric.desks import AT_ONCE, put_back, take
from ellipack.learners.metric.memory import repack
from ellipack.learners.metric.phases import end_phase
from ellipack.learners.metric.state import MetricState, make_room
from ellipack.threads import for_rows
from ellipack.validation import Floats, labels, rows

LARGEST_FEATURE, LARGEST_LABEL = 1e140, 1e60
"""Beyond these, sums of squares (of features) and of fourth powers (of labels) would overflow."""


def predict(state: MetricState, X: ArrayLike, n_jobs: int = 1) -> Floats:
    """Return what would be predicted for each row now, 0 before the first round; nothing changes."""
    with state.gate.looking():
        table = _features(rows(X, state.machine.memory.rows.shape[1]))
        predictions = np.empty(len(table))

        def work(part: slice) -> None:
            desk = take(state)
            for start in range(part.start, part.stop, AT_ONCE):
                few = slice(start, min(start + AT_ONCE, part.stop))
                desk.predict(table[few], predictions[few])
            put_back(state, desk)

        for_rows(work, len(table), n_jobs)
    return predictions


def learn(state: MetricState, X: ArrayLike, y: ArrayLike) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits.
    """
    table = _features(rows(X, state.machine.memory.rows.shape[1]))
    targets = labels(y, len(table))
    if np.abs(targets).max() > LARGEST_LABEL:
        raise DomainError(f"y must be at most {LARGEST_LABEL:g} in size, got {np.abs(targets).max():g}")
    predictions = np.empty(len(table))
    done = 0
    while done < len(table):
        # Between so many, those who predict on other threads have their turn.
        part = slice(done, min(len(table), done + AT_ONCE, done + state.phase_end - state.clock))
        with state.gate.changing():
            desk = take(state)
            done += desk.learn(table[part], targets[part], predictions[part])
            put_back(state, desk)
            settle(state)
            if done < part.stop:
                make_room(state, desk.room.queries, desk.room.scaled)
    return predictions


def settle(state: MetricState) -> None:
    """Make room and end the phase, if after the last round it is time.

    At once, not when the next row comes: what is predicted until then must be what that row will be predicted.
    """
    if state.n_centers == state.max_centers:
        repack(state)
    if state.clock == state.phase_end:
        end_phase(state)


def _features(table: Floats) -> Floats:
    if np.abs(table).max() > LARGEST_FEATURE:
        raise DomainError(f"X must be at most {LARGEST_FEATURE:g} in size, got {np.abs(table).max():g}")
    return table
