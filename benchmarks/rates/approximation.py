"""Approximation: a zigzag as fine as the last radius costs a share of the radius in each round."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.command_line import run_cases
from benchmarks.rates.growth import LATE, group_by, late_slope, mean_and_spread, split_at
from benchmarks.rates.streams import ZigzagStream
from ellipack import PackingRegressor
from ellipack.theory import minimax_exponent, regret_exponent

DIMENSIONS = (1, 2, 3)


class Case(NamedTuple):
    """A run of Algorithm 1 to several horizons, the last of which is `rounds`."""

    d: int
    seed: int
    rounds: int


def measure(rounds: int, seeds: int, jobs: int = 1) -> dict[str, Any]:
    """Run Algorithm 1 to each horizon, over a stream of its own."""
    cases = [(f"zigzag, d = {d}", Case(d, seed, rounds)) for d in DIMENSIONS for seed in range(seeds)]
    runs = run_cases(measure_case, cases, jobs)
    return {"runs": runs, "slopes": fit_slopes(runs)}


def measure_case(case: Case) -> dict[str, Any]:
    """Return both terms of the regret at each horizon."""
    horizons = [case.rounds >> j for j in reversed(range(LATE))]
    terms = [measure_terms(ZigzagStream(case.d, case.seed, horizon)) for horizon in horizons]
    approximation, estimation = (list(each) for each in zip(*terms, strict=True))
    both = {"rounds": horizons, "approximation": approximation, "estimation": estimation}
    return {"rank": case.d, "seed": case.seed, **both}


def measure_terms(stream: ZigzagStream) -> tuple[float, float]:
    """Return the approximation and the estimation term of the regret at the horizon of a stream.

    The approximation term is the loss of the best constant of each ball less that of the function. The labels are 0
    and 1, so that the loss of the best constant of a ball is ``n m (1 - m)``, with its number n and mean m of labels.
    """
    learner, loss, best = PackingRegressor(), 0.0, 0.0
    for _, part in split_at(stream, [stream.horizon]):
        loss += float(np.sum((learner.progressive(part.X, part.y) - part.y) ** 2))
        best += float(np.sum((part.f - part.y) ** 2))
    core = learner.state_.core
    means = core.label_sums / core.label_counts
    of_constants = float(np.sum(core.label_counts * means * (1 - means)))
    return of_constants - best, loss - of_constants


def fit_slopes(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the slope of the approximation term over horizons."""
    slopes = []
    for (rank,), group in group_by(runs, "rank").items():
        fitted = mean_and_spread([late_slope(each["rounds"], each["approximation"]) for each in group])
        # Per round and radius; Theorem 1 charges 2 (1 + 1/rho) for a function of Lipschitz constant 1.
        share = float(
            np.mean([each["approximation"][-1] / each["rounds"][-1] ** regret_exponent(rank) for each in group])
        )
        theory = {"theory": regret_exponent(rank), "minimax": minimax_exponent(rank)}
        slopes.append({"rank": rank, **fitted, **theory, "share": share})
    return slopes
