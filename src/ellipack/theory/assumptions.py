"""Assumption 1 of the paper, examined on a sample: smoothness, bounded gradients, and mass in every ball."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ellipack.validation import Floats, check_all_positive, check_integer, check_positive, check_rows

_DIFFERENCE = 1e-4  # step of central differences: rounding errors of 1e-12, and a bias of the order of 1e-8
_BLOCK = 10**7  # numbers that are allocated at a time


class Assumption1(NamedTuple):
    """What a sample says about Assumption 1.

    Attributes
    ----------
    derivative_error : float
        Item 1, continuous differentiability: the largest difference between a partial derivative and the central
        difference of the function. About 0 if the gradients are continuous; of the order of a kink near a kink.
    gradient_bound : float
        Item 2: the largest norm of a gradient, an estimate of G from below.
    mass_constant : float
        Item 3: the largest ``C_mu`` that the sample admits; see `mass_constant`. About 0 if the distribution is not
        full-dimensional.
    """

    derivative_error: float
    gradient_bound: float
    mass_constant: float


def examine_assumption_1(
    X: ArrayLike, function: Callable[[Floats], Floats], gradients: Callable[[Floats], Floats], *, tau: float
) -> Assumption1:
    """Examine Assumption 1 of the paper on a sample.

    A sample can refute the assumption, but not prove it.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Sample of instances.
    function : callable
        Regression function, from rows to values.
    gradients : callable
        Its gradients, from rows to rows.
    tau : float
        The ``tau_0`` of the assumption: items 1 and 2 are examined on the sample and on the sample times ``1 + tau``.

    Returns
    -------
    assumption : Assumption1

    Examples
    --------
    >>> X = np.linspace(-1, 1, 201)[:, None]
    >>> smooth = examine_assumption_1(X, lambda X: X[:, 0] ** 2, lambda X: 2 * X, tau=0.5)
    >>> smooth.derivative_error < 1e-6, smooth.gradient_bound, smooth.mass_constant > 0.4
    (True, 3.0, True)
    >>> near = X + 1e-5  # a row is closer to the kink than the step of the difference
    >>> round(examine_assumption_1(near, lambda X: np.abs(X[:, 0]), np.sign, tau=0.5).derivative_error, 1)
    0.9
    """
    rows = check_rows(X)
    points = np.vstack([rows, rows * (1 + check_positive(tau, "tau"))])
    slopes = check_rows(gradients(points), rows.shape[1], "gradients")
    steps = _DIFFERENCE * np.eye(rows.shape[1])
    differences = np.stack([(function(points + h) - function(points - h)) / (2 * _DIFFERENCE) for h in steps], axis=1)
    return Assumption1(
        derivative_error=float(np.abs(differences - slopes).max()),
        gradient_bound=float(np.linalg.norm(slopes, axis=1).max()),
        mass_constant=mass_constant(rows, np.geomspace(_smallest_radius(*rows.shape), 2.0, 8)),
    )


def mass_constant(X: ArrayLike, radii: ArrayLike, points: int = 512) -> float:
    """Return the largest ``C_mu`` with ``mu_n(B(x, eps)) >= C_mu eps**d`` at points of a sample and the given radii.

    Here ``mu_n`` is the empirical distribution. Assumption 1 asks for the inequality for all eps > 0, which no
    distribution satisfies, since its left side is at most 1 (erratum 19). It is meant for eps up to the diameter of the
    domain, 2. For the uniform distribution on the unit ball, the constant is then ``2**-d``.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Sample of instances.
    radii : array-like of shape (k,)
        Radii eps. With small ones, few rows are in a ball and the estimate is noisy.
    points : int, default 512
        Number of rows at which balls are centered: those farthest from the mean, where there is the least mass.

    Returns
    -------
    constant : float

    Examples
    --------
    >>> X = np.linspace(-1, 1, 1001)[:, None]
    >>> round(mass_constant(X, [0.1, 1.0, 2.0]), 2)
    0.5
    """
    rows, reaches = check_rows(X), check_all_positive(radii, "radii")
    outermost = np.argsort(-np.linalg.norm(rows - rows.mean(axis=0), axis=1), kind="stable")
    at = rows[outermost[: check_integer(points, "points", 1)]]
    smallest = np.inf
    block = max(1, _BLOCK // rows.size)
    for start in range(0, len(at), block):
        apart = np.linalg.norm(at[start : start + block, None] - rows[None], axis=2)
        for reach in reaches:
            masses = np.mean(apart <= reach, axis=1)
            smallest = min(smallest, float(masses.min() / reach ** rows.shape[1]))
    return smallest


def _smallest_radius(n: int, d: int) -> float:
    """Return a radius of balls that hold about 100 of n rows in the unit ball."""
    return float(min(1.0, (100 / n) ** (1 / d)))
