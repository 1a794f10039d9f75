"""Figures beside what they are to be, and whether that was reached."""

from collections.abc import Iterable
from typing import NamedTuple

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
