"""Estimation: on fair coins, regret grows with the number of centers, at the rate of Theorem 1."""

from typing import Any

import numpy as np

from benchmarks.command_line import track_progress
from benchmarks.rates.growth import group_by, late_slope, mean_and_spread, measure_growth
from benchmarks.rates.streams import CoinStream
from ellipack import Metric, PackingRegressor
from ellipack.theory import minimax_exponent, regret_exponent

EUCLIDEAN, RANK_IN_FIVE = "d dimensions, Euclidean metric", "5 dimensions, metric of rank rho"
CASES = [(EUCLIDEAN, rank, rank) for rank in (1, 2, 3, 4, 5)] + [(RANK_IN_FIVE, rank, 5) for rank in (1, 2, 3)]
"""Kind, rank and dimension."""

_TAIL = 1e-12  # eigenvalue of the other directions: too small to count up to 10**12 rounds


def measure(rounds: int, seeds: int) -> dict[str, Any]:
    """Run Algorithm 1 over every case and seed."""
    cases = [
        (f"coins, {kind}, rho = {rank}", (kind, rank, d, seed)) for kind, rank, d in CASES for seed in range(seeds)
    ]
    runs = []
    for kind, rank, d, seed in track_progress(cases):
        learner = PackingRegressor(Metric.from_diagonal([1.0] * rank + [_TAIL] * (d - rank)))
        growth = measure_growth(learner, CoinStream(d, seed), rounds)
        runs.append({"kind": kind, "rank": rank, "seed": seed, **growth._asdict()})
    return {"runs": runs, "slopes": fit_slopes(runs)}


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
