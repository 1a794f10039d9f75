"""Many queries at once, over as many threads as are asked for.

Each query writes only its own part of the answer and none changes what it searches, so that neither the number of
threads nor their timing can change a bit of it.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ellipack.packing._kernels import Within
from ellipack.threads import for_rows
from ellipack.validation import Floats, Ints, positive, whole

State = TypeVar("State")
RowsKernel = Callable[[State, Floats, Ints, Floats], None]
SearchKernel = Callable[[State, Floats, Floats, int, Within, int], int]

_ALL = np.iinfo(np.int64).max


def nearest_of(kernel: RowsKernel[State], state: State, queries: Floats, n_jobs: int) -> tuple[Ints, Floats]:
    """Answer, for each row of `queries`, what the nearest point is."""
    positions, distances = np.empty(len(queries), dtype=np.int64), np.empty(len(queries))

    def task(part: slice) -> None:
        kernel(state, queries[part], positions[part], distances[part])

    for_rows(task, len(queries), n_jobs)
    return positions, distances


def k_nearest_of(
    kernel: SearchKernel[State], state: State, queries: Floats, k: int, n_jobs: int
) -> tuple[Ints, Floats]:
    """Answer, for each row of `queries`, what the `k` nearest points are: -1 and inf where there are fewer."""
    shape = (len(queries), whole(k, "k", 1))
    found = search(kernel, state, queries, np.full(len(queries), np.inf), k, n_jobs)
    held = found.offsets[1]  # as many for every query
    positions, distances = np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf)
    positions[:, :held] = found.positions.reshape(len(queries), held)
    distances[:, :held] = found.distances.reshape(len(queries), held)
    return positions, distances


def within_of(kernel: SearchKernel[State], state: State, queries: Floats, radius: float, n_jobs: int) -> Within:
    """Answer, for each row of `queries`, which points are within `radius`."""
    limit = positive(radius, "radius")
    limit *= limit  # a power would raise where a product is infinite
    return search(kernel, state, queries, np.full(len(queries), limit), None, n_jobs)


def search(
    kernel: SearchKernel[State], state: State, queries: Floats, limits: Floats, most: int | None, n_jobs: int = 1
) -> Within:
    """Answer, for each row of `queries`, which points are within a limit of its own (squared): so many, or all."""
    parts: dict[int, Within] = {}

    def task(part: slice) -> None:
        rows, reach = queries[part], limits[part]
        room = len(rows) * (most or 1)
        found = Within(np.zeros(len(rows) + 1, np.int64), np.empty(room, np.int64), np.empty(room))
        done = 0
        while (done := kernel(state, rows, reach, most or _ALL, found, done)) < len(rows):
            room *= 2
            found = Within(found.offsets, np.resize(found.positions, room), np.resize(found.distances, room))
        held = slice(found.offsets[-1])
        parts[part.start] = Within(found.offsets, found.positions[held], found.distances[held])

    for_rows(task, len(queries), n_jobs)
    if len(parts) == 1:
        return parts[0]
    in_order = [parts[start] for start in sorted(parts)]
    counts = np.concatenate([np.diff(part.offsets) for part in in_order])
    return Within(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.positions for part in in_order]),
        np.concatenate([part.distances for part in in_order]),
    )
