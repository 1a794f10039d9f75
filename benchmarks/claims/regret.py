"""Regret against the true function and effective rank over time, in the Euclidean, the true and learned metrics."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.power_law import fit_exponent
from ellipack import (
    GradientOuterProduct,
    KernelDifferences,
    LocalSlopes,
    Metric,
    MetricRegressor,
    PackingRegressor,
    PhasedRegressor,
)
from ellipack.synthetic import LowRankStream
from ellipack.theory.schedules import phase_end
from ellipack.theory.spectrum import effective_rank
from ellipack.validation import Floats, Ints

EUCLIDEAN, TRUE_METRIC = "Algorithm 1, Euclidean metric", "Algorithm 1, true metric"
PHASED_APPENDIX_A, PHASED_SLOPES = "phased, appendix A", "phased, local slopes"
PRACTICAL = "MetricRegressor"
LATE_PHASES = 5
"""Slopes are fitted over so many of the last phases."""

_ANCHORS = 4096  # gradients are estimated at all rows of the first eleven phases, later at a sample of them
_RIDGE = 1e-6  # relative to the norm: the paper needs a positive definite metric

Learner = PackingRegressor | PhasedRegressor | MetricRegressor


def _phased(gradients: KernelDifferences | LocalSlopes) -> PhasedRegressor:
    return PhasedRegressor(gop=GradientOuterProduct(gradients, anchors=_ANCHORS))


REGRET_LEARNERS: dict[str, Callable[[LowRankStream], Learner]] = {
    EUCLIDEAN: lambda stream: PackingRegressor(),
    TRUE_METRIC: lambda stream: PackingRegressor(true_metric(stream)),
    PHASED_APPENDIX_A: lambda stream: _phased(KernelDifferences()),
    PHASED_SLOPES: lambda stream: _phased(LocalSlopes()),
    PRACTICAL: lambda stream: MetricRegressor(),
}
"""The paper's learners, one of them also with local slopes; and `MetricRegressor`, which the theorems do not cover."""


@dataclass(frozen=True)
class RegretCurve:
    """Regret and effective rank of a learner at the end of each of the paper's phases."""

    d: int
    rank: int
    seed: int
    learner: str
    rounds: list[int]
    regret: list[float]
    effective_rank: list[int]


def true_metric(stream: LowRankStream) -> Metric:
    """Return the metric of the stream's own gradient outer product."""
    gop = stream.gop()
    return Metric.from_gop(gop, _RIDGE * float(np.linalg.norm(gop, 2)))


def measure_regret(stream: LowRankStream, name: str, phases: int) -> RegretCurve:
    """Run a learner over so many of the paper's phases."""
    ends = np.array([phase_end(i) for i in range(1, phases + 1)])
    X, y = stream.draw(int(ends[-1]))
    learner = REGRET_LEARNERS[name](stream)
    excess_losses = (learner.progressive(X, y) - y) ** 2 - (stream.function(X) - y) ** 2
    regret = np.cumsum(excess_losses)[ends - 1]
    ranks = _ranks(learner, ends)
    return RegretCurve(stream.d, stream.rank, stream.random_state, name, ends.tolist(), regret.tolist(), ranks.tolist())


def fit_slopes(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean slope of each learner on each stream over the seeds, and the slope of the theorems."""
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for each in curves:
        groups.setdefault((each["d"], each["rank"], each["learner"]), []).append(each)
    slopes = []
    for (d, rank, name), group in groups.items():
        fitted = np.array([_slope(each) for each in group])
        rho = float(np.mean([each["effective_rank"][-1] for each in group]))
        theory = None if name == PRACTICAL else rho / (1 + rho)
        figures = {"slope": float(fitted.mean()), "spread": float(fitted.std()), "rho": rho, "theory": theory}
        slopes.append({"d": d, "rank": rank, "learner": name, **figures})
    return slopes


def _slope(curve: dict[str, Any]) -> float:
    rounds, regret = np.array(curve["rounds"]), np.array(curve["regret"])
    fitted = fit_exponent(rounds[-LATE_PHASES:], regret[-LATE_PHASES:])
    return 0.0 if fitted is None else fitted.exponent


def _ranks(learner: Learner, ends: Ints) -> Floats | Ints:
    """Return the effective rank at the end of each of the paper's phases.

    A phased learner restarts its clock in each phase: its rank is that of its metric after the rounds of the phase.
    """
    if isinstance(learner, PhasedRegressor):
        return learner.history().effective_rank[ends - 1]
    if isinstance(learner, PackingRegressor):
        return learner.history(ends).effective_rank
    history = learner.history()
    spectra = [np.ones(len(learner.eigenvalues_)), *history.eigenvalues]
    phase = np.searchsorted(history.end, ends, side="left")
    return np.array([int(effective_rank(spectra[i], t)) for i, t in zip(phase, ends, strict=True)])
