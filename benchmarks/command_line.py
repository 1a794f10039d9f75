"""What the benchmark commands share: argument parsing, progress bars, tables, and targets with their outcome."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

Item = TypeVar("Item")
Result = TypeVar("Result")
Size = TypeVar("Size")

_DESCRIPTION = TextColumn("{task.description}")


def make_parser(module: str, description: str | None) -> argparse.ArgumentParser:
    """Return the argument parser of ``python -m benchmarks.MODULE``; its help shows the whole description."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def require_positive(parser: argparse.ArgumentParser, options: argparse.Namespace, *names: str) -> None:
    """End with a usage error if one of these options was given and is below 1."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be >= 1, got {value}")


def resize(sizes: tuple[Size, Size], options: argparse.Namespace, *names: str) -> Size:
    """Return the quick or, with ``--full``, the full size of a benchmark, with the fields that options override.

    Parameters
    ----------
    sizes : tuple of two dataclass instances
        The quick and the full size.
    options : argparse.Namespace
        Parsed options, `full` among them.
    *names : str
        Fields that have an option of the same name.
    """
    quick, full = sizes
    given = {name: getattr(options, name) for name in names if getattr(options, name) is not None}
    chosen: Any = full if options.full else quick
    resized: Size = replace(chosen, **given)
    return resized


def track_progress(items: Iterable[tuple[str, Item]]) -> Iterator[Item]:
    """Yield items; show the name of each, and how many are left, on standard error if it is a terminal."""
    listed = list(items)
    with _progress(_DESCRIPTION, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=len(listed))
        for name, item in listed:
            bar.update(task, description=name)
            yield item
            bar.advance(task)


def run_cases(function: Callable[[Item], Result], cases: Sequence[tuple[str, Item]], jobs: int) -> list[Result]:
    """Return the result of a function for each named case, in order; run up to `jobs` cases at a time, in processes."""
    if jobs == 1:
        return [function(item) for item in track_progress(cases)]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [(name, pool.submit(function, item)) for name, item in cases]
        return [future.result() for future in track_progress(futures)]


@contextmanager
def show_activity(description: str) -> Iterator[None]:
    """Show a spinner on standard error while the block runs, if standard error is a terminal."""
    with _progress(SpinnerColumn(), _DESCRIPTION, TimeElapsedColumn()) as bar:
        bar.add_task(description)
        yield


def _progress(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)


class TargetResult(NamedTuple):
    """A measured value, its target, and whether the target was reached; None if that is unknown."""

    name: str
    value: str
    target: str
    reached: bool | None

    @property
    def status(self) -> str:
        """One word, with color markup: reached, missed or unknown."""
        if self.reached is None:
            return "[yellow]unknown[/yellow]"
        return "[green]reached[/green]" if self.reached else "[red]missed[/red]"


def at_most(name: str, value: float, target: float, unit: str = "") -> TargetResult:
    """Compare a value with an upper limit."""
    return TargetResult(name, f"{value:.3g}{unit}", f"at most {target:g}{unit}", value <= target)


def at_least(name: str, value: float, target: float, unit: str = "") -> TargetResult:
    """Compare a value with a lower limit."""
    return TargetResult(name, f"{value:.3g}{unit}", f"at least {target:g}{unit}", value >= target)


def new_table(title: str, headings: Iterable[str]) -> Table:
    """Return an empty table: text in the first column, numbers in the others."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table


def targets_table(results: Iterable[TargetResult], title: str = "Targets") -> Table:
    """Return a table of targets, one in each row."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("measure", min_width=40)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("", min_width=7)
    for result in results:
        table.add_row(result.name, result.value, result.target, result.status)
    return table


def print_results(tables: Sequence[Table], page: Path, width: int = 120) -> None:
    """Print tables, and where the page of all benchmarks was written."""
    console = Console(width=width)
    for table in tables:
        console.print(table)
    console.print(f"Page: {page}", highlight=False, soft_wrap=True)
