"""The practical learner's rounds: `predict`, `learn`."""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.learners.metric._kernels import run_rounds
from ellipack.learners.metric.memory import repack
from ellipack.learners.metric.phases import end_phase
from ellipack.learners.metric.state import MetricState, make_room, working_room
from ellipack.threads import for_rows
from ellipack.validation import Floats, labels, rows

_LARGEST_FEATURE, _LARGEST_LABEL = 1e140, 1e60
"""Beyond these, sums of squares (of features) and of fourth powers (of labels) would overflow."""


def predict(state: MetricState, X: ArrayLike, n_jobs: int = 1) -> Floats:
    """Return what would be predicted for each row now, 0 before the first round; nothing changes."""
    table = _features(rows(X, state.machine.memory.rows.shape[1]))
    predictions = np.empty(len(table))

    def work(part: slice) -> None:
        run_rounds(state.machine, table[part], np.empty(0), predictions[part], working_room(state))

    for_rows(work, len(table), n_jobs)
    return predictions


def learn(state: MetricState, X: ArrayLike, y: ArrayLike) -> Floats:
    """Play a round a row; return the predictions, each made before its label was seen.

    However rows are grouped into calls, predictions and state have the same bits.
    """
    table = _features(rows(X, state.machine.memory.rows.shape[1]))
    targets = labels(y, len(table))
    if np.abs(targets).max() > _LARGEST_LABEL:
        raise DomainError(f"y must be at most {_LARGEST_LABEL:g} in size, got {np.abs(targets).max():g}")
    predictions = np.empty(len(table))
    room = working_room(state)
    done = 0
    while done < len(table):
        part = slice(done, min(len(table), done + state.phase_end - state.clock))
        done += run_rounds(state.machine, table[part], targets[part], predictions[part], room)
        # At once, not when the next row comes: what is predicted until then must be what that row will be predicted.
        if state.n_centers == state.max_centers:
            repack(state)
        if state.clock == state.phase_end:
            end_phase(state)
        if done < part.stop:
            make_room(state)
    return predictions


def _features(table: Floats) -> Floats:
    if np.abs(table).max() > _LARGEST_FEATURE:
        raise DomainError(f"X must be at most {_LARGEST_FEATURE:g} in size, got {np.abs(table).max():g}")
    return table
