"""Bernstein online aggregation: a weighted mean of experts that is nearly as good as the best of them.

In each round expert k predicts ``e_k`` and the aggregation ``p = sum_k w_k e_k``; then the label y is revealed. The
linearized regret to expert k is ``r_k = 2 (p - y)(p - e_k)``. B is the largest ``|r_k|`` of any expert so far, and B'
the same before this round. The sums run over ``s_k = r_k B' / B``, which is known to lie in [-B', B'] before the label
is. With ``V_k = sum s_k^2``, the rate ``eta_k = min(1 / (2 B'), sqrt(ln N / V_k))`` and the gain ``L_k = sum s_k -
eta_k s_k^2``, the weights are proportional to ``pi_k eta_k exp(eta_k L_k)``, from a prior ``pi``. The range of the
labels need not be known.

**Theorem.** On every stream, for every number of rounds T and every expert k of N >= 2,

    sum_t (p - y)^2 - (e_k - y)^2  <=  C (2 B + sqrt(V_k / ln N)) + 2.34 sqrt(V_k ln N) + B

with ``C = ln(1 / pi_k) + ln(1 + (B / B_1) max(1, sqrt(T / ln N) / 2) / e)``, B being the last and largest scale and
B_1 the first above 0. Nothing is assumed of labels or experts: an adversary may choose them.

*Proof.* For ``|x| <= 1/2``, ``exp(x - x^2) <= 1 + x``, and ``|eta_k s_k| <= 1/2``. So ``sum_k pi_k exp(eta_k L_k)``
does not grow in a round while the rates stay: what is added is proportional to ``sum_k w_k s_k = 0``. When rates fall
from eta to eta', ``x <= x^a + (a - 1)/e`` with ``a = eta/eta' >= 1`` adds at most ``(eta/eta' - 1)/e`` times
``pi_k``, and over all rounds at most ``(eta_1/eta_T - 1)/e`` times, where ``eta_1 = 1/(2 B_1)`` and ``V_k <= T B^2``.
Hence ``L_k <= C / eta_k``. To undo the second-order term: a round adds to ``V_k`` no more than ``B'^2``, which is at
most the ``1/(4 ln N)`` part of ``ln N / eta_k^2``, so that ``eta_k s_k^2`` sums to at most ``2 sqrt(1 + 1/(4 ln N))
sqrt(V_k ln N)``. Scaling changes the sum of the ``r_k`` by ``sum |r_k| (B - B')/B <= sum (B - B') = B`` at most.
Linearizing a square only adds.

The scheme is Wintenberger's (*Optimal learning with Bernstein online aggregation*, 2017). Changing rates are treated
after Gaillard, Stoltz and van Erven (2014), the unknown scale after Mhammedi, Koolen and van Erven (2019).
"""

import math

import numpy as np

from ellipack._core import BernsteinAggregation
from ellipack.validation import check_integer

_UNIFORM_PART = 0.02  # of the weight goes to all experts alike when an aggregation restarts


def uniform_aggregation(experts: int) -> BernsteinAggregation:
    """Return the aggregation of a number of experts before its first round, with equal weights.

    >>> uniform_aggregation(2).weights().tolist()
    [0.5, 0.5]
    """
    count = check_integer(experts, "experts", 2)
    return BernsteinAggregation(np.full(count, -math.log(count)), np.zeros(count), np.zeros(count), 0.0)


def restart_aggregation(aggregation: BernsteinAggregation) -> BernsteinAggregation:
    """Return an aggregation that begins again, with the weights reached as its prior, mixed with equal weights.

    To be used when the experts change. The theorem holds for each stretch between restarts, with a prior of at least
    0.02 / N for each expert.
    """
    weights = aggregation.weights()
    log_priors = np.log((1 - _UNIFORM_PART) * weights + _UNIFORM_PART / len(weights))
    return BernsteinAggregation(log_priors, np.zeros(len(weights)), np.zeros(len(weights)), 0.0)


def regret_bound(*, prior: float, squares: float, experts: int, rounds: int, scale: float, first_scale: float) -> float:
    """Return the theorem's bound on the regret to an expert of this prior weight, `squares` being its ``V_k``.

    >>> round(regret_bound(prior=0.5, squares=0.0, experts=2, rounds=1, scale=1.0, first_scale=1.0), 2)
    3.01
    """
    logarithm = math.log(experts)
    changes = scale / first_scale * max(1.0, math.sqrt(rounds / logarithm) / 2)
    constant = math.log(1 / prior) + math.log(1 + changes / math.e)
    return constant * (2 * scale + math.sqrt(squares / logarithm)) + 2.34 * math.sqrt(squares * logarithm) + scale
