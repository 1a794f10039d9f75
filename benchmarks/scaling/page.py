"""The section about scaling: tables and pictures, from what was stored."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from benchmarks.plotting import grid, logarithmic, sample, save, shared_legend
from benchmarks.power_law import Power
from benchmarks.scaling.curves import CURVES, LEARNERS, MEASURES, along
from ellipack.report.plots import COLORS
from ellipack.validation import Floats

_LOOKS = dict(zip(LEARNERS, zip(COLORS, "os", strict=False), strict=False))
_ACROSS = {
    "rounds": "rounds",
    "dimension": "dimension",
    "rank": "rank of the stream",
    "centers": "centres (MetricRegressor: max_centers)",
}
_PICTURES = {
    "cost": ("microseconds", 1.0, "microseconds a round"),
    "memory": ("peak", 2.0**20, "peak memory, MiB"),
    "saved": ("saved", 2.0**20, "saved file, MiB"),
}
_WORDS = """\
Streams are `LowRankStream`: 20 features of which 2 directions matter, 40 features along rank. Along rounds they go to
{rounds:,} (seeds: {long_seeds}), `MetricRegressor` remembering 20,000 centres at most; along dimension and rank there
are {fixed:,} rounds, along centres {crowded:,} (seeds: {seeds}). `PackingRegressor` is Algorithm 1 in a metric that
knows the directions that matter, so that its effective rank is the stream's. Nothing bounds its centres, so along
centres its points are those along rounds; by the paper they grow as `t^(2/3)` at most, up to a constant, and while
instances still fill the ball that leaves them room to grow faster.

A round's cost is processor time, over the rounds since the point before (along rounds) or over the second half. Memory
is the peak resident size of a process of its own, beyond what it took when all was imported and compiled: below about
1 MiB that is the allocator's grain more than the learner, so the size of the saved file stands beside it."""


def section(figures: dict[str, Any], folder: Path) -> str:
    """Write the pictures into a folder; return the section in Markdown."""
    for name, (measure, unit, title) in _PICTURES.items():
        _draw(figures, folder / f"scaling-{name}.png", (measure, unit, title))
    pictures = [
        f"![{title} against {', '.join(CURVES)}]({folder.name}/scaling-{name}.png)"
        for name, (_, _, title) in _PICTURES.items()
    ]
    words = _WORDS.format(**figures["extent"])
    return "\n\n".join(["## Scaling", words, *pictures, _table(figures["exponents"])]) + "\n"


def _table(exponents: list[dict[str, Any]]) -> str:
    by = {(each["curve"], each["learner"], each["measure"]): each for each in exponents}
    lines = [
        "Exponents: a line through the logarithms of all points, with its standard error. Where a curve bends, as",
        "memory does once it is full, one exponent does not tell all; the pictures do.",
        "",
        f"| along | learner | {' | '.join(MEASURES.values())} |",
        f"|---|---|{'---:|' * len(MEASURES)}",
    ]
    for curve in CURVES:
        for learner in LEARNERS:
            found = [by.get((curve, learner, measure)) for measure in MEASURES]
            cells = [str(Power(each["exponent"], each["error"])) if each else "-" for each in found]
            lines.append(f"| {curve} | `{learner}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _draw(figures: dict[str, Any], path: Path, what: tuple[str, float, str]) -> None:
    """Draw one measure along all curves, a panel each."""
    measure, unit, title = what
    figure, panels = grid(2, 2)
    by = {(each["curve"], each["learner"]): each for each in figures["exponents"] if each["measure"] == measure}
    for axes, curve in zip(panels, CURVES, strict=True):
        logarithmic(axes, f"Along {curve}", _ACROSS[curve], title)
        notes = []
        for learner in LEARNERS:
            placed = along(figures["points"], curve, learner)
            x, y = np.array([at for at, _ in placed]), np.array([each[measure] / unit for _, each in placed])
            _curve(axes, x, y, learner)
            if (curve, learner) in by:
                notes.append((learner, Power(by[curve, learner]["exponent"], by[curve, learner]["error"])))
        _note(axes, notes)
    lines = [sample(colour, learner, marker=marker) for learner, (colour, marker) in _LOOKS.items()]
    shared_legend(figure, lines, len(lines))
    save(figure, path)


def _curve(axes: Axes, x: Floats, y: Floats, learner: str) -> None:
    """Draw points, and a line through the median of those at the same place."""
    colour, marker = _LOOKS[learner]
    seen = y > 0
    axes.plot(x[seen], y[seen], marker, color=colour, markersize=4, alpha=0.5, markeredgewidth=0)
    places = np.unique(x[seen])
    axes.plot(places, [np.median(y[seen & (x == at)]) for at in places], color=colour, linewidth=1.8)


def _note(axes: Axes, notes: list[tuple[str, Power]]) -> None:
    """Write exponents into the head room of a panel, in the colours of their lines."""
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * (top / bottom) ** 0.28)
    for number, (learner, power) in enumerate(notes):
        text = f"exponent {power}"
        axes.text(0.03, 0.96 - 0.09 * number, text, color=_LOOKS[learner][0], transform=axes.transAxes, va="top")
