"""What the first format has not: four of the experts, the rounds that labels came in, the regression that fades.

A learner saved by it goes on as if nothing were new until its phase ends: the experts that it did not have take no part
in the mixture and can't move the stack. Then they begin, like all others.
"""

from itertools import chain

import numpy as np

from ellipack.checkpoint import Contents
from ellipack.errors import CheckpointError
from ellipack.learners.aggregation._kernels import ABSENT
from ellipack.learners.experts.names import GLOBAL, LOCAL
from ellipack.validation import Floats, Ints

_GLOBAL, _LOCAL = 3, 8  # experts of the first format, which were the first of those there are now


def is_earlier(saved: Contents) -> bool:
    """Whether these contents are of the first format."""
    return "memory/round_sums" not in saved.arrays


def completed(saved: Contents, views: int, d: int) -> Contents:
    """Return contents of the first format as what is saved today."""
    if "fading" in saved.facts or any(name.startswith("fading/") for name in saved.arrays):
        raise CheckpointError(f"{saved.place}memory/round_sums must be there, as there is a regression that fades")
    ridge = saved.part("ridge")
    fading = {"inverse": ridge.numbers("inverse", d + 1, d + 1), "coefficients": ridge.numbers("coefficients", d + 1)}
    rounds = {"memory/round_sums": _round_sums(saved.part("memory"), int(saved.ints("clock", 3)[0]))}
    arrays = {**saved.arrays, **rounds, **_of_experts(saved, _positions(views), len(GLOBAL) + views * len(LOCAL))}
    return Contents(saved.facts, arrays, saved.place).having(fading=Contents(arrays=fading))


def _positions(views: int) -> Ints:
    """Return where the experts of the first format stand among all."""
    local = (len(GLOBAL) + v * len(LOCAL) + np.arange(_LOCAL) for v in range(views))
    return np.fromiter(chain(range(_GLOBAL), *local), dtype=np.int64)


def _of_experts(saved: Contents, at: Ints, count: int) -> dict[str, Floats]:
    """Return the arrays that have an entry for each expert, the new ones' being nothing."""
    places = [("mixture", "priors", ABSENT), ("mixture", "gains", 0.0), ("mixture", "squares", 0.0)]
    places += [("stack", "coefficients", 0.0)]
    places += [(f"phase{i}", "expert_weights", 0.0) for i in range(saved.whole("phases", 0, 10_000))]
    arrays = {}
    for part, name, nothing in places:
        arrays[f"{part}/{name}"] = np.full(count, nothing)
        arrays[f"{part}/{name}"][at] = saved.part(part).numbers(name, len(at))
    arrays["stack/inverse"] = np.zeros((count, count))
    arrays["stack/inverse"][np.ix_(at, at)] = saved.part("stack").numbers("inverse", len(at), len(at))
    return arrays


def _round_sums(memory: Contents, clock: int) -> Floats:
    """Return sums of rounds as they would be if centres, which are in their order, were founded at an even pace."""
    size = memory.shape("label_counts", 1)[0]
    counts = memory.ints("label_counts", size, least=1)
    return np.asarray(counts * (np.arange(1, size + 1) / max(size, 1) * clock))
