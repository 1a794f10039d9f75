"""Comparison of six learners on a synthetic stream of 20 features whose target depends on 2 directions.

Run it with ``python -m ellipack.demo``.
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
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    package = (error.name or "one").partition(".")[0]
    sys.exit(f"The demo needs rich and matplotlib, and {package} is missing: pip install 'ellipack[demo]'")

EUCLIDEAN = "Euclidean"
APPENDIX_A = "Phased, appendix A"
LOCAL_SLOPES = "Phased, local slopes"
TRUE_METRIC = "True metric"
NEIGHBORS = "Nearest neighbors"
METRIC = "MetricRegressor"

_D, _RANK = 20, 2
_HORIZON = 10**6
_MIN_ROUNDS = 16  # the second half needs enough labels for a standard deviation
_PROGRESS_STEPS = 100
_CAPTION = """\
Late error: RMSE over the second half / standard deviation of its labels.
Angle: largest principal angle between learned and true directions."""


class NearestNeighbors:
    """Baseline: the mean label of the 16 nearest rows so far, with all features weighted equally.

    Parameters
    ----------
    d : int
        Number of features.
    """

    def __init__(self, d: int) -> None:
        self.index = NeighborIndex.empty(d)
        self.labels = np.empty(0)
        self.metric_, self.effective_rank_ = Metric.identity(d), d

    @property
    def n_centers_(self) -> int:
        """Number of rows kept, which is all of them."""
        return len(self.index)

    def progressive(self, X: Floats, y: Floats) -> Floats:
        """Predict and then learn each row; return the predictions."""
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
class Result:
    """Results of a learner after the last round."""

    errors: Floats
    late_error: float
    n_centers: int
    effective_rank: int
    eigenvalues: Floats
    angle: float | None  # in degrees; None if no direction was learned
    estimates: list[Floats]  # of the gradient outer product, one per phase that has ended


def make_learners(stream: LowRankStream) -> dict[str, Learner]:
    """Return the learners to compare, by name."""
    return {
        NEIGHBORS: NearestNeighbors(stream.d),
        EUCLIDEAN: PackingRegressor(),
        APPENDIX_A: PhasedRegressor(gop=GradientOuterProduct(KernelDifferences(n_jobs=-1))),
        LOCAL_SLOPES: PhasedRegressor(gop=GradientOuterProduct(LocalSlopes(n_jobs=-1))),
        # The ridge makes the metric positive definite, and is small enough not to change its effective rank.
        TRUE_METRIC: PackingRegressor(Metric.from_gop(stream.gop(), 1e-4)),
        METRIC: MetricRegressor(),
    }


def run_learners(learners: Mapping[str, Learner], X: Floats, y: Floats, progress: Progress) -> dict[str, Floats]:
    """Let every learner predict and then learn each round; return the errors by learner."""
    errors = {name: np.empty(len(y)) for name in learners}
    tasks = {name: progress.add_task(name, total=len(y)) for name in learners}
    for part in _slices(len(y)):
        for name, learner in learners.items():
            errors[name][part] = learner.progressive(X[part], y[part]) - y[part]
            progress.update(tasks[name], completed=part.stop)
    return errors


def evaluate(learner: Learner, errors: Floats, y: Floats, subspace: Floats) -> Result:
    """Return the results of a learner."""
    late = slice(len(y) // 2, None)
    metric, n_centers, rank = _current_model(learner)
    return Result(
        errors=errors,
        late_error=float(np.sqrt(np.mean(errors[late] ** 2)) / y[late].std()),
        n_centers=n_centers,
        effective_rank=rank,
        eigenvalues=metric.eigenvalues,
        angle=_largest_angle(metric, subspace),
        estimates=[phase.gop for phase in learner.phases_] if isinstance(learner, PhasedRegressor) else [],
    )


def result_table(results: Mapping[str, Result]) -> Table:
    """Return the results as a table."""
    shown = Table(caption=_CAPTION, caption_justify="left")
    shown.add_column("Learner", no_wrap=True)
    for heading in ("Late error", "Centers", "Effective rank", "Angle"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for name, each in results.items():
        angle = "-" if each.angle is None else f"{each.angle:.1f} deg"
        shown.add_row(name, f"{each.late_error:.3f}", f"{each.n_centers:,}", str(each.effective_rank), angle)
    return shown


def describe_results(results: Mapping[str, Result]) -> Iterator[str]:
    """Yield sentences that compare the results."""
    euclidean, appendix_a, slopes, true = (results[name] for name in (EUCLIDEAN, APPENDIX_A, LOCAL_SLOPES, TRUE_METRIC))
    phases, with_mass = len(appendix_a.estimates), sum(bool(gop.any()) for gop in appendix_a.estimates)
    if with_mass == 0:
        yield (
            f"The estimator of appendix A found no ball with enough mass in any of {phases} phases: "
            "its estimate is exactly 0 and its metric stayed Euclidean."
        )
    else:
        yield f"The estimator of appendix A found balls with enough mass in {with_mass} of {phases} phases."
    change = appendix_a.late_error / euclidean.late_error - 1
    yield f"Its late error is {abs(change):.0%} {'above' if change > 0 else 'below'} that of the Euclidean learner."
    found = "finds no direction"
    if slopes.angle is not None:
        found = f"finds the {_RANK} true directions to within {slopes.angle:.1f} degrees"
    yield (
        f"With local slopes, the same algorithm {found}: its late error is "
        f"{slopes.late_error / euclidean.late_error:.2f} times that of the Euclidean learner "
        f"and {slopes.late_error / true.late_error:.1f} times that of the true metric."
    )
    yield (
        f"Its metric gives each of the other directions up to {slopes.eigenvalues[_RANK]:.1%} of the weight of "
        f"the first ({true.eigenvalues[_RANK]:.2%} in the true metric). Its effective rank is "
        f"{slopes.effective_rank}; that of the true metric is {true.effective_rank}."
    )
    neighbors, practical = results[NEIGHBORS], results[METRIC]
    accuracy = "" if practical.angle is None else f" (to within {practical.angle:.1f} degrees)"
    yield (
        f"MetricRegressor finds the directions by itself{accuracy}: its late error is "
        f"{practical.late_error / neighbors.late_error:.2f} times that of Euclidean nearest neighbors "
        f"and {practical.late_error / true.late_error:.2f} times that of Algorithm 1 in the true metric."
    )


def example_spectra(d: int) -> dict[str, Floats]:
    """Return spectra that decay at different rates, by their formula."""
    i = np.arange(1.0, d + 1)
    return {
        r"$\lambda_i = 1$": np.ones(d),
        r"$\lambda_i = i^{-1}$": i**-1,
        r"$\lambda_i = i^{-2}$": i**-2,
        r"$\lambda_i = 2^{1-i}$": 2.0 ** (1 - i),
        r"$\lambda_i = 4^{1-i}$": 4.0 ** (1 - i),
    }


def write_figure(results: Mapping[str, Result], y: Floats, output: Path) -> None:
    """Write the figure: error over time, and effective rank over time."""
    figure, (left, right) = plots.create_panels(2)
    window = max(1, len(y) // 16)
    plots.plot_rolling_rmse(left, {name: each.errors for name, each in results.items()}, window, float(y.std()))
    plots.set_title(left, f"Error over time: {_D} features, {_RANK} directions matter")
    plots.plot_effective_rank(right, example_spectra(_D), _HORIZON)
    plots.set_title(right, f"Effective rank over time, by spectrum (d = {_D})")
    figure.savefig(output, format="png")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison, print its results and write its figure.

    Parameters
    ----------
    arguments : sequence of str or None, default None
        Arguments of the command line. If None, those of the process.
    """
    options = _parse_arguments(arguments)
    stream = LowRankStream(d=_D, rank=_RANK, random_state=options.seed)
    X, y = stream.draw(options.rounds)
    learners = make_learners(stream)
    screen, bars = Console(), Console(stderr=True)
    opening = f"{options.rounds:,} rounds of {_D} features; the labels depend on {_RANK} directions, plus noise."
    screen.print(opening, highlight=False)
    with _make_progress(bars) as progress:
        errors = run_learners(learners, X, y, progress)
    results = {name: evaluate(each, errors[name], y, stream.subspace) for name, each in learners.items()}
    screen.print(result_table(results))
    for sentence in describe_results(results):
        screen.print(sentence, highlight=False)
    write_figure(results, y, options.output)
    screen.print(f"Figure: {options.output}", highlight=False, soft_wrap=True)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ellipack.demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=8000, help="length of the stream (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("out/demo.png"), help="file of the figure (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.rounds < _MIN_ROUNDS:
        parser.error(f"--rounds must be >= {_MIN_ROUNDS}, got {options.rounds}")
    if options.seed < 0:
        parser.error(f"--seed must be >= 0, got {options.seed}")
    # Check the output before the long computation.
    if options.output.is_dir():
        parser.error(f"--output must be a file, got the directory {options.output}")
    try:
        options.output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output must be in a directory that can be created: {error}")
    return options


def _make_progress(console: Console) -> Progress:
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


def _slices(rounds: int) -> Iterator[slice]:
    """Yield the slices of rounds between two updates of the progress bar. They do not affect the predictions."""
    edges = np.unique(np.linspace(0, rounds, _PROGRESS_STEPS + 1).astype(int)).tolist()
    for start, stop in pairwise(edges):
        yield slice(start, stop)


def _current_model(learner: Learner) -> tuple[Metric, int, int]:
    """Return the metric, the number of centers and the effective rank of the last prediction."""
    if isinstance(learner, PhasedRegressor) and learner.n_centers_ == 0:
        # A phase has just ended, and the next one has not started.
        last = learner.phases_[-1]
        return last.metric, last.n_centers, last.effective_rank
    return learner.metric_, learner.n_centers_, learner.effective_rank_


def _largest_angle(metric: Metric, subspace: Floats) -> float | None:
    """Return the largest principal angle between a metric's leading directions and the true ones, in degrees."""
    rank = subspace.shape[1]
    # The metric has no leading directions, as if it were Euclidean.
    if metric.eigenvalues[rank - 1] == metric.eigenvalues[-1]:
        return None
    return float(np.degrees(subspace_angles(metric.eigenvectors[:, :rank], subspace).max()))


if __name__ == "__main__":
    main()
