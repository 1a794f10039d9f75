"""Choice of the metric at a phase's end: candidates from the gradient outer product, judged by kriging."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ellipack.learners.experts.judging._kernels import bench, fill_farthest, leave_one_out
from ellipack.learners.metric.config import MetricConfig
from ellipack.packing._kernels import Within
from ellipack.packing.index import Index
from ellipack.packing.tree._kernels import search_rows
from ellipack.validation import Floats, Ints

_LOYALTY = 0.01  # by which a newcomer must do better than the present metric, lest noise decide
_MEMORY = 0.5  # of the weight of a phase's judgement remains in the next
_SMALL_JURY, _FEW = 8, 20  # a share of the centres, a larger one of the judges, and so many neighbours
_FINALISTS = 5
_LEAST_ERROR = 1e-300
_LEAST_RANGE = 1e-300


class Standing(NamedTuple):
    """How well a candidate did: a log error relative to the others', and the number of judges that it is by."""

    value: float
    judges: float


Reputation = dict[str, Standing]
"""How kinds of candidates have done so far, by name."""


class Jury(NamedTuple):
    """Who judges: centres in standard units, their mean labels, which of them judge, and by how many neighbours."""

    seen: Floats
    labels: Floats
    judges: Ints
    neighbors: int

    def part(self, share: int) -> "Jury":
        """Return a jury with so small a share of the centres, those that judge and others."""
        drawn = np.arange(0, len(self.seen), share if len(self.seen) >= share * self.neighbors else 1)
        few = self.judges[:: max(1, share // 2)]
        kept = np.union1d(drawn, few)
        return Jury(self.seen[kept], self.labels[kept], np.searchsorted(kept, few), min(self.neighbors, _FEW))

    def errors(self, field: dict[str, Floats]) -> dict[str, float]:
        """Return the leave-one-out error, summed over judges, when whitened by the directions of each candidate."""
        kriged, d, count = min(self.neighbors, len(self.seen) - 1), self.seen.shape[1], len(self.judges)
        room, labels, limits = bench(kriged, d), in_units(self.labels), np.full(count, np.inf)
        near, squared = np.empty((count, kriged + 1), dtype=np.int64), np.empty((count, kriged + 1))
        found = Within(np.zeros(count + 1, dtype=np.int64), near.reshape(-1), squared.reshape(-1))
        heard: dict[str, float] = {}
        for name, directions in field.items():
            coordinates = np.ascontiguousarray(self.seen @ directions)
            if heard:  # what was near by one candidate hardly is far by the next, and the nearest can't be farther
                fill_farthest(coordinates, self.judges, near, limits)
            search_rows(Index.build(coordinates).tree, coordinates[self.judges], limits, kriged + 1, found, 0)
            heard[name] = leave_one_out(coordinates, labels, self.judges, near, squared, room)
        return heard


def in_units(labels: Floats) -> Floats:
    """Return labels less their least, over their range: what they are measured in is no matter to who judges."""
    least = labels.min()
    return np.asarray((labels - least) / max(labels.max() - least, _LEAST_RANGE))


def candidates(gop: Floats, current: Floats, config: MetricConfig) -> Iterator[tuple[str, Floats]]:
    """Yield names and whitening directions: the present ones, the identity, powers of the gradient outer product.

    The gradient outer product is taken as it is, as its diagonal alone (for streams whose axes matter), and as the
    mean of both.
    """
    yield "current", current
    yield "identity", np.eye(len(gop))
    size = np.linalg.norm(gop, 2) if np.isfinite(gop).all() else 0.0
    if not size > 0:
        return
    full, diagonal = gop / size, np.diag(np.diag(gop) / size)
    for name, matrix in (("full", full), ("diagonal", diagonal), ("mixed", (full + diagonal) / 2)):
        values, vectors = np.linalg.eigh(matrix)
        for ridge in config.ridges:
            for power in config.powers:
                weights = (np.maximum(values, 0) + ridge) ** (2 * power)
                yield f"{name}, ridge {ridge:g}, power {power:g}", vectors * np.sqrt(weights / weights.max())


def choose(
    gop: Floats, current: Floats, jury: Jury, config: MetricConfig, reputation: Reputation
) -> tuple[str, Floats]:
    """Return the candidate that does best, its name first.

    A small jury, drawn from the whole one, hears all candidates; the whole one only the best of them and the
    present metric. What counts is the logarithm of the leave-one-out error, averaged with what it was in phases
    before: a kind of candidate that did well will again. That `reputation` is moved on.
    """
    field = dict(candidates(gop, current, config))
    small = jury.part(_SMALL_JURY)
    first = _averaged(_standings(small, field), reputation)
    others = sorted(set(first) - {"current"}, key=lambda name: (first[name].value, name))
    final = {name: field[name] for name in ["current", *others[:_FINALISTS]]}
    # Among finalists standings are relative to each other; lifted to where these stand among all.
    lift = float(np.mean([first[name].value for name in final]))
    judged = {name: Standing(s.value + lift, s.judges) for name, s in _standings(jury, final).items()}
    last = _averaged(judged, reputation)
    for name, standing in {**first, **last}.items():
        reputation[name] = Standing(standing.value, standing.judges * _MEMORY)
    reputation.pop("current")  # it will be another metric next time
    winner = min(final, key=lambda name: last[name].value - (_LOYALTY if name == "current" else 0.0))
    return winner, field[winner]


def _standings(jury: Jury, field: dict[str, Floats]) -> Reputation:
    """Return how candidates stand: log errors less their mean, and how many judges say so."""
    values = {name: _logarithm(error) for name, error in jury.errors(field).items()}
    mean = sum(values.values()) / len(values)
    return {name: Standing(value - mean, float(len(jury.judges))) for name, value in values.items()}


def _logarithm(error: float) -> float:
    """Return the logarithm of an error: of the worst there is, if it is none because of an overflow on the way."""
    return math.log(max(error, _LEAST_ERROR)) if error <= 1 / _LEAST_ERROR else -math.log(_LEAST_ERROR)


def _averaged(heard: Reputation, before: Reputation) -> Reputation:
    """Return standings averaged with earlier ones, each by its number of judges."""
    averaged = {}
    for name, (value, judges) in heard.items():
        past, earlier = before.get(name, Standing(0.0, 0.0))
        averaged[name] = Standing((judges * value + earlier * past) / (judges + earlier), judges + earlier)
    return averaged
