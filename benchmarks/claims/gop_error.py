"""Error of estimates of the gradient outer product against the number of rows."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from benchmarks.power_law import fit_exponent
from ellipack import GradientOuterProduct, KernelDifferences, LocalSlopes
from ellipack.metric import GradientEstimator
from ellipack.synthetic import LowRankStream

APPENDIX_A, TUNED_APPENDIX_A = "appendix A", "appendix A, smaller step, no mass threshold"
LOCAL_SLOPES = "local slopes"
ESTIMATORS: dict[str, GradientEstimator] = {
    APPENDIX_A: KernelDifferences(),
    TUNED_APPENDIX_A: KernelDifferences(step_scale=0.2, mass_scale=0.0),
    LOCAL_SLOPES: LocalSlopes(),
}
"""The estimators. The second one has other constants, which the paper leaves open."""

_ANCHORS = 4096


def measure_errors(stream: LowRankStream, name: str, sizes: Iterable[int]) -> list[dict[str, Any]]:
    """Return the spectral norm of the error, relative to that of the truth, for each number of rows."""
    truth = stream.gop()
    keys = {"d": stream.d, "rank": stream.rank, "seed": stream.random_state, "estimator": name}
    errors = []
    for n in sizes:
        estimate = GradientOuterProduct(ESTIMATORS[name], anchors=_ANCHORS).fit(*stream.draw(n)).gop_
        error = float(np.linalg.norm(estimate - truth, 2) / np.linalg.norm(truth, 2))
        errors.append({**keys, "n": n, "error": error})
    return errors


def fit_error_exponents(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the exponent of the error in the number of rows, for each estimator and stream."""
    groups: dict[tuple[int, int, str], list[dict[str, Any]]] = {}
    for each in errors:
        groups.setdefault((each["d"], each["rank"], each["estimator"]), []).append(each)
    fitted = []
    for (d, rank, name), group in groups.items():
        exponent = fit_exponent([each["n"] for each in group], [each["error"] for each in group])
        if exponent is not None:
            fitted.append({"d": d, "rank": rank, "estimator": name, **exponent._asdict()})
    return fitted
