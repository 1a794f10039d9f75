"""Bounds on the regret of `LocallyAdaptiveRegressor` against the prunings of its tree.

A pruning E is a set of nodes such that the path of every row meets exactly one of them. The prediction of the learner
is the mean of the nodes on the path, weighted by exponential weights, and the square loss on [0, 1] is exp-concave with
the rate 1/2. Each round decreases the relative entropy from the uniform distribution on E to the weights by at least
``(loss of the learner - loss of the node of E) / (2 |E|)``. It starts at ``ln(M / |E|)`` for M nodes and stays at least
0. The learner therefore loses at most ``2 |E| ln(M / |E|)`` against the pruning. A node with n labels loses at most
``ln(e n)`` against the best constant, and the value of f at its center at most ``2 L eps`` per round against f.
"""

import numpy as np
from numpy.typing import ArrayLike

from ellipack.errors import DomainError, ShapeError
from ellipack.validation import Floats, as_floats, check_finite, check_integer, check_nonnegative


def pruning_certificate(n_nodes: int, leaf_counts: ArrayLike, variation: float) -> float:
    """Return a bound on the regret against a function on a pruning, from what happened in the run.

    It is ``2 |E| ln(M/|E|) + sum_i ln(e n_i) + 2 sum_t L eps``, where t runs over all rounds, and L and eps are the
    Lipschitz constant and the radius of the node of the pruning on the path of the row.

    Parameters
    ----------
    n_nodes : int
        Number M of nodes of the tree.
    leaf_counts : array-like of int, shape (n_leaves,)
        Number ``n_i`` of labels of each node of the pruning E.
    variation : float
        Sum of ``L eps`` over all rounds.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(pruning_certificate(12, [50, 50], variation=3.0), 3)
    22.991
    """
    counts = _check_counts(leaf_counts, check_integer(n_nodes, "n_nodes", 1))
    varied = check_nonnegative(variation, "variation")
    return float(2 * len(counts) * np.log(n_nodes / len(counts)) + np.log(np.e * counts).sum() + 2 * varied)


def pruning_regret_bound(
    n_nodes: int, leaf_counts: ArrayLike, *, rounds: ArrayLike, lipschitz: ArrayLike, ranks: ArrayLike
) -> float:
    """Return the bound on the regret against functions that are smooth on the leaves of a pruning.

    It is ``2 |E| ln(M/|E|) + sum_i ln(e n_i) + 4 sum_k (L_k T_k)**(rho_k/(1+rho_k))``. The last sum is over the levels.
    The radius of level k is ``(L_k t)**(-1/(1+rho_k))``, decreasing in t, so that its sum over any ``T_k`` rounds is at
    most its sum over the first ``T_k``.

    For local Lipschitz constants, ``rho_k`` is the effective rank of the metric at the horizon, d if it is Euclidean,
    and ``L_k`` differs. For local dimensions, ``rho_k`` differs. The number of leaves at level k is then part of the
    bound through ``|E|``: if rows that reach a node have at most ``(C r / eps)**rho_k`` points within r that are
    farther apart than eps, a node of level k has ``log2(2T) (C eps_(k-1) / eps_k)**rho_k`` children at most, and the
    product over levels telescopes to ``(C log2(2T))**(k rho_k) eps_k**(-rho_k)``, of the order ``T**(rho_k/(1+rho_k))``
    up to logarithms.

    Parameters
    ----------
    n_nodes : int
        Number M of nodes of the tree.
    leaf_counts : array-like of int, shape (n_leaves,)
        Number ``n_i`` of labels of each node of the pruning E.
    rounds : array-like of int, shape (n_levels,)
        Number ``T_k`` of rounds in which the node of the pruning is at level k.
    lipschitz : array-like of shape (n_levels,)
        Lipschitz constants ``L_k``, at least 1. On a leaf at level k, functions vary at most with this constant. The
        root, where functions are constant, has 0.
    ranks : array-like of int, shape (n_levels,)
        Exponents ``rho_k``, at least 1.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> bound = pruning_regret_bound(12, [50, 50], rounds=[0, 100], lipschitz=[0.0, 1.0], ranks=[1, 1])
    >>> round(bound - pruning_certificate(12, [50, 50], variation=0.0), 6)
    40.0
    """
    times, constants, exponents = (
        check_finite(as_floats(values, name), name)
        for values, name in ((rounds, "rounds"), (lipschitz, "lipschitz"), (ranks, "ranks"))
    )
    if times.ndim != 1 or times.shape != constants.shape or times.shape != exponents.shape:
        raise ShapeError(
            f"rounds, lipschitz and ranks must have one entry per level, got shapes {times.shape}, {constants.shape} "
            f"and {exponents.shape}"
        )
    counts = _check_counts(leaf_counts, n_nodes)
    if times.min() < 0 or times.sum() != counts.sum():
        rule = f">= 0 and add up to {counts.sum():g}, the sum of leaf_counts"
        raise DomainError(f"rounds must be {rule}, got {times.tolist()}")
    if ((constants != 0) & (constants < 1)).any():
        raise DomainError(f"lipschitz must be 0 or >= 1, got {constants[(constants != 0) & (constants < 1)][0]:g}")
    if exponents.min() < 1:
        raise DomainError(f"ranks must be >= 1, got {exponents.min():g}")
    approximation = 4 * np.sum((constants * times) ** (exponents / (1 + exponents)))
    return pruning_certificate(n_nodes, counts, 0.0) + float(approximation)


def _check_counts(leaf_counts: ArrayLike, n_nodes: int) -> Floats:
    """Return the numbers of labels of the leaves of a pruning."""
    counts = check_finite(as_floats(leaf_counts, "leaf_counts"), "leaf_counts")
    if counts.ndim != 1 or not 1 <= len(counts) <= n_nodes:
        raise ShapeError(f"leaf_counts must have 1 to {n_nodes} entries, got shape {counts.shape}")
    if counts.min() < 1:
        raise DomainError(f"leaf_counts must be >= 1, got {counts.min():g}")
    return counts
