"""The curves: the settings of their points, the measurement of each in its own process, and fitted exponents."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.command_line import track_progress
from benchmarks.power_law import fit_exponent
from ellipack import MetricRegressor, PackingRegressor
from ellipack.synthetic import LowRankStream

METRIC, PACKING = MetricRegressor.__name__, PackingRegressor.__name__
SCALING_LEARNERS = METRIC, PACKING

CURVES = {"rounds": "rounds", "dimension": "d", "rank": "rank", "centers": "max_centers"}
"""For each curve, the key of a point that varies along it."""

MEASURES = {
    "microseconds": "cost of a round",
    "peak_bytes": "peak memory",
    "file_bytes": "saved file",
    "n_centers": "centers",
}
"""The keys of what is measured at a point, and their headings."""

Point = dict[str, Any]
"""A setting, without its checkpoints, and what was measured at one of them."""

_D, _RANK = 20, 2
_WIDE_D = 40  # features along the curve of ranks up to 20
_MAX_CENTERS = 20_000
_SMALL_EIGENVALUE = 1e-8  # of Algorithm 1's metric: too small to raise the effective rank in any run here


@dataclass(frozen=True)
class Setting:
    """A learner, a stream, and the rounds after which to measure.

    Parameters
    ----------
    curve : str
        "rounds", "dimension", "rank" or "centers".
    learner : str
        "MetricRegressor", or "PackingRegressor" with a metric of the relevant directions.
    checkpoints : tuple of int
        Rounds after which to measure, increasing. Cost is that of the rounds since the checkpoint before.
    d, rank : int
        Dimension and rank of the stream.
    max_centers : int
        Of `MetricRegressor`. Algorithm 1 has no limit.
    seed : int
        Of the stream.
    """

    curve: str
    learner: str
    checkpoints: tuple[int, ...]
    d: int = _D
    rank: int = _RANK
    max_centers: int = _MAX_CENTERS
    seed: int = 0

    def stream(self) -> LowRankStream:
        """Return the stream."""
        return LowRankStream(d=self.d, rank=self.rank, random_state=self.seed)

    def make_learner(self) -> MetricRegressor | PackingRegressor:
        """Return a new learner."""
        if self.learner == METRIC:
            return MetricRegressor(self.max_centers)
        relevant = self.stream().subspace @ self.stream().subspace.T
        return PackingRegressor(relevant + _SMALL_EIGENVALUE * (np.eye(self.d) - relevant))


@dataclass(frozen=True)
class ScalingSize:
    """Extent of the curves.

    Parameters
    ----------
    rounds : int
        Rounds of the longest run, along the curve "rounds".
    rounds_per_point : int
        Rounds of each point along dimension and rank.
    rounds_along_centers : int
        Rounds of each point along centers.
    dimensions, ranks, centers : tuple of int
        Places of the points.
    seeds : int
        Number of streams for each point.
    long_seeds : int
        Number of streams along the curve "rounds".
    """

    rounds: int = 50_000
    rounds_per_point: int = 4_000
    rounds_along_centers: int = 20_000
    dimensions: tuple[int, ...] = (2, 5, 10, 20, 50, 100, 200)
    ranks: tuple[int, ...] = (1, 2, 5, 10, 20)
    centers: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000, 20_000)
    seeds: int = 2
    long_seeds: int = 1


QUICK = ScalingSize()
FULL = ScalingSize(
    rounds=1_000_000,
    rounds_per_point=20_000,
    rounds_along_centers=100_000,
    centers=(500, 2_000, 5_000, 20_000, 50_000, 100_000),
    seeds=3,
    long_seeds=2,
)


def checkpoints_up_to(rounds: int, first: int = 1_000) -> tuple[int, ...]:
    """Return rounds from the first to the last, each about twice the one before.

    >>> checkpoints_up_to(10_000)
    (1000, 2154, 4642, 10000)
    """
    count = 1 + max(1, round(3 * np.log10(rounds / first))) if rounds > first else 1
    return tuple(np.unique(np.geomspace(min(first, rounds), rounds, count).round().astype(int)).tolist())


def list_settings(size: ScalingSize) -> Iterator[Setting]:
    """Yield the settings of all curves, the longest runs last."""
    halves = size.rounds_per_point // 2, size.rounds_per_point
    halves_along_centers = size.rounds_along_centers // 2, size.rounds_along_centers
    for seed in range(size.seeds):
        for learner in SCALING_LEARNERS:
            for d in size.dimensions:
                yield Setting("dimension", learner, halves, d=d, seed=seed)
            for rank in size.ranks:
                yield Setting("rank", learner, halves, d=max(_WIDE_D, rank), rank=rank, seed=seed)
        for max_centers in size.centers:
            yield Setting("centers", METRIC, halves_along_centers, max_centers=max_centers, seed=seed)
    for seed in range(size.long_seeds):
        for learner in SCALING_LEARNERS:
            yield Setting("rounds", learner, checkpoints_up_to(size.rounds), seed=seed)


def measure_settings(settings: Iterable[Setting]) -> list[Point]:
    """Return the points of all settings."""
    named = [(f"{each.learner} over {each.curve}, to {each.checkpoints[-1]:,} rounds", each) for each in settings]
    return [point for setting in track_progress(named) for point in measure_points(setting)]


def measure_points(setting: Setting) -> list[Point]:
    """Measure a setting in a new process; return a point for each checkpoint of "rounds", else for the last alone."""
    command = [sys.executable, "-m", "benchmarks.scaling.measure"]
    done = subprocess.run(command, input=json.dumps(asdict(setting)), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{setting} could not be measured: {done.stderr}")
    measured = json.loads(done.stdout)
    keys = {name: value for name, value in asdict(setting).items() if name != "checkpoints"}
    return [keys | each for each in (measured if setting.curve == "rounds" else measured[-1:])]


def points_along(points: Iterable[Point], curve: str, learner: str) -> list[tuple[float, Point]]:
    """Return the points of a learner along a curve, each with its place, in increasing order.

    Algorithm 1 has no `max_centers`. Its points along "centers" are those along "rounds", placed by number of centers.
    """
    unlimited = curve == "centers" and learner == PACKING
    source, key = ("rounds", "n_centers") if unlimited else (curve, CURVES[curve])
    chosen = [each for each in points if (each["curve"], each["learner"]) == (source, learner)]
    return sorted(((float(each[key]), each) for each in chosen), key=lambda pair: pair[0])


def fit_exponents(points: list[Point]) -> list[dict[str, Any]]:
    """Return the exponent of each measure along each curve, with its standard error."""
    fitted = []
    for curve in CURVES:
        for learner in SCALING_LEARNERS:
            placed = points_along(points, curve, learner)
            for measure in MEASURES:
                exponent = fit_exponent([x for x, _ in placed], [each[measure] for _, each in placed])
                if exponent is not None:
                    fitted.append({"curve": curve, "learner": learner, "measure": measure, **exponent._asdict()})
    return fitted
