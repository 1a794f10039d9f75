"""Gradients of the regression function, estimated from instances and labels."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError
from ellipack.metric._kernels import difference_gradients
from ellipack.theory.schedules import bandwidth, mass_threshold, step
from ellipack.threads import for_rows, thread_count
from ellipack.validation import Floats, labels, rows, within

KERNELS: Final = {
    "triangular": (1, 1),
    "epanechnikov": (2, 1),
    "biweight": (2, 2),
    "triweight": (2, 3),
    "tricube": (3, 3),
}
"""Kernels ``K(u) = (1 - u^a)^b`` by name: nonincreasing, positive on [0, 1), 0 at 1, as appendix A asks."""

_SCALES: Final = (1e-100, 1e100)  # within these no square, quotient or sum of squares over- or underflows


class GradientEstimator(Protocol):
    """What estimates gradients at anchors from rows and their labels."""

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Return the estimated gradient at each anchor, a row each; `anchors` are the rows themselves if not given."""
        ...


@dataclass(frozen=True)
class KernelDifferences:
    """Appendix A's estimator: central differences of a kernel regression, 0 where there is not `enough_mass`.

    With n rows of d features the bandwidth is ``bandwidth_scale * n**(-1/(2(d+1)))``, the step is ``step_scale *
    bandwidth**(1/4)``, and a shifted ball of half a bandwidth has enough mass from ``mass_scale * 2 d ln(2n)``
    rows. Scales of 1 are the letter of the paper; there, from about d = 3 and for any number of rows one is
    likely to have, no ball has enough mass and every gradient is 0.

    A ball with no row in it predicts the mean label (weights 1/n). So does a ball whose only rows lie on its very
    edge: they are in it, but the kernel gives them no weight, and the paper's ratio would be 0/0.
    """

    kernel: str = "epanechnikov"
    bandwidth_scale: float = 1.0
    step_scale: float = 1.0
    mass_scale: float = 1.0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        # Here and not on use: a learner must not find out in the middle of a batch.
        if self.kernel not in KERNELS:
            raise DomainError(f"kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        for name in ("bandwidth_scale", "step_scale"):
            within(getattr(self, name), name, *_SCALES)
        within(self.mass_scale, "mass_scale", 0.0, _SCALES[1])
        thread_count(self.n_jobs)

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Return the estimated gradient at each anchor, a row each; `anchors` are the rows themselves if not given."""
        table = rows(X)
        targets = labels(y, len(table))
        at = table if anchors is None else rows(anchors, table.shape[1], "anchors")
        n, d = table.shape
        reach = bandwidth(n, d, self.bandwidth_scale)
        scales = reach, step(reach, self.step_scale), mass_threshold(n, d, self.mass_scale)
        out = np.empty_like(at)
        powers = KERNELS[self.kernel]
        for_rows(
            lambda part: difference_gradients(at[part], table, targets, scales, powers, out[part]), len(at), self.n_jobs
        )
        return out
