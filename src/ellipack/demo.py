"""A 20-dimensional stream whose target depends on 2 directions, and six learners side by side on it.

Run it: ``python -m ellipack.demo``.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.linalg import subspace_angles

from ellipack.estimators import GradientOuterProduct, MetricRegressor, PackingRegressor, PhasedRegressor
from ellipack.metric import KernelDifferences, LocalSlopes, Metric
from ellipack.neighbors import NeighborIndex
from ellipack.synthetic import LowRankStream
from ellipack.validation import Floats

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Table

    from ellipack.report import plots
except ModuleNotFoundError as missing:
    if __name__ != "__main__":
        raise
    package = (missing.name or "one").partition(".")[0]
    sys.exit(f"The demo needs rich and matplotlib, and {package} is missing: pip install 'ellipack[demo]'")

EUCLIDEAN = "Euclidean"
LETTER = "Phased, appendix A"
SLOPES = "Phased, local slopes"
TRUE = "True metric"
NEIGHBORS = "Nearest neighbours"
PRACTICAL = "MetricRegressor"

_D, _RANK = 20, 2
_HORIZON = 10**6
_FEWEST_ROUNDS = 16  # so that a second half has labels enough to have a standard deviation
_STEPS = 100  # of the progress bar
_CAPTION = """\
Late error: RMSE / standard deviation of labels, over the second half.
Angle: the largest between the learned directions and the true ones."""


class NearestNeighbors:
    """The baseline: the mean label of the 16 rows nearest so far, all features counting alike."""

    def __init__(self, d: int) -> None:
        self.index = NeighborIndex.empty(d)
        self.labels = np.empty(0)
        self.metric_, self.effective_rank_ = Metric.identity(d), d

    @property
    def n_centers_(self) -> int:
        """How many rows are kept: all."""
        return len(self.index)

    def progressive(self, X: Floats, y: Floats) -> Floats:
        """Learn from more rows; return what was predicted for each before its label was seen."""
        before = len(self.labels)
        self.labels = np.append(self.labels, y)
        predictions = np.full(len(y), 0.5)
        for t, row in enumerate(X):
            if before + t > 0:
                near, _ = self.index.k_nearest(row[None], min(16, before + t))
                predictions[t] = self.labels[near[0]].mean()
            self.index.insert(row[None])
        return predictions


Learner = PackingRegressor | PhasedRegressor | MetricRegressor | NearestNeighbors


@dataclass(frozen=True)
class Outcome:
    """What is shown of a learner after the last round."""

    errors: Floats
    late_error: float
    n_centers: int
    effective_rank: int
    eigenvalues: Floats
    angle: float | None  # in degrees; None if it learned no direction
    estimates: list[Floats]  # of the gradient outer product, one for each phase that is over


def contenders(stream: LowRankStream) -> dict[str, Learner]:
    """Return the learners to compare, by name."""
    return {
        NEIGHBORS: NearestNeighbors(stream.d),
        EUCLIDEAN: PackingRegressor(),
        LETTER: PhasedRegressor(gop=GradientOuterProduct(KernelDifferences(n_jobs=-1))),
        SLOPES: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(n_jobs=-1))),
        # A ridge this small keeps the metric positive definite, and its effective rank at that of the truth.
        TRUE: PackingRegressor(Metric.from_gop(stream.gop(), 1e-4)),
        PRACTICAL: MetricRegressor(),
    }


def run(learners: Mapping[str, Learner], X: Floats, y: Floats, progress: Progress) -> dict[str, Floats]:
    """Let every learner predict and then learn, round by round; return the errors of each."""
    errors = {name: np.empty(len(y)) for name in learners}
    tasks = {name: progress.add_task(name, total=len(y)) for name in learners}
    for part in _parts(len(y)):
        for name, learner in learners.items():
            errors[name][part] = learner.progressive(X[part], y[part]) - y[part]
            progress.update(tasks[name], completed=part.stop)
    return errors


def outcome(learner: Learner, errors: Floats, y: Floats, subspace: Floats) -> Outcome:
    """Return what is shown of a learner."""
    late = slice(len(y) // 2, None)
    metric, n_centers, rank = _present(learner)
    return Outcome(
        errors=errors,
        late_error=float(np.sqrt(np.mean(errors[late] ** 2)) / y[late].std()),
        n_centers=n_centers,
        effective_rank=rank,
        eigenvalues=metric.eigenvalues,
        angle=_angle(metric, subspace),
        estimates=[phase.gop for phase in learner.phases_] if isinstance(learner, PhasedRegressor) else [],
    )


def table(outcomes: Mapping[str, Outcome]) -> Table:
    """Return the outcomes as a table."""
    shown = Table(caption=_CAPTION, caption_justify="left")
    shown.add_column("Learner", no_wrap=True)
    for heading in ("Late error", "Centres", "Effective rank", "Angle"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, each in outcomes.items():
        angle = "-" if each.angle is None else f"{each.angle:.1f} deg"
        shown.add_row(name, f"{each.late_error:.3f}", f"{each.n_centers:,}", str(each.effective_rank), angle)
    return shown


def findings(outcomes: Mapping[str, Outcome]) -> Iterator[str]:
    """Yield what the numbers say, a sentence or two about each comparison."""
    euclidean, letter, slopes, true = (outcomes[name] for name in (EUCLIDEAN, LETTER, SLOPES, TRUE))
    phases, with_mass = len(letter.estimates), sum(bool(gop.any()) for gop in letter.estimates)
    if with_mass == 0:
        yield (
            f"To the letter, appendix A found no ball with enough mass in any of {phases} phases: "
            "its estimate is exactly 0 and its metric stayed Euclidean."
        )
    else:
        yield f"To the letter, appendix A found balls with enough mass in {with_mass} of {phases} phases."
    change = letter.late_error / euclidean.late_error - 1
    yield f"Its late error is {abs(change):.0%} {'above' if change > 0 else 'below'} the plain Euclidean learner's."
    found = "found no direction"
    if slopes.angle is not None:
        found = f"comes within {slopes.angle:.1f} degrees of the {_RANK} true directions"
    yield (
        f"With local slopes, the same algorithm {found}: its late error is "
        f"{slopes.late_error / euclidean.late_error:.2f} times the Euclidean learner's "
        f"and {slopes.late_error / true.late_error:.1f} times the true metric's."
    )
    yield (
        f"Its metric gives each of the other directions up to {slopes.eigenvalues[_RANK]:.1%} of the weight of "
        f"the first ({true.eigenvalues[_RANK]:.2%} in the true metric): an effective rank of "
        f"{slopes.effective_rank} against {true.effective_rank}."
    )
    neighbors, practical = outcomes[NEIGHBORS], outcomes[PRACTICAL]
    close = "" if practical.angle is None else f" (within {practical.angle:.1f} degrees)"
    yield (
        f"MetricRegressor finds the directions by itself{close}: its late error is "
        f"{practical.late_error / neighbors.late_error:.2f} times that of Euclidean nearest neighbours "
        f"and {practical.late_error / true.late_error:.2f} times that of Algorithm 1 in the true metric."
    )


def spectra(d: int) -> dict[str, Floats]:
    """Return spectra of a metric that decay at different speeds, by their formula."""
    i = np.arange(1.0, d + 1)
    return {
        r"$\lambda_i = 1$": np.ones(d),
        r"$\lambda_i = i^{-1}$": i**-1,
        r"$\lambda_i = i^{-2}$": i**-2,
        r"$\lambda_i = 2^{1-i}$": 2.0 ** (1 - i),
        r"$\lambda_i = 4^{1-i}$": 4.0 ** (1 - i),
    }


def draw(outcomes: Mapping[str, Outcome], y: Floats, output: Path) -> None:
    """Write the figure: error over time, and effective rank over time."""
    figure, (left, right) = plots.create_panels(2)
    window = max(1, len(y) // 16)
    plots.plot_rolling_rmse(left, {name: each.errors for name, each in outcomes.items()}, window, float(y.std()))
    plots.set_title(left, f"Error over time: {_D} features, {_RANK} directions matter")
    plots.plot_effective_rank(right, spectra(_D), _HORIZON)
    plots.set_title(right, f"Effective rank over time, by spectrum (d = {_D})")
    figure.savefig(output, format="png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo as the command line asks."""
    options = _options(arguments)
    stream = LowRankStream(d=_D, rank=_RANK, random_state=options.seed)
    X, y = stream.draw(options.rounds)
    learners = contenders(stream)
    screen, bars = Console(), Console(stderr=True)
    opening = f"{options.rounds:,} rounds of {_D} features; the labels depend on {_RANK} directions and some noise."
    screen.print(opening, highlight=False)
    with _progress(bars) as progress:
        errors = run(learners, X, y, progress)
    outcomes = {name: outcome(each, errors[name], y, stream.subspace) for name, each in learners.items()}
    screen.print(table(outcomes))
    for sentence in findings(outcomes):
        screen.print(sentence, highlight=False)
    draw(outcomes, y, options.output)
    screen.print(f"Figure: {options.output}", highlight=False, soft_wrap=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ellipack.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8000, help="how long the stream is (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn (default: %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("out/demo.png"), help="where the figure goes (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.rounds < _FEWEST_ROUNDS:
        parser.error(f"--rounds must be >= {_FEWEST_ROUNDS}, got {options.rounds}")
    if options.seed < 0:
        parser.error(f"--seed must be >= 0, got {options.seed}")
    # Now and not after all the work.
    if options.output.is_dir():
        parser.error(f"--output must be a file, got the directory {options.output}")
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output must be in a directory that can be made: {error}")
    return options


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<20}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _parts(rounds: int) -> Iterator[slice]:
    """Yield the slices of rounds between two steps of the progress bar; they change no prediction."""
    edges = np.unique(np.linspace(0, rounds, _STEPS + 1).astype(int)).tolist()
    for start, stop in pairwise(edges):
        yield slice(start, stop)


def _present(learner: Learner) -> tuple[Metric, int, int]:
    """Return the metric, the centres and the effective rank behind the last prediction."""
    if isinstance(learner, PhasedRegressor) and learner.n_centers_ == 0:
        # A phase has just ended, and the next has had no round yet.
        last = learner.phases_[-1]
        return last.metric, last.n_centers, last.effective_rank
    return learner.metric_, learner.n_centers_, learner.effective_rank_


def _angle(metric: Metric, subspace: Floats) -> float | None:
    """Return the largest principal angle between a metric's leading directions and the true ones, in degrees."""
    rank = subspace.shape[1]
    # In a Euclidean metric any direction is as good as any other: none leads.
    if metric.eigenvalues[rank - 1] == metric.eigenvalues[-1]:
        return None
    return float(np.degrees(subspace_angles(metric.eigenvectors[:, :rank], subspace).max()))


if __name__ == "__main__":
    main()
