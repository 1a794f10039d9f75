"""Bounds on the regret of `IntrinsicDimensionRegressor`, in terms of the dimension that it has estimated.

The estimate D grows by 1 when more than ``(3/eps)**D`` centers have been added since it last grew. These are farther
apart than the current radius eps. Two facts follow for any sequence of rows:

- D is at most the smallest number for which no ``(3/eps)**D + 1`` rows are farther apart than eps, at any radius eps
  that occurs. It is at most r if all rows lie in a subspace of dimension r: by Lemma 1 there are at most ``(1 +
  2/eps)**r`` such rows, and eps is at most 1.
- There are at most ``sum_(k=1)^D 3**k T**(k/(offset+k))`` centers after T rounds.

The bounds below are those of Theorem 1 with this number of centers.
"""

import numpy as np

from ellipack.validation import check_integer, check_nonnegative

_PACKING = 3.0
ARBITRARY, NOISY = 1, 2
"""Offsets of the radius ``t**(-1/(offset+D))`` for arbitrary labels and for labels with noise."""


def manifold_center_bound(dimension: int, rounds: int, offset: int) -> float:
    """Return the bound on the number of centers: the number of rounds or a sum over the dimensions up to D.

    Parameters
    ----------
    dimension : int
        Estimate D of the dimension at the end.
    rounds : int
        Number of rounds T.
    offset : {1, 2}
        The radius is ``t**(-1/(offset + D))``.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> manifold_center_bound(1, rounds=400, offset=1)
    60.0
    """
    last, horizon = check_integer(dimension, "dimension", 1), check_integer(rounds, "rounds", 1)
    phases = np.arange(1, last + 1)
    shift = check_integer(offset, "offset", ARBITRARY, NOISY)
    with np.errstate(over="ignore"):
        centers = _PACKING**phases * float(horizon) ** (phases / (shift + phases))
    return float(min(horizon, centers.sum()))


def manifold_regret_bound(dimension: int, rounds: int, lipschitz: float) -> float:
    """Return the bound on the regret with arbitrary labels in [0, 1].

    It is ``N ln(e T/N) + 4 L T**(D/(1+D))``, where N is `manifold_center_bound`.

    Parameters
    ----------
    dimension : int
        Estimate D of the dimension at the end.
    rounds : int
        Number of rounds T.
    lipschitz : float
        Lipschitz constant L of the functions, with values in [0, 1], in the metric.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(manifold_regret_bound(1, rounds=10_000, lipschitz=1.0))
    1752
    """
    approximation = 4 * check_nonnegative(lipschitz, "lipschitz") * rounds ** (dimension / (1 + dimension))
    return _estimation(dimension, rounds, ARBITRARY) + float(approximation)


def manifold_noisy_regret_bound(dimension: int, rounds: int, lipschitz: float) -> float:
    """Return the bound on the expected regret against f, if labels are f plus noise of mean 0.

    It is ``N ln(e T/N) + 3 L**2 T**(D/(2+D))``, where N is `manifold_center_bound`. Which center gets a label does not
    depend on the noise, so that the value of f at a center costs ``(f(x_s) - f(x_t))**2 <= L**2 eps**2`` more than f on
    average.

    Parameters
    ----------
    dimension : int
        Estimate D of the dimension at the end, which does not depend on the noise either.
    rounds : int
        Number of rounds T.
    lipschitz : float
        Lipschitz constant L of f in the metric.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(manifold_noisy_regret_bound(1, rounds=10_000, lipschitz=1.0))
    455
    """
    approximation = 3 * check_nonnegative(lipschitz, "lipschitz") ** 2 * rounds ** (dimension / (2 + dimension))
    return _estimation(dimension, rounds, NOISY) + float(approximation)


def _estimation(dimension: int, rounds: int, offset: int) -> float:
    """Return what the means of the centers cost against the best constants."""
    centers = manifold_center_bound(dimension, rounds, offset)
    return float(centers * np.log(np.e * rounds / centers))
