"""How things are timed and shown: a figure of ours, its peer's, and how many times faster ours is."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from benchmarks.progress import following


@dataclass(frozen=True)
class Comparison:
    """Two ways to the same result, and the time each takes at best."""

    what: str
    peer: str
    seconds: float
    peer_seconds: float
    target: float  # how many times faster than its peer it is expected to be

    @property
    def ratio(self) -> float:
        """How many times faster than its peer it is."""
        return self.peer_seconds / self.seconds


Benchmark = Callable[[], Iterator[Comparison]]


def best_of(repeats: int, *functions: Callable[[], object]) -> list[float]:
    """Return the least seconds that each function took, the functions taking turns.

    The least and not the mean: what else the machine does can only add. Turns, so that it adds to all alike.
    """
    least = [float("inf")] * len(functions)
    for _ in range(repeats):
        for i, function in enumerate(functions):
            start = time.perf_counter()
            function()
            least[i] = min(least[i], time.perf_counter() - start)
    return least


def run(benchmarks: Iterable[Benchmark]) -> list[Comparison]:
    """Run benchmarks one after the other, saying on standard error which; quiet if that is not a terminal."""
    named = [((benchmark.__doc__ or "").partition("\n")[0], benchmark) for benchmark in benchmarks]
    return [comparison for benchmark in following(named) for comparison in benchmark()]


def tables(comparisons: Iterable[Comparison]) -> Iterator[Table]:
    """Yield a table for each thing that was compared, a row for each of its peers."""
    for what, group in groupby(comparisons, key=lambda each: each.what):
        shown = Table(title=what, title_justify="left", title_style="bold")
        shown.add_column("against", min_width=18)
        for heading in ("seconds", "its seconds", "ratio", "target"):
            shown.add_column(heading, justify="right", min_width=8, no_wrap=True)
        shown.add_column("", min_width=8)
        for each in group:
            figures = f"{each.seconds:.4f}", f"{each.peer_seconds:.4f}", f"{each.ratio:.1f}x", f"{each.target:g}x"
            verdict = "[green]reached[/green]" if each.ratio >= each.target else "[red]missed[/red]"
            shown.add_row(each.peer, *figures, verdict)
        yield shown
