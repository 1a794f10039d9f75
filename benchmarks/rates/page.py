"""The sections of the benchmark page about the rates of the theorems."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.plotting import legend_line, panel_grid, save_figure, shared_legend, style_log_axes
from benchmarks.rates import estimation, metrics
from benchmarks.rates.growth import LATE, group_by
from ellipack.report.plots import COLORS
from ellipack.validation import Floats

Entries = list[dict[str, Any]]

_GREY = "#777777"
_METRIC_COLORS = dict(zip((metrics.EUCLIDEAN, metrics.TRUE_METRIC, metrics.LEARNED), COLORS, strict=False))

_ESTIMATION_TEXT = """\
## Rates: estimation

Theorem 1 charges each center a logarithm. Here labels are fair coins and the function is 1/2, so that all regret is
estimation; instances are uniform in the unit ball. Left, Algorithm 1 in the Euclidean metric in 1 to 5 dimensions;
right, in 5 dimensions with a metric of rank rho. {rounds:,} rounds, {seeds} seeds; lines are means, bands ranges.
Regret is divided by `ln(eT)`, the logarithm of the theorem. Dotted lines have the slope `rho/(1+rho)` of the theorem,
dashed lines the minimax rate, that of the best algorithm on the worst sequence, which this algorithm does not attain.
Slopes are fitted to T from {first:,} on.

![Regret over its logarithm, on fair coins]({folder}/rates-estimation.svg)

{table}

The last column is regret over `N (1 + ln(T/N))`, N the number of centers, over the seeds. The sharp bound has 1 there;
fair coins have a variance of 1/4.
"""

_APPROXIMATION_TEXT = """\
## Rates: approximation

Theorem 1 charges each round the radius times the Lipschitz constant. For each horizon T there is a 1-Lipschitz function
that costs so much, up to a constant: a zigzag with a period of half the last radius, whose peaks have the label 1 and
whose troughs have the label 0. A ball holds as many of both and predicts 1/2. The approximation term is the loss of the
best constants of the balls less that of the function, {seeds} seeds, in the Euclidean metric. Dotted lines have the
slope `rho/(1+rho)`, dashed lines the minimax rate.

![Approximation term against the horizon]({folder}/rates-approximation.svg)

{table}

The last column is the term over `T^(rho/(1+rho))`; the theorem charges 4, the sharp bound `2 (1 + 1/rho)`.
"""

_METRICS_TEXT = """\
## Rates: the metric

Two noisy streams in 5 dimensions, {rounds:,} rounds, {seeds} seeds. On the left, `LowRankStream` with one direction and
noise 0.25. On the right, a function that varies in all directions, one of them 25 times as much as the others: `mu_d`
is above 0, as Theorem 2 requires. The learned metric is that of `PhasedRegressor` with local slopes on `n^0.5`
neighbors and alpha = {alpha}. Regret is divided by `ln(eT)`; slopes are fitted to T from {first:,} on. Dotted lines
have the slope `rho/(1+rho)` of Theorem 1 at the effective rank of the learner at the end (for the learned metric, the
larger of its last two phases), dashed lines the minimax rate at that rank.

![Regret over its logarithm, in three metrics]({folder}/rates-metrics.svg)

{table}

In the Euclidean metric, and in the true metric of the stream with one direction, the exponents are those of the
theorem. On the other stream, the rank of the true metric rises up to this horizon, and the radius with it, so that the
exponent of the final rank is not reached yet. The learned metric has a lower regret than the Euclidean one, and a
higher one than the true metric: its ridge and the noise of the estimate keep its rank high.
"""

_THEOREM_2_TEXT = """\
## Theorem 2 against a run

A function of two directions with eigenvalues {mu} of the expected gradient outer product, {seeds} seeds;
`PhasedRegressor` with local slopes on `n^0.55` neighbors and alpha = {alpha}. The theorem assumes that the
regularization `t^-alpha` is at least the error `gamma_t` of the estimate, which is measured here in spectral norm.
{assumption}

Alpha and the number of anchors, 16,384, were chosen for this. In a first run of one seed, with alpha = 0.35, 4,096
anchors and `n^0.6` neighbors, the error exceeded the regularization at rounds 14, 30, 524,286 and 1,048,574.

The bound with small constants (`sharp_learned_metric_regret_bound`, from the measured errors) is below the number of
rounds from round {bites} on. At round {last:,} it is {sharp:,.0f}, and the regret is {regret:,.0f}. With the constants
of the paper (`learned_metric_regret_bound`), the bound is {proved:,.0f}: until the burn-in of {burn_in:,} rounds
({printed_burn_in:,} as printed) ends, a round costs 1, and then a phase more than that.

![Error of the metric, and regret with its bounds]({folder}/rates-theorem-2.svg)
"""


def estimation_section(results: dict[str, Any], folder: Path) -> str:
    """Return the section on fair coins; write its plot."""
    figure, panels = panel_grid(1, 2)
    for axes, kind in zip(panels, (estimation.EUCLIDEAN, estimation.RANK_IN_FIVE), strict=True):
        style_log_axes(axes, kind, "T", "regret / ln(eT)")
        for (rank,), group in group_by([run for run in results["runs"] if run["kind"] == kind], "rank").items():
            table = np.array([estimation.without_logarithm(run) for run in group])
            fitted = next(s for s in results["slopes"] if (s["kind"], s["rank"]) == (kind, rank))
            _plot(axes, group[0]["rounds"], table, COLORS[rank - 1], fitted)
    ranks = sorted({run["rank"] for run in results["runs"]})
    _finish(figure, [legend_line(COLORS[rank - 1], f"rho = {rank}") for rank in ranks], folder / "rates-estimation.svg")
    table_lines = _table(
        "stream | rho", results["slopes"], "regret per center", lambda s: f"{s['kind']} | {s['rank']}", _share_range
    )
    return _ESTIMATION_TEXT.format(table=table_lines, folder=folder.name, **_sizes(results))


def approximation_section(results: dict[str, Any], folder: Path) -> str:
    """Return the section on zigzags; write its plot."""
    figure, (axes,) = panel_grid(1, 1, (6.5, 3.9))
    style_log_axes(axes, "Approximation term", "horizon T", "approximation")
    for (rank,), group in group_by(results["runs"], "rank").items():
        fitted = next(s for s in results["slopes"] if s["rank"] == rank)
        _plot(axes, group[0]["rounds"], np.array([run["approximation"] for run in group]), COLORS[rank - 1], fitted)
    ranks = sorted({run["rank"] for run in results["runs"]})
    lines = [legend_line(COLORS[rank - 1], f"d = {rank}") for rank in ranks]
    _finish(figure, lines, folder / "rates-approximation.svg")
    table_lines = _table(
        "d", results["slopes"], "per T^(rho/(1+rho))", lambda s: str(s["rank"]), lambda s: f"{s['share']:.3f}"
    )
    return _APPROXIMATION_TEXT.format(table=table_lines, folder=folder.name, **_sizes(results))


def metrics_section(results: dict[str, Any], folder: Path) -> str:
    """Return the section on the Euclidean, the true and the learned metric; write its plot."""
    figure, panels = panel_grid(1, 2)
    for axes, stream in zip(panels, (metrics.LOW_RANK, metrics.FULL_RANK), strict=True):
        style_log_axes(axes, stream, "T", "regret / ln(eT)")
        for (name,), group in group_by([run for run in results["runs"] if run["stream"] == stream], "learner").items():
            table = np.array([estimation.without_logarithm(run) for run in group])
            fitted = next(s for s in results["slopes"] if (s["stream"], s["learner"]) == (stream, name))
            _plot(axes, group[0]["rounds"], table, _METRIC_COLORS[name], fitted)
    lines = [legend_line(color, name) for name, color in _METRIC_COLORS.items()]
    _finish(figure, lines, folder / "rates-metrics.svg")
    table_lines = _table(
        "stream | metric | rank at the end",
        results["slopes"],
        "regret",
        lambda s: f"{s['stream']} | {s['learner']} | {', '.join(map(str, s['ranks']))}",
        lambda s: f"{s['regret']:,.0f}",
    )
    return _METRICS_TEXT.format(table=table_lines, folder=folder.name, alpha=metrics.ALPHA, **_sizes(results))


def theorem_2_section(results: dict[str, Any], folder: Path) -> str:
    """Return the section on Theorem 2; write its plot."""
    runs = results["runs"]
    rounds = np.array(runs[0]["rounds"])
    figure, (left, right) = panel_grid(1, 2)
    style_log_axes(left, "Error of the metric", "round", "spectral norm")
    left.plot(rounds, runs[0]["regularization"], color=_GREY, linewidth=1.8)
    _plot(left, rounds, np.array([run["error"] for run in runs]), COLORS[0])
    style_log_axes(right, "Regret and bounds", "round", "regret")
    right.plot(rounds, rounds, color=_GREY, linewidth=1.8, linestyle=":")
    _plot(right, rounds, np.array([run["regret"] for run in runs]), COLORS[0])
    _plot(right, rounds, np.array([run["sharp"] for run in runs]), COLORS[1])
    lines = [
        legend_line(COLORS[0], "measured"),
        legend_line(_GREY, "regularization"),
        legend_line(COLORS[1], "sharp bound"),
    ]
    shared_legend(figure, [*lines, legend_line(_GREY, "1 in each round", ":")], 4)
    save_figure(figure, folder / "rates-theorem-2.svg")
    sharp, regret = (np.mean([run[name] for run in runs], axis=0) for name in ("sharp", "regret"))
    return _THEOREM_2_TEXT.format(
        mu=" and ".join(f"{each:.3f}" for each in results["mu"]),
        seeds=len(runs),
        alpha=results["alpha"],
        assumption=assumption_text(runs),
        bites=f"{int(rounds[np.argmax(sharp < 0.999 * rounds)]):,}" if np.any(sharp < 0.999 * rounds) else "none",
        burn_in=round(results["burn_in"]),
        printed_burn_in=round(results["printed_burn_in"]),
        proved=runs[0]["proved"][-1],
        last=int(rounds[-1]),
        regret=float(regret[-1]),
        sharp=float(sharp[-1]),
        folder=folder.name,
    )


def assumption_text(runs: Entries) -> str:
    """Say where the regularization was at least the error, and where not, over all runs."""
    failed = sorted(
        {
            end
            for run in runs
            for end, error, ridge in zip(run["rounds"], run["error"], run["regularization"], strict=True)
            if error > ridge
        }
    )
    if not failed:
        return "It is, at the end of every phase of every run."
    exceptions = ", ".join(f"{each:,}" for each in failed)
    return f"It is, at the end of every phase of every run, except in some runs at round {exceptions}."


def _plot(axes: Axes, rounds: Any, table: Floats, color: str, fitted: dict[str, Any] | None = None) -> None:
    """Plot the mean over seeds, their range as a band, and the exponents of theory next to the fitted records."""
    x, mean = np.asarray(rounds, dtype=np.float64), table.mean(axis=0)
    axes.fill_between(x, table.min(axis=0), table.max(axis=0), color=color, alpha=0.18, linewidth=0)
    axes.plot(x, mean, color=color, linewidth=1.8)
    if fitted is not None:
        late = x[-LATE:]
        axes.plot(late, 1.25 * mean[-1] * (late / x[-1]) ** fitted["theory"], color=color, linewidth=1.5, linestyle=":")
        # From the first fitted record on, where the measured curve is above it.
        minimax = mean[-LATE] * (late / late[0]) ** fitted["minimax"] / 1.25
        axes.plot(late, minimax, color=color, linewidth=1.0, linestyle="--")


def _finish(figure: Figure, lines: list[Any], path: Path) -> None:
    """Add the legend and write a figure."""
    shared_legend(figure, [*lines, legend_line(_GREY, "rho/(1+rho)", ":"), legend_line(_GREY, "minimax", "--")], 7)
    save_figure(figure, path)


def _share_range(slope: dict[str, Any]) -> str:
    return f"{slope['share_low']:.3f} to {slope['share_high']:.3f}"


def _table(first: str, slopes: Entries, last: str, name: Any, share: Any) -> str:
    """Return a table of slopes between columns that name the case and one of another measure."""
    lines = [f"| {first} | slope, over seeds | `rho/(1+rho)` | minimax | {last} |"]
    lines.append("|" + "---|" * (first.count("|") + 1) + "---:|" * 4)
    for each in slopes:
        fitted = f"{each['slope']:.3f} ± {each['spread']:.3f}"
        lines.append(f"| {name(each)} | {fitted} | {each['theory']:.3f} | {each['minimax']:.3f} | {share(each)} |")
    return "\n".join(lines)


def _sizes(results: dict[str, Any]) -> dict[str, Any]:
    """Return the number of rounds and seeds, and the first fitted round."""
    return {**results["size"], "first": results["runs"][0]["rounds"][-LATE]}
