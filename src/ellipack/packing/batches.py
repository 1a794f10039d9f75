"""Many queries at once, over as many threads as are asked for.

Each query writes only its own part of the answer and none changes what it searches, so that neither the number of
threads nor their timing can change a bit of it.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from ellipack.packing._kernels import LANES
from ellipack.threads import for_rows
from ellipack.validation import Floats, Ints, positive, whole

State = TypeVar("State")
RowsKernel = Callable[[State, Floats, Ints, Floats], None]
WithinKernel = Callable[[State, Floats, float, Ints, Floats, Ints, int], int]


class Within(NamedTuple):
    """The neighbours of query `i` are entries `offsets[i]` to `offsets[i + 1]`, nearest first."""

    offsets: Ints
    positions: Ints
    distances: Floats
    """Squared."""


def nearest_of(kernel: RowsKernel[State], state: State, queries: Floats, n_jobs: int) -> tuple[Ints, Floats]:
    """Answer, for each row of `queries`, what the nearest point is."""
    positions, distances = np.empty(len(queries), dtype=np.int64), np.empty(len(queries))

    def task(part: slice) -> None:
        kernel(state, queries[part], positions[part], distances[part])

    for_rows(task, len(queries), n_jobs)
    return positions, distances


def k_nearest_of(kernel: RowsKernel[State], state: State, queries: Floats, k: int, n_jobs: int) -> tuple[Ints, Floats]:
    """Answer, for each row of `queries`, what the `k` nearest points are: -1 and inf where there are fewer."""
    shape = (len(queries), whole(k, "k", 1))
    positions, distances = np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf)

    def task(part: slice) -> None:
        kernel(state, queries[part], positions[part], distances[part])

    for_rows(task, len(queries), n_jobs)
    return positions, distances


def within_of(kernel: WithinKernel[State], state: State, queries: Floats, radius: float, n_jobs: int) -> Within:
    """Answer, for each row of `queries`, which points are within `radius`."""
    limit = positive(radius, "radius")
    limit *= limit  # a power would raise where a product is infinite

    parts: dict[int, Within] = {}

    def task(part: slice) -> None:
        rows = queries[part]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        positions, distances = np.empty(LANES, dtype=np.int64), np.empty(LANES)
        done = 0
        while (done := kernel(state, rows, limit, positions, distances, offsets, done)) < len(rows):
            room = 2 * len(positions)
            positions, distances = np.resize(positions, room), np.resize(distances, room)
        parts[part.start] = Within(offsets, positions[: offsets[-1]], distances[: offsets[-1]])

    for_rows(task, len(queries), n_jobs)
    in_order = [parts[start] for start in sorted(parts)]
    counts = np.concatenate([np.diff(part.offsets) for part in in_order])
    return Within(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.positions for part in in_order]),
        np.concatenate([part.distances for part in in_order]),
    )
