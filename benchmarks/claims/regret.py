"""Regret against the true function, and the effective rank, over time: in Euclid's, the true and a learned metric."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.power_law import fit
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

EUCLIDEAN, TRUE = "Algorithm 1, Euclidean metric", "Algorithm 1, true metric"
APPENDIX, SLOPES = "phased, appendix A", "phased, local slopes"
PRACTICAL = "MetricRegressor"
LATE = 5
"""Slopes are fitted over so many of the last phases, each twice as long as the one before."""

_ANCHORS = 4096  # at which gradients are estimated: all rows of the first eleven phases, a draw of them later
_RIDGE = 1e-6  # of the true metric, relative to its norm: the paper wants one that is positive definite

Learner = PackingRegressor | PhasedRegressor | MetricRegressor


def _phased(gradients: KernelDifferences | LocalSlopes) -> PhasedRegressor:
    return PhasedRegressor(gop=GradientOuterProduct(gradients, anchors=_ANCHORS))


LEARNERS: dict[str, Callable[[LowRankStream], Learner]] = {
    EUCLIDEAN: lambda stream: PackingRegressor(),
    TRUE: lambda stream: PackingRegressor(true_metric(stream)),
    APPENDIX: lambda stream: _phased(KernelDifferences()),
    SLOPES: lambda stream: _phased(LocalSlopes()),
    PRACTICAL: lambda stream: MetricRegressor(),
}
"""Who plays: the paper's learners, one of them with another estimator; and ours, which has no such theorem."""


@dataclass(frozen=True)
class Played:
    """What a learner did on a stream: its regret by the end of each of the paper's phases, and its rank there."""

    d: int
    rank: int
    seed: int
    learner: str
    marks: list[int]
    regret: list[float]
    effective_rank: list[int]


def true_metric(stream: LowRankStream) -> Metric:
    """Return the stream's own gradient outer product as a metric."""
    gop = stream.gop()
    return Metric.from_gop(gop, _RIDGE * float(np.linalg.norm(gop, 2)))


def play(stream: LowRankStream, name: str, phases: int) -> Played:
    """Let a learner play so many of the paper's phases."""
    marks = np.array([phase_end(i) for i in range(1, phases + 1)])
    X, y = stream.draw(int(marks[-1]))
    learner = LEARNERS[name](stream)
    losses = (learner.progressive(X, y) - y) ** 2 - (stream.function(X) - y) ** 2
    regret = np.cumsum(losses)[marks - 1]
    ranks = _ranks(learner, marks)
    return Played(stream.d, stream.rank, stream.random_state, name, marks.tolist(), regret.tolist(), ranks.tolist())


def slopes(played: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fitted slope of each learner on each stream, over seeds, beside the one that the theorems bound."""
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for each in played:
        groups.setdefault((each["d"], each["rank"], each["learner"]), []).append(each)
    found = []
    for (d, rank, name), group in groups.items():
        fitted = np.array([_slope(each) for each in group])
        rho = float(np.mean([each["effective_rank"][-1] for each in group]))
        theory = None if name == PRACTICAL else rho / (1 + rho)
        figures = {"slope": float(fitted.mean()), "spread": float(fitted.std()), "rho": rho, "theory": theory}
        found.append({"d": d, "rank": rank, "learner": name, **figures})
    return found


def _slope(each: dict[str, Any]) -> float:
    marks, regret = np.array(each["marks"]), np.array(each["regret"])
    power = fit(marks[-LATE:], regret[-LATE:])
    return 0.0 if power is None else power.exponent


def _ranks(learner: Learner, marks: Ints) -> Floats | Ints:
    """Return the effective rank at the end of each of the paper's phases.

    There a phased learner's is that of its metric after the phase's own rounds, since it starts its clock anew.
    """
    if isinstance(learner, PhasedRegressor):
        return learner.history().effective_rank[marks - 1]
    if isinstance(learner, PackingRegressor):
        return learner.history(marks).effective_rank
    history = learner.history()
    spectra = [np.ones(len(learner.eigenvalues_)), *history.eigenvalues]
    phase = np.searchsorted(history.end, marks, side="left")
    return np.array([int(effective_rank(spectra[i], t)) for i, t in zip(phase, marks, strict=True)])
