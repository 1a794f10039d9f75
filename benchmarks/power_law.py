"""Growth rates: the exponent of a power law, fitted on logarithms."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class FittedExponent(NamedTuple):
    """An exponent and its standard error, estimated from the residuals of the fit."""

    exponent: float
    error: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def fit_exponent(x: ArrayLike, y: ArrayLike) -> FittedExponent | None:
    """Return the exponent p of the power law ``y = c x**p``, by least squares on logarithms.

    Returns None unless there are at least three points with ``x > 0`` and ``y > 0``, and at least two distinct `x`.

    >>> fit_exponent([1, 10, 100], [2, 20, 200])
    FittedExponent(exponent=1.0, error=0.0)
    >>> fit_exponent([1, 1, 1], [1, 2, 3]) is None
    True
    """
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    usable = (across > 0) & (up > 0) & np.isfinite(across) & np.isfinite(up)
    if usable.sum() < 3 or np.ptp(across[usable]) == 0:
        return None
    u, v = np.log(across[usable]), np.log(up[usable])
    u, v = u - u.mean(), v - v.mean()
    width = float(u @ u)
    exponent = float(u @ v) / width
    residuals = v - exponent * u
    error = math.sqrt(float(residuals @ residuals) / (len(u) - 2) / width)
    return FittedExponent(round(exponent, 6), round(error, 6))
