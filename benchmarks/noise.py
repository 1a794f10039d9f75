"""The practical learner where there is nothing to learn: labels that have nothing to do with the features."""

from collections.abc import Iterator

from benchmarks.race.players import MeanLabel
from benchmarks.streams import late_nrmse, noise
from benchmarks.verdicts import Verdict, at_most
from ellipack import MetricRegressor

ROWS = 10_000
DIMENSIONS = (2, 8, 20)
_WORSE = 2.0


def verdicts(views: int = 1, rows: int = ROWS) -> Iterator[Verdict]:
    """Say how much worse than the running mean the learner is, over the second half of the rounds."""
    for d in DIMENSIONS:
        stream = noise(d, rows)
        made = MetricRegressor(views=views).progressive(stream.X, stream.y)
        means = MeanLabel().play(stream.X, stream.y)
        worse = 100 * (late_nrmse(made, stream.y) / late_nrmse(means, stream.y) - 1)
        yield at_most(f"pure noise, d = {d}, {rows:,} rows: error above the running mean's", worse, _WORSE, " %")
