"""Gradients of the regression function, estimated from instances and labels."""

from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ellipack._core import DifferenceEstimator
from ellipack.errors import DomainError
from ellipack.parallel import for_row_slices, thread_count
from ellipack.theory.schedules import bandwidth, mass_threshold, step
from ellipack.validation import Floats, check_in_range, check_labels, check_rows

KERNELS: Final = {
    "triangular": (1, 1),
    "epanechnikov": (2, 1),
    "biweight": (2, 2),
    "triweight": (2, 3),
    "tricube": (3, 3),
}
"""Kernels ``K(u) = (1 - u^a)^b`` by name: nonincreasing, positive on [0, 1), 0 at 1, as appendix A asks."""

_SAMPLE, _FEW = 16, 0.2
"""If so many anchors have less than this part of all rows in reach, an index finds them."""

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
            check_in_range(getattr(self, name), name, *_SCALES)
        check_in_range(self.mass_scale, "mass_scale", 0.0, _SCALES[1])
        thread_count(self.n_jobs)

    def gradients(self, X: ArrayLike, y: ArrayLike, anchors: ArrayLike | None = None) -> Floats:
        """Return the estimated gradient at each anchor, a row each; `anchors` are the rows themselves if not given."""
        table = check_rows(X)
        return self._estimate(table, check_labels(y, len(table)), anchors)[0]

    def enough_mass(self, X: ArrayLike, anchors: ArrayLike | None = None) -> NDArray[np.bool_]:
        """Return ``A_i(x)`` for each anchor and feature: whether both shifted balls hold rows enough."""
        table = check_rows(X)
        return self._estimate(table, np.zeros(len(table)), anchors)[1]

    def _estimate(self, X: Floats, y: Floats, anchors: ArrayLike | None) -> tuple[Floats, NDArray[np.bool_]]:
        n, d = X.shape
        at = X if anchors is None else check_rows(anchors, d, "anchors")
        reach = bandwidth(n, d, self.bandwidth_scale)
        shift = step(reach, self.step_scale)
        threshold = mass_threshold(n, d, self.mass_scale)
        estimator = DifferenceEstimator(X, y, (reach, shift), threshold, KERNELS[self.kernel])
        if _few_in_reach(at[:: -(-len(at) // _SAMPLE)], X, reach + shift):
            estimator.build_index()
        out, enough = np.empty_like(at), np.empty(at.shape, dtype=np.bool_)

        def work(part: slice) -> None:
            out[part], enough[part] = estimator.gradients(at[part])

        for_row_slices(work, len(at), self.n_jobs)
        return out, enough


def _few_in_reach(anchors: Floats, X: Floats, farthest: float) -> bool:
    """Whether so few rows are in reach of these anchors that an index pays."""
    squared = ((anchors[:, None, :] - X[None]) ** 2).sum(axis=2)
    return bool(np.mean(squared <= farthest**2) < _FEW)
