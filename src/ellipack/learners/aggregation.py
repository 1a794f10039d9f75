"""Bernstein online aggregation: a weighted mean of experts that is nearly as good as the best of them.

In each round expert k predicts ``e_k`` and the aggregation predicts ``p = sum_k w_k e_k``; then the label y is
revealed. The linearized regret to expert k is ``r_k = 2 (p - y)(p - e_k)``. The scale B is the largest ``|r_k|`` of all
experts and rounds so far; B' is the scale before this round. Sums use ``s_k = r_k B' / B``, which lies in [-B', B']
whatever the label is. Let ``V_k = sum s_k^2``, the learning rate ``eta_k = min(1 / (2 B'), sqrt(ln N / V_k))`` and the
gain ``L_k = sum s_k - eta_k s_k^2``. The weights are proportional to ``pi_k eta_k exp(eta_k L_k)``, where ``pi`` is the
prior. The range of the labels need not be known.

**Theorem.** On every stream, for every number of rounds T and every expert k of N >= 2,

    sum_t (p - y)^2 - (e_k - y)^2  <=  C (2 B + sqrt(V_k / ln N)) + 2.34 sqrt(V_k ln N) + B

with ``C = ln(1 / pi_k) + ln(1 + (B / B_1) max(1, sqrt(T / ln N) / 2) / e)``, where B is the last scale and B_1 the
first positive one. There are no assumptions on labels or experts: an adversary may choose them.

*Proof.* We have ``exp(x - x^2) <= 1 + x`` for ``|x| <= 1/2``, and ``|eta_k s_k| <= 1/2``. While the rates are
constant, ``sum_k pi_k exp(eta_k L_k)`` does not grow in a round, because the bound on its increase is proportional to
``sum_k w_k s_k = 0``. When rates fall from eta to eta', the inequality ``x <= x^a + (a - 1)/e`` with
``a = eta/eta' >= 1`` shows that the sum grows by at most ``(eta/eta' - 1)/e`` times ``pi_k``, over all rounds by at
most ``(eta_1/eta_T - 1)/e`` times ``pi_k``, where ``eta_1 = 1/(2 B_1)`` and ``V_k <= T B^2``. Hence
``L_k <= C / eta_k``. To bound the second-order term: a round adds at most ``B'^2`` to ``V_k``, which is at most
``1/(4 ln N)`` times ``ln N / eta_k^2``, so that the sum of ``eta_k s_k^2`` is at most ``2 sqrt(1 + 1/(4 ln N))
sqrt(V_k ln N)``. The scaling changes the sum of the ``r_k`` by at most ``sum |r_k| (B - B')/B <= sum (B - B') = B``.
The linearized regret is at least the regret, because squares are convex.

References
----------
.. [1] O. Wintenberger. Optimal learning with Bernstein online aggregation. Machine Learning, 2017.
.. [2] P. Gaillard, G. Stoltz and T. van Erven. A second-order bound with excess losses. COLT 2014 (changing rates).
.. [3] Z. Mhammedi, W. M. Koolen and T. van Erven. Lipschitz adaptivity with multiple learning rates in online
   learning. COLT 2019 (unknown scale).
"""

import math

import numpy as np

from ellipack._core import BernsteinAggregation
from ellipack.errors import ModelFileError
from ellipack.serialization import Archive
from ellipack.validation import MAX_ABS_LABEL, check_integer

_UNIFORM_PART = 0.02  # part of the prior that is uniform after a restart
_MIN_LOG_PRIOR = -50.0  # a prior weight is at least 0.02 / N for N experts
_MIN_REGRET, _MAX_REGRET = 1e-290, 16 * (2 * MAX_ABS_LABEL) ** 2  # of a scale that is not 0


def uniform_aggregation(experts: int) -> BernsteinAggregation:
    """Return an initial aggregation with equal weights.

    Parameters
    ----------
    experts : int
        Number of experts, at least 2.

    Returns
    -------
    aggregation : BernsteinAggregation

    Examples
    --------
    >>> uniform_aggregation(2).weights().tolist()
    [0.5, 0.5]
    """
    count = check_integer(experts, "experts", 2)
    return BernsteinAggregation(np.full(count, -math.log(count)), np.zeros(count), np.zeros(count), 0.0)


def restart_aggregation(aggregation: BernsteinAggregation) -> BernsteinAggregation:
    """Return an initial aggregation whose prior is 98 % the current weights and 2 % equal weights.

    Use it when the experts change. The theorem holds between restarts, with a prior of at least 0.02 / N for each
    expert.

    Parameters
    ----------
    aggregation : BernsteinAggregation
        The aggregation that ends. It is not changed.

    Returns
    -------
    restarted : BernsteinAggregation

    Examples
    --------
    >>> import numpy as np
    >>> certain = BernsteinAggregation(np.array([0.0, -50.0]), np.zeros(2), np.zeros(2), 0.0)
    >>> restart_aggregation(certain).weights().round(6).tolist()
    [0.99, 0.01]
    """
    weights = aggregation.weights()
    log_priors = np.log((1 - _UNIFORM_PART) * weights + _UNIFORM_PART / len(weights))
    return BernsteinAggregation(log_priors, np.zeros(len(weights)), np.zeros(len(weights)), 0.0)


def regret_bound(*, prior: float, squares: float, experts: int, rounds: int, scale: float, first_scale: float) -> float:
    """Return the theorem's bound on the regret to an expert.

    Parameters
    ----------
    prior : float
        Prior weight ``pi_k`` of the expert.
    squares : float
        Sum of squares ``V_k`` of the expert.
    experts : int
        Number of experts, at least 2.
    rounds : int
        Number of rounds T.
    scale : float
        Last scale B.
    first_scale : float
        First positive scale B_1.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> round(regret_bound(prior=0.5, squares=0.0, experts=2, rounds=1, scale=1.0, first_scale=1.0), 2)
    3.01
    """
    logarithm = math.log(experts)
    changes = scale / first_scale * max(1.0, math.sqrt(rounds / logarithm) / 2)
    constant = math.log(1 / prior) + math.log(1 + changes / math.e)
    return constant * (2 * scale + math.sqrt(squares / logarithm)) + 2.34 * math.sqrt(squares * logarithm) + scale


def weights_to_archive(aggregation: BernsteinAggregation) -> Archive:
    """Return an archive of an aggregation."""
    arrays = {"log_priors": aggregation.log_priors, "gains": aggregation.gains, "squares": aggregation.squares}
    return Archive({"scale": aggregation.scale}, arrays)


def weights_from_archive(saved: Archive, experts: int, rounds: int) -> BernsteinAggregation:
    """Restore an aggregation after a number of rounds from its archive; raise `ModelFileError` if it is not valid.

    Examples
    --------
    >>> archive = weights_to_archive(uniform_aggregation(2))
    >>> weights_from_archive(archive, experts=2, rounds=0).weights().tolist()
    [0.5, 0.5]
    """
    scale = saved.number("scale")
    if not (scale == 0 or _MIN_REGRET <= scale <= _MAX_REGRET):
        raise ModelFileError(f"{saved.prefix}scale must be 0 or from {_MIN_REGRET:g} to {_MAX_REGRET:g}, got {scale:g}")
    most = 2 * rounds * scale  # a round adds at most twice the scale to a gain, and its square to the squares
    gains = saved.floats_between(-most, most, "gains", experts)
    squares = saved.floats_between(0.0, most * scale, "squares", experts)
    return BernsteinAggregation(saved.floats_between(_MIN_LOG_PRIOR, 1.0, "log_priors", experts), gains, squares, scale)
