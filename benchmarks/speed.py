"""Speed of the paper's algorithms against NumPy, and of two threads against one: ``python -m benchmarks.speed``."""

import platform
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import groupby

import numpy as np
from rich.console import Console
from rich.table import Table

import ellipack
from benchmarks import numpy_baselines
from benchmarks.command_line import track_progress
from benchmarks.measurement import best_of
from ellipack.learners import packing
from ellipack.metric import KernelDifferences, Metric
from ellipack.synthetic import LowRankStream
from ellipack.theory import bandwidth, mass_threshold, step
from ellipack.validation import Floats

_PACKING_BASELINES = {
    "NumPy, as printed": numpy_baselines.packing_as_printed,
    "NumPy, tuned": numpy_baselines.packing_whitened,
}
_STREAM = LowRankStream(d=10, rank=2)
# With these scales, balls contain rows at d = 10. Otherwise all gradients would be 0.
_BANDWIDTH_SCALE, _STEP_SCALE, _MASS_SCALE = 2.0, 0.25, 0.1


@dataclass(frozen=True)
class SpeedComparison:
    """Two ways to the same result, with the least seconds that each takes."""

    name: str
    peer: str
    seconds: float
    peer_seconds: float
    target: float
    """How many times as fast as its peer it should be."""

    @property
    def ratio(self) -> float:
        """How many times as fast as its peer it is."""
        return self.peer_seconds / self.seconds


Benchmark = Callable[[], Iterator[SpeedComparison]]


def algorithm_1() -> Iterator[SpeedComparison]:
    """Algorithm 1 against NumPy loops."""
    low_rank, identity = Metric.from_gop(_STREAM.gop(), 1e-4), Metric.identity(_STREAM.d)
    for title, metric, n in (("low-rank metric", low_rank, 20_000), ("identity", identity, 5_000)):
        X, y = _STREAM.draw(n)
        state = packing.init(metric)
        predictions = packing.learn(state, X, y)
        name = f"Algorithm 1, {title}, {n:,} rounds, {state.core.size:,} centers"
        (ours,) = best_of(7, partial(_run_packing, metric, X, y))
        for peer, loop in _PACKING_BASELINES.items():
            _assert_nearly_all_equal(loop(metric, X, y), predictions)
            (seconds,) = best_of(2, partial(loop, metric, X, y))
            yield SpeedComparison(name, peer, ours, seconds, target=50)


def appendix_a() -> Iterator[SpeedComparison]:
    """Appendix A with shared differences against its literal version."""
    X, y = _STREAM.draw(5_000)
    anchors, scales = X[:200], _scales(X)
    shared = _kernel_differences(n_jobs=1)
    gradients = shared.gradients(X, y, anchors)
    assert gradients.any()
    literal = partial(numpy_baselines.appendix_a_gradients, anchors, X, y, scales)
    np.testing.assert_allclose(gradients, literal(), rtol=0, atol=1e-9)
    (ours,) = best_of(7, lambda: shared.gradients(X, y, anchors))
    (numpy,) = best_of(2, literal)
    name = f"Appendix A, shared differences, d = {X.shape[1]}, n = {len(X):,}, {len(anchors)} anchors"
    yield SpeedComparison(name, "literal, NumPy", ours, numpy, target=5)


def two_threads() -> Iterator[SpeedComparison]:
    """Appendix A on two threads against one."""
    X, y = _STREAM.draw(5_000)
    one, two = _kernel_differences(n_jobs=1), _kernel_differences(n_jobs=2)
    np.testing.assert_array_equal(one.gradients(X, y), two.gradients(X, y))
    ours, peer = best_of(7, lambda: two.gradients(X, y), lambda: one.gradients(X, y))
    name = f"Appendix A, two threads, d = {X.shape[1]}, n = {len(X):,}, all anchors"
    yield SpeedComparison(name, "one thread", ours, peer, target=1.6)


BENCHMARKS: tuple[Benchmark, ...] = (algorithm_1, appendix_a, two_threads)


def run_benchmarks(benchmarks: Iterable[Benchmark]) -> list[SpeedComparison]:
    """Run benchmarks one after the other; the progress bar shows the first line of their docstrings."""
    named = [((benchmark.__doc__ or "").partition("\n")[0], benchmark) for benchmark in benchmarks]
    return [comparison for benchmark in track_progress(named) for comparison in benchmark()]


def comparison_tables(comparisons: Iterable[SpeedComparison]) -> Iterator[Table]:
    """Yield a table for each benchmark, with a row for each peer."""
    for name, group in groupby(comparisons, key=lambda each: each.name):
        table = Table(title=name, title_justify="left", title_style="bold")
        table.add_column("peer", min_width=18)
        for heading in ("seconds", "its seconds", "ratio", "target"):
            table.add_column(heading, justify="right", min_width=8, no_wrap=True)
        table.add_column("", min_width=8)
        for each in group:
            figures = f"{each.seconds:.4f}", f"{each.peer_seconds:.4f}", f"{each.ratio:.1f}x", f"{each.target:g}x"
            status = "[green]reached[/green]" if each.ratio >= each.target else "[red]missed[/red]"
            table.add_row(each.peer, *figures, status)
        yield table


def main() -> None:
    """Run all benchmarks and print the results."""
    console = Console()
    versions = f"Python {platform.python_version()}, NumPy {version('numpy')}, ellipack {ellipack.__version__}"
    console.print(versions, highlight=False)
    console.print(*comparison_tables(run_benchmarks(BENCHMARKS)), sep="\n")
    note = "Seconds are the least of several runs. Other work on the machine lowers the ratio of two threads most."
    console.print(note, highlight=False)


def _assert_nearly_all_equal(theirs: Floats, ours: Floats) -> None:
    """Raise unless at least 99.9 % of the predictions are equal.

    The loops sum in another order than the kernels, so a tie may be resolved differently on some processors.
    """
    same = float(np.mean(theirs == ours))
    assert same >= 0.999, f"at least 99.9 % of the predictions must be equal, got {same:.3%}"


def _run_packing(metric: Metric, X: Floats, y: Floats) -> Floats:
    return packing.learn(packing.init(metric), X, y)


def _kernel_differences(n_jobs: int) -> KernelDifferences:
    return KernelDifferences("epanechnikov", _BANDWIDTH_SCALE, _STEP_SCALE, _MASS_SCALE, n_jobs)


def _scales(X: Floats) -> tuple[float, float, float]:
    """Return the bandwidth, step and mass threshold that `_kernel_differences` uses."""
    n, d = X.shape
    width = bandwidth(n, d, _BANDWIDTH_SCALE)
    return width, step(width, _STEP_SCALE), mass_threshold(n, d, _MASS_SCALE)


if __name__ == "__main__":
    main()
