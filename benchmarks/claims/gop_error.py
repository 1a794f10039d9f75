"""How far estimates of the gradient outer product are from the truth, with n rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.power_law import fit
from ellipack import GradientOuterProduct, KernelDifferences, LocalSlopes
from ellipack.metric import GradientEstimator
from ellipack.synthetic import LowRankStream

LETTER, TURNED, SLOPES = "appendix A", "appendix A, smaller step, no floor on mass", "local slopes"
ESTIMATORS: dict[str, GradientEstimator] = {
    LETTER: KernelDifferences(),
    TURNED: KernelDifferences(step_scale=0.2, mass_scale=0.0),
    SLOPES: LocalSlopes(),
}
"""The estimators there are; the second has constants of its own, which the paper leaves open."""

_ANCHORS = 4096


def errors(stream: LowRankStream, name: str, sizes: Iterable[int]) -> list[dict[str, Any]]:
    """Return the spectral norm of the error over that of the truth, for each number of rows."""
    truth = stream.gop()
    what = {"d": stream.d, "rank": stream.rank, "seed": stream.random_state, "estimator": name}
    found = []
    for n in sizes:
        estimate = GradientOuterProduct(ESTIMATORS[name], anchors=_ANCHORS).fit(*stream.draw(n)).gop_
        error = float(np.linalg.norm(estimate - truth, 2) / np.linalg.norm(truth, 2))
        found.append({**what, "n": n, "error": error})
    return found


def exponents(every: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the exponent with which each estimator's error falls on each stream."""
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for each in every:
        groups.setdefault((each["d"], each["rank"], each["estimator"]), []).append(each)
    found = []
    for (d, rank, name), group in groups.items():
        power = fit([each["n"] for each in group], [each["error"] for each in group])
        if power is not None:
            found.append({"d": d, "rank": rank, "estimator": name, **power._asdict()})
    return found
