"""The section of the benchmark page about the paper's claims."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator, StrMethodFormatter

from benchmarks.claims import gop_error, regret
from benchmarks.plotting import legend_line, panel_grid, save_figure, shared_legend, style_log_axes
from benchmarks.power_law import FittedExponent
from ellipack.report.plots import COLORS, style_axes
from ellipack.validation import Floats

_COLORS = dict(zip(regret.REGRET_LEARNERS, COLORS, strict=False))
_GOP_COLORS = dict(zip(gop_error.ESTIMATORS, (COLORS[2], COLORS[5], COLORS[3]), strict=True))
_GREY = "#777777"

Entries = list[dict[str, Any]]

_REGRET_TEXT = """\
The streams are `LowRankStream`: instances uniform in the unit ball, labels a smooth function of one or two directions
plus a little noise; {seeds} seeds of each kind. Regret is measured against that function, at the end of each of the
paper's phases, over {rounds:,} rounds. Lines are means over seeds, bands their range. The true metric is the gradient
outer product of the stream. Dotted lines show the growth `t^(rho/(1+rho))` of Theorem 1, where rho is the learner's
effective rank at the end. For a learned metric, the theorem applies to each phase. (Theorem 2 does not apply: these
functions are constant in some directions, and it needs `mu_d > 0`.) Dotted lines cover the last {late} phases, over
which slopes are fitted.

The theorem is an upper bound for the worst case, so slopes should be at or below its own. Of {known} slopes, {above}
above by more than the spread over seeds, and {below} below by more than that. A lower slope does not prove a better
rate: labels here are the function itself plus little noise, so a ball costs about its squared radius, where the
theorem charges the radius. The sections on rates, below, have streams on which its exponents are visible."""

_LEARNED_TEXT = """\
Effect of learning the metric with local slopes: the final regret over that in the Euclidean metric, and over that in
the true one, is {gains}. A phased learner starts each phase without centers, and its metric keeps a ridge of
`t^-alpha`. Both cost regret; the true metric has neither."""

_RANK_TEXT = """\
The effective rank at the end of each of the paper's phases, mean over seeds. In the Euclidean metric it is the
dimension; in the true metric it is at most the number of relevant directions. A phased learner restarts its clock in
each phase, and the ridge `t^-alpha` keeps its small eigenvalues large, so its rank falls late or, while the estimate is
0, never. The ridge of `MetricRegressor` does not fall with time, but the threshold for eigenvalues does: its rank
falls early and can rise again at the end."""

_GOP_TEXT = """\
The error of estimates of the gradient outer product, in spectral norm, relative to the truth, which is known in closed
form for this stream. Taken literally, appendix A sets a derivative to 0 wherever its balls hold too few rows, which
beyond a few features is everywhere. Its error is then that of an estimate of 0, and its consistency is not visible at
these sizes. With a smaller step and no mass threshold its error falls. Local slopes use a fixed number of neighbors:
they are better from the start, but not consistent, because noise remains however many rows there are, and grows as the
neighbors get closer. That is why some lines rise at the end."""

_ALT_TEXTS = (
    "Regret against the true function over rounds",
    "Effective rank over rounds",
    "Error of the gradient outer product against rows",
)


def section(results: dict[str, Any], folder: Path) -> str:
    """Return the section in Markdown; write its plots into a folder next to the page."""
    figures = {
        "claims-regret.png": _plot_regret(results),
        "claims-rank.png": _plot_ranks(results["regret"]),
        "claims-gop.png": _plot_gop(results["gop"]),
    }
    for name, figure in figures.items():
        save_figure(figure, folder / name)
    images = [f"![{alt}]({folder.name}/{name})" for name, alt in zip(figures, _ALT_TEXTS, strict=True)]
    parts = ["## The paper's claims", regret_text(results), images[0], _slopes_table(results["slopes"])]
    parts += [_RANK_TEXT, images[1], _GOP_TEXT, images[2], _gop_table(results["gop_exponents"])]
    return "\n\n".join(parts) + "\n"


def regret_text(results: dict[str, Any]) -> str:
    """Describe the plot of regret, and count the slopes above and below those of the theorems."""
    known = [each for each in results["slopes"] if each["theory"] is not None]
    above = sum(each["slope"] - each["spread"] > each["theory"] for each in known)
    below = sum(each["slope"] + each["spread"] < each["theory"] for each in known)
    rounds = 2 ** (results["size"]["phases"] + 1) - 2
    counts = {"known": len(known), "above": _count(above), "below": _count(below)}
    text = _REGRET_TEXT.format(seeds=results["size"]["seeds"], rounds=rounds, late=regret.LATE_PHASES, **counts)
    gains = fill(_LEARNED_TEXT.format(gains=_gains(results["regret"])), 120)
    return f"{text}\n\n{gains}"


def _gains(curves: Entries) -> str:
    """Return the final regret with local slopes over those of the Euclidean and the true metric, for each stream."""
    gains = []
    for d, rank in _kinds(curves):
        last = {
            name: np.mean([each["regret"][-1] for each in curves if (each["d"], each["learner"]) == (d, name)])
            for name in (regret.EUCLIDEAN, regret.TRUE_METRIC, regret.PHASED_SLOPES)
        }
        ratios = [f"{last[regret.PHASED_SLOPES] / last[name]:.2f}" for name in (regret.EUCLIDEAN, regret.TRUE_METRIC)]
        gains.append(f"{ratios[0]} and {ratios[1]} with d = {d}, rank {rank}")
    return "; ".join(gains)


def _count(count: int) -> str:
    return "1 is" if count == 1 else f"{count or 'none'} are"


def _kinds(entries: Iterable[dict[str, Any]]) -> list[tuple[int, int]]:
    """Return the dimensions and ranks of the streams, sorted."""
    return sorted({(each["d"], each["rank"]) for each in entries})


def _select(entries: Entries, kind: tuple[int, int], **wanted: str) -> Entries:
    """Return the entries of a kind of stream and of a learner or an estimator."""
    return [
        each
        for each in entries
        if (each["d"], each["rank"]) == kind and all(each[name] == value for name, value in wanted.items())
    ]


def _heading(kind: tuple[int, int]) -> str:
    d, rank = kind
    return f"d = {d}, {rank} direction{'s' if rank > 1 else ''}"


def _plot_regret(results: dict[str, Any]) -> Figure:
    kinds = _kinds(results["regret"])
    figure, panels = panel_grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        style_log_axes(axes, _heading(kind), "round", "regret")
        for name in regret.REGRET_LEARNERS:
            group = _select(results["regret"], kind, learner=name)
            if group:
                rounds = np.array(group[0]["rounds"])
                mean = _plot_band(axes, rounds, np.array([each["regret"] for each in group]), _COLORS[name])
                slope = _select(results["slopes"], kind, learner=name)[0]["theory"]
                if slope is not None:
                    _plot_theory(axes, rounds, mean[-1], slope, _COLORS[name])
    lines = [legend_line(_COLORS[name], name) for name in regret.REGRET_LEARNERS]
    shared_legend(figure, [*lines, legend_line(_GREY, "rho/(1+rho), slope of Theorem 1", ":")], 3)
    return figure


def _plot_ranks(curves: Entries) -> Figure:
    kinds = _kinds(curves)
    figure, panels = panel_grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        style_axes(axes, _heading(kind), "round", "effective rank")
        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        axes.axhline(kind[1], color=_GREY, linestyle=":", linewidth=1.5)
        # Ranks are integers, so lines overlap: each is thinner than the one below it.
        names = regret.REGRET_LEARNERS
        for name, width in zip(names, np.linspace(5.5, 1.5, len(names)), strict=True):
            group = _select(curves, kind, learner=name)
            if group:
                ranks = np.mean([each["effective_rank"] for each in group], axis=0)
                axes.plot(group[0]["rounds"], ranks, color=_COLORS[name], linewidth=float(width))
        axes.set_ylim(0, kind[0] * 1.08)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    lines = [legend_line(_COLORS[name], name) for name in regret.REGRET_LEARNERS]
    shared_legend(figure, [*lines, legend_line(_GREY, "relevant directions", ":")], 3)
    return figure


def _plot_gop(errors: Entries) -> Figure:
    kinds = _kinds(errors)
    figure, panels = panel_grid(1, len(kinds))
    for axes, kind in zip(panels, kinds, strict=True):
        style_log_axes(axes, _heading(kind), "rows", "relative error, spectral norm")
        axes.axhline(1, color=_GREY, linestyle=":", linewidth=1.5)
        for name in gop_error.ESTIMATORS:
            group = _select(errors, kind, estimator=name)
            sizes = sorted({each["n"] for each in group})
            table = np.array([[each["error"] for each in group if each["n"] == n] for n in sizes]).T
            if len(table):
                _plot_band(axes, np.array(sizes), table, _GOP_COLORS[name])
    lowest, highest = (pick(each["error"] for each in errors) for pick in (min, max))
    for axes in panels:
        axes.set_ylim(lowest / 1.3, max(1.5, 1.1 * highest))
    lines = [legend_line(_GOP_COLORS[name], name) for name in gop_error.ESTIMATORS]
    shared_legend(figure, [*lines, legend_line(_GREY, "an estimate of 0", ":")], 4)
    return figure


def _plot_band(axes: Axes, x: Any, table: Floats, color: str) -> Floats:
    """Plot the mean over seeds, and their range as a band; return the mean."""
    mean = table.mean(axis=0)
    positive = table.min(axis=0) > 0
    low, high = table.min(axis=0)[positive], table.max(axis=0)[positive]
    axes.fill_between(x[positive], low, high, color=color, alpha=0.18, linewidth=0)
    axes.plot(x[mean > 0], mean[mean > 0], color=color, linewidth=1.8)
    return np.asarray(mean)


def _plot_theory(axes: Axes, rounds: Any, end: float, slope: float, color: str) -> None:
    """Plot the slope of a theorem as a line through the last point of the measured curve."""
    late = rounds[-regret.LATE_PHASES :]
    axes.plot(late, end * (late / rounds[-1]) ** slope, color=color, linewidth=1.5, linestyle=":")


def _slopes_table(slopes: Entries) -> str:
    lines = [
        "| stream | learner | fitted slope, over seeds | effective rank at the end | `rho/(1+rho)` |",
        "|---|---|---:|---:|---:|",
    ]
    for each in slopes:
        theory = "-" if each["theory"] is None else f"{each['theory']:.2f}"
        fitted = f"{each['slope']:.2f} ± {each['spread']:.2f}"
        stream = _heading((each["d"], each["rank"]))
        lines.append(f"| {stream} | {each['learner']} | {fitted} | {each['rho']:.3g} | {theory} |")
    return "\n".join(lines)


def _gop_table(exponents: Entries) -> str:
    lines = ["| stream | estimator | exponent of the error in n |", "|---|---|---:|"]
    for each in exponents:
        exponent = FittedExponent(each["exponent"], each["error"])
        lines.append(f"| {_heading((each['d'], each['rank']))} | {each['estimator']} | {exponent} |")
    return "\n".join(lines)
