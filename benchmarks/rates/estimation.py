"""Estimation: on fair coins, regret grows with the number of centers, at the rate of Theorem 1."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.command_line import run_cases
from benchmarks.rates.growth import group_by, late_slope, mean_and_spread, measure_growth
from benchmarks.rates.streams import CoinStream
from ellipack import Metric, PackingRegressor
from ellipack.theory import minimax_exponent, regret_exponent

EUCLIDEAN, RANK_IN_FIVE = "d dimensions, Euclidean metric", "5 dimensions, metric of rank rho"
CASES = [(EUCLIDEAN, rank, rank) for rank in (1, 2, 3, 4, 5)] + [(RANK_IN_FIVE, rank, 5) for rank in (1, 2, 3)]
"""Kind, rank and dimension."""

_TAIL = 1e-12  # eigenvalue of the other directions: too small to count up to 10**12 rounds


class Case(NamedTuple):
    """A run of Algorithm 1 on fair coins."""

    kind: str
    rank: int
    d: int
    seed: int
    rounds: int


def measure(rounds: int, seeds: int, jobs: int = 1) -> dict[str, Any]:
    """Run Algorithm 1 over every case and seed."""
    cases = [
        (f"coins, {kind}, rho = {rank}", Case(kind, rank, d, seed, rounds))
        for kind, rank, d in CASES
        for seed in range(seeds)
    ]
    runs = run_cases(measure_case, cases, jobs)
    return {"runs": runs, "slopes": fit_slopes(runs)}


def measure_case(case: Case) -> dict[str, Any]:
    """Run Algorithm 1 over one stream."""
    spectrum = [1.0] * case.rank + [_TAIL] * (case.d - case.rank)
    learner = PackingRegressor(Metric.from_diagonal(spectrum))
    growth = measure_growth(learner, CoinStream(case.d, case.seed), case.rounds)
    return {"kind": case.kind, "rank": case.rank, "seed": case.seed, **growth._asdict()}


def fit_slopes(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the slope of regret over ``ln(eT)``, and regret over centers times ``1 + ln(T / centers)``."""
    slopes = []
    for (kind, rank), group in group_by(runs, "kind", "rank").items():
        fitted = mean_and_spread([late_slope(each["rounds"], without_logarithm(each)) for each in group])
        shares = [regret_per_center(each) for each in group]
        theory = {"theory": regret_exponent(rank), "minimax": minimax_exponent(rank)}
        ends = {"share_low": min(shares), "share_high": max(shares)}
        slopes.append({"kind": kind, "rank": rank, **fitted, **theory, **ends})
    return slopes


def without_logarithm(run: dict[str, Any]) -> list[float]:
    """Return regret over ``ln(eT)``, the logarithm in the theorem."""
    return [float(each / np.log(np.e * t)) for each, t in zip(run["regret"], run["rounds"], strict=True)]


def regret_per_center(run: dict[str, Any]) -> float:
    """Return the last regret over centers times ``1 + ln(T / centers)``, a bound for labels in [0, 1]."""
    last, centers = run["rounds"][-1], run["centers"][-1]
    return float(run["regret"][-1] / (centers * (1 + np.log(last / centers))))
