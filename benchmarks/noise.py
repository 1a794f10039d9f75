"""The practical learner where there is nothing to learn: labels that have nothing to do with the features."""

from collections.abc import Iterator

import numpy as np

from benchmarks.streams import Stream, late_nrmse
from benchmarks.verdicts import Verdict, at_most
from ellipack import MetricRegressor
from ellipack.validation import Floats

ROWS = 10_000
DIMENSIONS = (2, 8, 20)
_WORSE = 2.0


def draw(d: int, rows: int, seed: int = 0) -> Stream:
    """Return a stream of pure noise."""
    rng = np.random.default_rng(seed)
    return Stream(f"noise, d = {d}", rng.normal(size=(rows, d)), rng.normal(size=rows))


def running_mean(y: Floats) -> Floats:
    """Return the mean of the labels before each one, 0 before the first."""
    sums = np.concatenate([[0.0], np.cumsum(y)[:-1]])
    return np.asarray(sums / np.maximum(np.arange(len(y)), 1))


def verdicts(views: int = 1, rows: int = ROWS) -> Iterator[Verdict]:
    """Say how much worse than the running mean the learner is, over the second half of the rounds."""
    for d in DIMENSIONS:
        stream = draw(d, rows)
        made = MetricRegressor(views=views).progressive(stream.X, stream.y)
        worse = 100 * (late_nrmse(made, stream.y) / late_nrmse(running_mean(stream.y), stream.y) - 1)
        yield at_most(f"pure noise, d = {d}, {rows:,} rows: error above the running mean's", worse, _WORSE, " %")
