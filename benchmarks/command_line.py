"""Figures beside what they are to be, and whether that was reached."""

import argparse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

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


class Verdict(NamedTuple):
    """A figure, what it is to be, and whether it is: None if that can't be told."""

    what: str
    figure: str
    target: str
    reached: bool | None

    @property
    def word(self) -> str:
        """Return the verdict in a word, coloured."""
        if self.reached is None:
            return "[yellow]unknown[/yellow]"
        return "[green]reached[/green]" if self.reached else "[red]missed[/red]"


def at_most(what: str, figure: float, target: float, unit: str = "") -> Verdict:
    """Judge a figure that is to be small."""
    return Verdict(what, f"{figure:.3g}{unit}", f"at most {target:g}{unit}", figure <= target)


def at_least(what: str, figure: float, target: float, unit: str = "") -> Verdict:
    """Judge a figure that is to be large."""
    return Verdict(what, f"{figure:.3g}{unit}", f"at least {target:g}{unit}", figure >= target)


def figures(title: str, heads: Iterable[str]) -> Table:
    """Return an empty table of figures, names in its first column."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left", no_wrap=True)
    return table


def table_of(verdicts: Iterable[Verdict], title: str) -> Table:
    """Lay out verdicts, a row each."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("what", min_width=40)
    table.add_column("figure", justify="right", no_wrap=True)
    table.add_column("target", no_wrap=True)
    table.add_column("", min_width=7)
    for each in verdicts:
        table.add_row(each.what, each.figure, each.target, each.word)
    return table


def check_counts(parser: argparse.ArgumentParser, options: argparse.Namespace, *names: str) -> None:
    """End with a usage error if one of these options was given and is not at least 1."""
    for name in names:
        value = getattr(options, name)
        if value is not None and value < 1:
            parser.error(f"--{name} must be >= 1, got {value}")


Thing = TypeVar("Thing")
_NAME = TextColumn("{task.description}")


def following(things: Iterable[tuple[str, Thing]]) -> Iterator[Thing]:
    """Yield things one after the other, saying what each is called and how many are left; quiet if nobody looks."""
    listed = list(things)
    with _shown(_NAME, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task("", total=len(listed))
        for name, thing in listed:
            progress.update(task, description=name)
            yield thing
            progress.advance(task)


@contextmanager
def telling(what: str) -> Iterator[None]:
    """Say what is going on as long as it does, where nobody knows how far it is; quiet if nobody looks."""
    with _shown(SpinnerColumn(), _NAME, TimeElapsedColumn()) as progress:
        progress.add_task(what)
        yield


def _shown(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
