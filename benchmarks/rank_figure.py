"""Figure 1 of the paper, the effective rank over rounds: ``python -m benchmarks.rank_figure``."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from benchmarks.command_line import make_parser
from benchmarks.plotting import panel_grid, save_figure
from ellipack.report.plots import COLORS, style_axes
from ellipack.theory import effective_rank
from ellipack.theory.spectrum import rank_starts
from ellipack.validation import Floats

FIGURE = Path("docs/benchmarks/effective-rank.svg")
D, LAST = 20, 10**9


def spectra() -> dict[str, Floats]:
    """Return the spectra of the figure by name, from flat to steep."""
    i = np.arange(1, D + 1)
    powers = {f"i^-{power:g}": i ** -float(power) for power in (0.5, 1, 2, 4)}
    return {"identity": np.ones(D), **powers, "exp(1 - i)": np.exp(1.0 - i)}


def draw() -> Figure:
    """Draw the spectra, and their effective ranks over rounds."""
    figure, (left, right) = panel_grid(1, 2)
    style_axes(left, "Spectrum of M", "i", "eigenvalue")
    left.set_yscale("log")
    style_axes(right, "Effective rank", "round t", "rank")
    right.set_xscale("log")
    for (name, eigenvalues), color in zip(spectra().items(), COLORS, strict=False):
        left.plot(np.arange(1, D + 1), eigenvalues, color=color, label=name, linewidth=1.8)
        starts = rank_starts(eigenvalues)
        rounds = np.array([1, *starts[(starts > 1) & (starts < LAST)], LAST])
        right.step(rounds, effective_rank(eigenvalues, rounds), where="post", color=color, linewidth=1.8)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    left.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    right.xaxis.set_major_locator(LogLocator(numticks=10))
    right.xaxis.set_minor_locator(NullLocator())
    right.set_ylim(0, D + 1)
    left.legend(frameon=False, fontsize=10)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Write the figure."""
    parser = make_parser("rank_figure", "Draw Figure 1 of the paper: the effective rank over rounds.")
    parser.add_argument("--figure", type=Path, default=FIGURE, help="the file to write (default: %(default)s)")
    save_figure(draw(), parser.parse_args(arguments).figure)


if __name__ == "__main__":
    main()
