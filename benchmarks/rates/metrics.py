"""The Euclidean, the true and a learned metric on noisy streams, one of them with ``mu_d > 0``."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from benchmarks.command_line import run_cases
from benchmarks.rates.estimation import without_logarithm
from benchmarks.rates.growth import group_by, late_slope, mean_and_spread, measure_growth
from benchmarks.rates.streams import CosineStream, NoisyStream
from ellipack import GradientOuterProduct, LocalSlopes, Metric, PackingRegressor, PhasedRegressor
from ellipack.theory import minimax_exponent, regret_exponent
from ellipack.validation import Floats

LOW_RANK, FULL_RANK = "one direction of 5, noise 0.25", "all of 5 directions, mu_d > 0"
EUCLIDEAN, TRUE_METRIC, LEARNED = "Euclidean metric", "true metric", "learned metric"
ALPHA = 0.5
"""Exponent of the regularization of the learned metric."""

_ANCHORS = 4096
_RIDGE = 1e-9  # relative to the norm: the paper needs a positive definite metric


@dataclass(frozen=True)
class GrowingSlopes:
    """`LocalSlopes` with ``n**exponent`` neighbors of n rows, so that noise averages out as rows arrive."""

    exponent: float

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Estimate the gradient at each anchor."""
        n, d = np.shape(X)
        return LocalSlopes(max(3 * d + 20, round(n**self.exponent))).gradients(X, y, anchors)


def make_stream(name: str, seed: int) -> NoisyStream | CosineStream:
    """Return the stream of a name."""
    if name == LOW_RANK:
        return NoisyStream(d=5, rank=1, seed=seed)
    return CosineStream((0.15, 0.006, 0.006, 0.006, 0.006), noise=0.32, seed=seed)


def make_learner(name: str, stream: NoisyStream | CosineStream) -> PackingRegressor | PhasedRegressor:
    """Return the learner of a name."""
    if name == LEARNED:
        return PhasedRegressor(alpha=ALPHA, gop=GradientOuterProduct(GrowingSlopes(0.5), anchors=_ANCHORS))
    if name == EUCLIDEAN:
        return PackingRegressor()
    gop = stream.gop()
    return PackingRegressor(Metric.from_gop(gop, _RIDGE * float(np.linalg.norm(gop, 2))))


class Case(NamedTuple):
    """A run of Algorithm 1 in one of the metrics."""

    stream: str
    learner: str
    seed: int
    rounds: int


def measure(rounds: int, seeds: int, jobs: int = 1) -> dict[str, Any]:
    """Run Algorithm 1 in each metric over each stream and seed."""
    cases = [
        (f"{name}, {stream}", Case(stream, name, seed, rounds))
        for stream in (LOW_RANK, FULL_RANK)
        for name in (EUCLIDEAN, TRUE_METRIC, LEARNED)
        for seed in range(seeds)
    ]
    runs = run_cases(measure_case, cases, jobs)
    return {"runs": runs, "slopes": fit_slopes(runs)}


def measure_case(case: Case) -> dict[str, Any]:
    """Run Algorithm 1 in one metric over one stream."""
    stream = make_stream(case.stream, case.seed)
    learner = make_learner(case.learner, stream)
    growth = measure_growth(learner, stream, case.rounds)
    named = {"stream": case.stream, "learner": case.learner, "seed": case.seed}
    return {**named, "rank": last_rank(learner), **growth._asdict()}


def last_rank(learner: PackingRegressor | PhasedRegressor) -> int:
    """Return the effective rank at the last round; of a phased learner, the larger of its last two phases."""
    ranks = [learner.effective_rank_]
    if isinstance(learner, PhasedRegressor):
        ranks += [phase.effective_rank for phase in learner.state_.phases[-1:]]
    return int(max(ranks))


def fit_slopes(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the slope of regret over ``ln(eT)``, and the rates at the rank that the learner has at the end."""
    slopes = []
    for (stream, learner), group in group_by(runs, "stream", "learner").items():
        fitted = mean_and_spread([late_slope(each["rounds"], without_logarithm(each)) for each in group])
        ranks = sorted({each["rank"] for each in group})
        theory = {"theory": regret_exponent(ranks[-1]), "minimax": minimax_exponent(ranks[-1])}
        regret = float(np.mean([each["regret"][-1] for each in group]))
        slopes.append({"stream": stream, "learner": learner, "ranks": ranks, "regret": regret, **fitted, **theory})
    return slopes
