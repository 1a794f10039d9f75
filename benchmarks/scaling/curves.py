"""What is measured: the curves, and the settings of the points on them."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.command_line import following
from benchmarks.power_law import fit
from ellipack import MetricRegressor, PackingRegressor
from ellipack.synthetic import LowRankStream

METRIC, PACKING = MetricRegressor.__name__, PackingRegressor.__name__
LEARNERS = METRIC, PACKING

_D, _RANK = 20, 2
_WIDE = 40  # features where ranks go up to 20
_CENTERS = 20_000
_FADED = 1e-8  # the other eigenvalues of Algorithm 1's metric: too small to count in any number of rounds played


@dataclass(frozen=True)
class Setting:
    """A learner on a stream, and the rounds after which it is looked at.

    Attributes
    ----------
    curve : of which this is a point, or several: "rounds", "dimension", "rank" or "centers".
    learner : "MetricRegressor", or "PackingRegressor" in a metric that knows the directions that matter.
    marks : the rounds, in rising order. A mark's cost is that of the rounds since the mark before.
    d, rank : of the stream.
    max_centers : of `MetricRegressor`; Algorithm 1 has as many as it has.
    seed : of the stream.
    """

    curve: str
    learner: str
    marks: tuple[int, ...]
    d: int = _D
    rank: int = _RANK
    max_centers: int = _CENTERS
    seed: int = 0

    def stream(self) -> LowRankStream:
        """Return the stream, from which rows are drawn elsewhere: never all at once."""
        return LowRankStream(d=self.d, rank=self.rank, random_state=self.seed)

    def make(self) -> MetricRegressor | PackingRegressor:
        """Return the learner, before its first round."""
        if self.learner == METRIC:
            return MetricRegressor(self.max_centers)
        matters = self.stream().subspace @ self.stream().subspace.T
        return PackingRegressor(matters + _FADED * (np.eye(self.d) - matters))


@dataclass(frozen=True)
class Extent:
    """How far the curves go: the longest run, the rounds of all other points, their places, and seeds of each."""

    rounds: int = 50_000
    fixed: int = 4_000
    crowded: int = 20_000
    dimensions: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    ranks: tuple[int, ...] = (1, 2, 5, 10, 20)
    centers: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
    seeds: int = 2
    long_seeds: int = 1


QUICK = Extent()
FULL = Extent(
    rounds=1_000_000,
    fixed=20_000,
    crowded=100_000,
    centers=(500, 2_000, 5_000, 20_000, 50_000, 100_000),
    seeds=3,
    long_seeds=2,
)


def marks_up_to(rounds: int, first: int = 1_000) -> tuple[int, ...]:
    """Return rounds from the first to the last, each about twice the one before.

    >>> marks_up_to(10_000)
    (1000, 2154, 4642, 10000)
    """
    count = 1 + max(1, round(3 * np.log10(rounds / first))) if rounds > first else 1
    return tuple(np.unique(np.geomspace(min(first, rounds), rounds, count).round().astype(int)).tolist())


def settings(extent: Extent) -> Iterator[Setting]:
    """Yield every setting of all curves, the longest runs last."""
    half = extent.fixed // 2, extent.fixed
    for seed in range(extent.seeds):
        for learner in LEARNERS:
            for d in extent.dimensions:
                yield Setting("dimension", learner, half, d=d, seed=seed)
            for rank in extent.ranks:
                yield Setting("rank", learner, half, d=max(_WIDE, rank), rank=rank, seed=seed)
        for most in extent.centers:
            yield Setting("centers", METRIC, (extent.crowded // 2, extent.crowded), max_centers=most, seed=seed)
    for seed in range(extent.long_seeds):
        for learner in LEARNERS:
            yield Setting("rounds", learner, marks_up_to(extent.rounds), seed=seed)


Point = dict[str, Any]
"""A mark beside its setting, less the marks."""

CURVES = {"rounds": "rounds", "dimension": "d", "rank": "rank", "centers": "max_centers"}
"""For each curve, what of a point is laid out across."""

MEASURES = {
    "microseconds": "cost of a round",
    "peak": "peak memory",
    "saved": "saved file",
    "n_centers": "centres",
}
"""What is measured at a point, and what it is called."""


def run(settings: Iterable[Setting]) -> list[Point]:
    """Return the points of all settings."""
    named = [(f"{each.learner} over {each.curve}, to {each.marks[-1]:,} rounds", each) for each in settings]
    return [point for setting in following(named) for point in points(setting)]


def points(setting: Setting) -> list[Point]:
    """Measure a setting in a process of its own; along "rounds" each mark is a point, elsewhere the last alone."""
    command = [sys.executable, "-m", "benchmarks.scaling.measure"]
    done = subprocess.run(command, input=json.dumps(asdict(setting)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{setting} could not be measured: {done.stderr}")
    marks = json.loads(done.stdout)
    what = {name: value for name, value in asdict(setting).items() if name != "marks"}
    return [what | mark for mark in (marks if setting.curve == "rounds" else marks[-1:])]


def along(every: Iterable[Point], curve: str, learner: str) -> list[tuple[float, Point]]:
    """Return a learner's points on a curve, each with where it is, in rising order.

    Algorithm 1 has no `max_centers`: it has as many centres as it has, so those of its points along "rounds" stand.
    """
    founds = curve == "centers" and learner == PACKING
    source, across = ("rounds", "n_centers") if founds else (curve, CURVES[curve])
    chosen = [each for each in every if (each["curve"], each["learner"]) == (source, learner)]
    return sorted(((float(each[across]), each) for each in chosen), key=lambda pair: pair[0])


def exponents(every: list[Point]) -> list[dict[str, Any]]:
    """Return the exponent of each measure along each curve, with its standard error."""
    found = []
    for curve in CURVES:
        for learner in LEARNERS:
            placed = along(every, curve, learner)
            for measure in MEASURES:
                power = fit([x for x, _ in placed], [each[measure] for _, each in placed])
                if power is not None:
                    found.append({"curve": curve, "learner": learner, "measure": measure, **power._asdict()})
    return found
