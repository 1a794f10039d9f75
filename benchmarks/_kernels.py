"""A compiled peer: appendix A by its letter, so that what shared differences save is seen by itself."""

import numpy as np

from ellipack._kernels import kernel
from ellipack.validation import Floats


@kernel
def literal_gradients(anchors: Floats, X: Floats, y: Floats, scales: tuple[float, float, float], out: Floats) -> None:
    """Fill `out` with appendix A's gradients, every distance of every shifted query from scratch.

    `scales` are the bandwidth, the step and the mass threshold; the kernel is ``1 - u^2``.
    """
    bandwidth, step, mass = scales
    query = np.empty(X.shape[1])
    for a in range(len(anchors)):
        query[:] = anchors[a]
        for i in range(X.shape[1]):
            query[i] = anchors[a, i] + step
            forward, mass_forward = _regression(query, X, y, bandwidth)
            query[i] = anchors[a, i] - step
            back, mass_back = _regression(query, X, y, bandwidth)
            query[i] = anchors[a, i]
            out[a, i] = (forward - back) / (2.0 * step) if min(mass_forward, mass_back) >= mass else 0.0


@kernel
def _regression(query: Floats, X: Floats, y: Floats, bandwidth: float) -> tuple[float, int]:
    """Return the kernel regression at a point, and how many rows are within half a bandwidth."""
    inverse = 1.0 / (bandwidth * bandwidth)
    total, weighted, everyone = 0.0, 0.0, 0.0
    near = 0
    for j in range(len(X)):
        squared = 0.0
        for k in range(X.shape[1]):
            difference = X[j, k] - query[k]
            squared += difference * difference
        u = squared * inverse
        everyone += y[j]
        if u <= 0.25:
            near += 1
        if u < 1.0:
            total += 1.0 - u
            weighted += (1.0 - u) * y[j]
    return (weighted / total if total > 0.0 else everyone / len(X)), near
