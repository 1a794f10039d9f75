"""Growth of regret: a learner over a stream, regret and centers at a few rounds."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.power_law import fit_exponent
from benchmarks.rates.streams import Chunk, Stream
from ellipack import PackingRegressor, PhasedRegressor

HALVINGS = 10
"""Regret is recorded at T, T/2, T/4 and so on, down to T / 2**HALVINGS."""

LATE = 5
"""Slopes are fitted to so many of the last records, which span a factor of 16 in T."""


class Growth(NamedTuple):
    """Regret and number of centers at rounds. A phased learner counts the centers of its current phase."""

    rounds: list[int]
    regret: list[float]
    centers: list[int]


def record_rounds(horizon: int) -> list[int]:
    """Return the rounds at which regret is recorded.

    >>> record_rounds(8)
    [1, 2, 4, 8]
    """
    return sorted({max(1, horizon >> j) for j in range(HALVINGS + 1)})


def measure_growth(learner: PackingRegressor | PhasedRegressor, stream: Stream, horizon: int) -> Growth:
    """Run a learner over the first `horizon` rows of a stream."""
    rounds, regret, centers = record_rounds(horizon), [], []
    total = 0.0
    for end, part in split_at(stream, rounds):
        total += float(np.sum((learner.progressive(part.X, part.y) - part.y) ** 2 - (part.f - part.y) ** 2))
        if end in rounds:
            regret.append(total)
            centers.append(int(learner.n_centers_))
    return Growth(rounds, regret, centers)


def split_at(stream: Stream, ends: list[int]) -> Iterator[tuple[int, Chunk]]:
    """Yield the first rows of a stream up to the last of `ends`, cut at `ends`, with the number of rows so far."""
    done, left = 0, list(ends)
    for chunk in stream.chunks():
        start = 0
        while start < len(chunk.y) and left:
            stop = min(len(chunk.y), start + left[0] - done)
            done += stop - start
            yield done, Chunk(*(each[start:stop] for each in chunk))
            if done == left[0]:
                left.pop(0)
            start = stop
        if not left:
            return


def late_slope(rounds: list[int], values: list[float]) -> float:
    """Return the exponent of the power law through the last records; 0 if fewer than three of them are positive."""
    fitted = fit_exponent(rounds[-LATE:], values[-LATE:])
    return 0.0 if fitted is None else fitted.exponent


def mean_and_spread(values: list[float]) -> dict[str, float]:
    """Return the mean and the standard deviation over seeds."""
    return {"slope": float(np.mean(values)), "spread": float(np.std(values))}


def group_by(runs: list[dict[str, Any]], *names: str) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """Return runs that agree in the fields `names`, by the values of these fields."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault(tuple(run[name] for name in names), []).append(run)
    return groups
