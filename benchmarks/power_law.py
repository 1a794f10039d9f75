"""How fast something grows: the exponent of a power, by a line through logarithms."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Power(NamedTuple):
    """An exponent, and the standard error that the points' scatter about the line gives it."""

    exponent: float
    error: float

    def __str__(self) -> str:
        return f"{self.exponent:.2f} ± {self.error:.2f}"


def fit(x: ArrayLike, y: ArrayLike) -> Power | None:
    """Return the exponent p of the power law ``y = c x**p`` by least squares on logarithms; none of too few points.

    Three points above 0 at two or more places are the fewest that have a scatter.

    >>> fit([1, 10, 100], [2, 20, 200])
    Power(exponent=1.0, error=0.0)
    >>> fit([1, 1, 1], [1, 2, 3]) is None
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
    rest = v - exponent * u
    error = math.sqrt(float(rest @ rest) / (len(u) - 2) / width)
    return Power(round(exponent, 6), round(error, 6))
