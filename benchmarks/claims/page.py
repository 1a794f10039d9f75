"""The section about the paper's claims: tables and pictures, from what was stored."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from benchmarks.claims import gop_error, regret
from benchmarks.plotting import grid, logarithmic, sample, save, shared_legend
from benchmarks.power_law import Power
from ellipack.report.plots import COLORS, style_axes
from ellipack.validation import Floats

_PAINT = dict(zip(regret.LEARNERS, COLORS, strict=False))
_GOP_PAINT = dict(zip(gop_error.ESTIMATORS, (COLORS[2], COLORS[5], COLORS[3]), strict=True))
_GREY = "#777777"

Entries = list[dict[str, Any]]


def section(figures: dict[str, Any], folder: Path) -> str:
    """Write the pictures into a folder; return the section in Markdown."""
    drawn = {
        "claims-regret.png": _draw_regret(figures),
        "claims-rank.png": _draw_ranks(figures["regret"]),
        "claims-gop.png": _draw_gop(figures["gop"]),
    }
    for name, figure in drawn.items():
        save(figure, folder / name)
    shown = [f"![{alt}]({folder.name}/{name})" for name, alt in zip(drawn, _ALT, strict=True)]
    parts = ["## The paper's claims", regret_words(figures), shown[0], _slopes_table(figures["slopes"])]
    parts += [rank_words(), shown[1], gop_words(), shown[2], _gop_table(figures["gop_exponents"])]
    return "\n\n".join(parts) + "\n"


_ALT = (
    "Regret against the true function over rounds",
    "Effective rank over rounds",
    "Error of the gradient outer product against rows",
)


def _kinds(entries: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the kinds of stream there are, in order."""
    return sorted({(each["d"], each["rank"]) for each in entries})


def _of(entries: Entries, kind: tuple[int, int], **wanted: str) -> Entries:
    """Return the entries about a kind of stream, and a learner or an estimator."""
    return [
        each
        for each in entries
        if (each["d"], each["rank"]) == kind and all(each[name] == value for name, value in wanted.items())
    ]


def _heading(kind: tuple[int, int]) -> str:
    d, rank = kind
    return f"d = {d}, {rank} direction{'s' if rank > 1 else ''}"


def _draw_regret(figures: dict[str, Any]) -> Figure:
    kinds = _kinds(figures["regret"])
    figure, panels = grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        logarithmic(axes, _heading(kind), "round", "regret")
        for name in regret.LEARNERS:
            group = _of(figures["regret"], kind, learner=name)
            if group:
                marks = np.array(group[0]["marks"])
                middle = _banded(axes, marks, np.array([each["regret"] for each in group]), _PAINT[name])
                slope = _of(figures["slopes"], kind, learner=name)[0]["theory"]
                if slope is not None:
                    _guide(axes, marks, middle[-1], slope, _PAINT[name])
    lines = [sample(_PAINT[name], name) for name in regret.LEARNERS]
    shared_legend(figure, [*lines, sample(_GREY, "rho/(1+rho), the theorems' slope", ":")], 3)
    return figure


def _draw_ranks(played: Entries) -> Figure:
    kinds = _kinds(played)
    figure, panels = grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        style_axes(axes, _heading(kind), "round", "effective rank")
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.axhline(kind[1], color=_GREY, linestyle=":", linewidth=1.5)
        # Ranks are whole numbers, so lines run on top of each other: each is thinner than the one below it.
        for name, width in zip(regret.LEARNERS, np.linspace(5.5, 1.5, len(regret.LEARNERS)), strict=True):
            group = _of(played, kind, learner=name)
            if group:
                ranks = np.mean([each["effective_rank"] for each in group], axis=0)
                axes.plot(group[0]["marks"], ranks, color=_PAINT[name], linewidth=float(width))
        axes.set_ylim(0, kind[0] * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    lines = [sample(_PAINT[name], name) for name in regret.LEARNERS]
    shared_legend(figure, [*lines, sample(_GREY, "directions that matter", ":")], 3)
    return figure


def _draw_gop(errors: Entries) -> Figure:
    kinds = _kinds(errors)
    figure, panels = grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        logarithmic(axes, _heading(kind), "rows", "relative error, spectral norm")
        axes.axhline(1, color=_GREY, linestyle=":", linewidth=1.5)
        for name in gop_error.ESTIMATORS:
            group = _of(errors, kind, estimator=name)
            sizes = sorted({each["n"] for each in group})
            table = np.array([[each["error"] for each in group if each["n"] == n] for n in sizes]).T
            if len(table):
                _banded(axes, np.array(sizes), table, _GOP_PAINT[name])
    lowest, highest = (pick(each["error"] for each in errors) for pick in (min, max))
    for axes in panels:
        axes.set_ylim(lowest / 1.3, max(1.5, 1.1 * highest))
    lines = [sample(_GOP_PAINT[name], name) for name in gop_error.ESTIMATORS]
    shared_legend(figure, [*lines, sample(_GREY, "an estimate of 0", ":")], 4)
    return figure


def _banded(axes: Axes, x: Any, table: Floats, colour: str) -> Floats:
    """Draw the mean over seeds and a band from the least to the most; return the mean."""
    middle = table.mean(axis=0)
    seen = table.min(axis=0) > 0
    axes.fill_between(x[seen], table.min(axis=0)[seen], table.max(axis=0)[seen], color=colour, alpha=0.18, linewidth=0)
    axes.plot(x[middle > 0], middle[middle > 0], color=colour, linewidth=1.8)
    return np.asarray(middle)


def _guide(axes: Axes, marks: Any, end: float, slope: float, colour: str) -> None:
    """Draw the slope of a theorem so that it ends where the line does."""
    late = marks[-regret.LATE :]
    axes.plot(late, end * (late / marks[-1]) ** slope, color=colour, linewidth=1.5, linestyle=":")


def _slopes_table(slopes: Entries) -> str:
    lines = [
        "| stream | learner | fitted slope, over seeds | effective rank at the end | `rho/(1+rho)` |",
        "|---|---|---:|---:|---:|",
    ]
    for each in slopes:
        theory = "-" if each["theory"] is None else f"{each['theory']:.2f}"
        fitted = f"{each['slope']:.2f} ± {each['spread']:.2f}"
        where = _heading((each["d"], each["rank"]))
        lines.append(f"| {where} | {each['learner']} | {fitted} | {each['rho']:.3g} | {theory} |")
    return "\n".join(lines)


def _gop_table(exponents: Entries) -> str:
    lines = ["| stream | estimator | exponent of the error in n |", "|---|---|---:|"]
    for each in exponents:
        power = Power(each["exponent"], each["error"])
        lines.append(f"| {_heading((each['d'], each['rank']))} | {each['estimator']} | {power} |")
    return "\n".join(lines)


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
