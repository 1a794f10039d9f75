"""What the pictures of the paper's claims show, in words, and what they do not."""

from textwrap import fill
from typing import Any

import numpy as np

from benchmarks.claims import regret

_REGRET = """\
Streams are `LowRankStream`: instances drawn evenly from the unit ball, labels a smooth function of one or two
directions plus a little noise; {seeds} seeds of each kind. Regret is against that very function, at the end of each of
the paper's phases, {rounds:,} rounds in all; lines are means over seeds, bands reach from the least to the most. The
true metric is the stream's own gradient outer product. Dotted is the growth `t^(rho/(1+rho))` of Theorem 1 (a fixed
metric) or Theorem 2 (a learned one), rho being the learner's effective rank at the end; it is drawn over the rounds
over which slopes are fitted, those of the last {late} phases.

The theorems bound the worst case from above, so a slope is to be at or below theirs. Of {known} slopes {above} above
by more than the spread over seeds, and {below} below by more than that. Below is no better rate proved: labels here
come from the function itself with little noise, so that a ball costs about its radius squared, where the theorems
charge the radius. The exponents of the theorems themselves do not show at these sizes."""

_LEARNED = """\
What learning the metric by local slopes does to regret so far, as the regret in the end over that in the Euclidean
metric and over that in the true one: {gains}. A phased learner begins each phase with no centres, and its metric keeps
a ridge of `t^-alpha`: both cost it, and the true metric is spared both."""

_RANKS = """\
The effective rank by the end of each of the paper's phases, the mean over seeds. The Euclidean metric's is the
dimension; the true metric's is at most the number of directions that matter. A phased learner starts its clock anew in
each phase, and the ridge `t^-alpha` holds its small eigenvalues up, so that its rank comes down late, or, while the
estimate is 0, not at all. `MetricRegressor` has a ridge that does not fall with time, while the eigenvalue that counts
does: so its rank comes down soon, and can go up again in the end."""

_GOP = """\
The error of estimates of the gradient outer product, in spectral norm over that of the truth, which for this stream is
known in closed form. To the letter, appendix A takes a derivative for 0 wherever its balls hold too few rows, which
from a few features on is everywhere: then its error is that of no estimate at all, and that it is consistent does not
show at these sizes. With a smaller step and no floor on the mass its error falls. Local slopes use a fixed number of
neighbours: that is better from the start, but they are not consistent, since noise stays in them however many rows
there are, and the more so the closer the neighbours come. Where the line turns up again, that is why."""


def regret_words(figures: dict[str, Any]) -> str:
    """Say what is drawn of regret, and whether the theorems' slopes are seen."""
    known = [each for each in figures["slopes"] if each["theory"] is not None]
    above = sum(each["slope"] - each["spread"] > each["theory"] for each in known)
    below = sum(each["slope"] + each["spread"] < each["theory"] for each in known)
    rounds = 2 ** (figures["extent"]["phases"] + 1) - 2
    counts = {"known": len(known), "above": _are(above), "below": _are(below)}
    told = _REGRET.format(seeds=figures["extent"]["seeds"], rounds=rounds, late=regret.LATE, **counts)
    gained = fill(_LEARNED.format(gains=_gains(figures["regret"])), 120)
    return f"{told}\n\n{gained}"


def rank_words() -> str:
    """Say what is drawn of the effective rank."""
    return _RANKS


def gop_words() -> str:
    """Say what is drawn of estimates of the gradient outer product."""
    return _GOP


def _gains(played: list[dict[str, Any]]) -> str:
    """Say what the regret of local slopes is beside those of the Euclidean and the true metric, stream by stream."""
    said = []
    for d, rank in sorted({(each["d"], each["rank"]) for each in played}):
        last = {
            name: np.mean([each["regret"][-1] for each in played if (each["d"], each["learner"]) == (d, name)])
            for name in (regret.EUCLIDEAN, regret.TRUE, regret.SLOPES)
        }
        over = [f"{last[regret.SLOPES] / last[name]:.2f}" for name in (regret.EUCLIDEAN, regret.TRUE)]
        said.append(f"{over[0]} and {over[1]} with d = {d}, rank {rank}")
    return "; ".join(said)


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count or 'none'} are"
