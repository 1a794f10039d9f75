"""How far a long run is: a bar on standard error, with the time that is left."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Thing = TypeVar("Thing")


def following(things: Iterable[tuple[str, Thing]]) -> Iterator[Thing]:
    """Yield things one after the other, saying what each is called and how many are left; quiet if nobody looks."""
    listed = list(things)
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    hidden = not console.is_terminal
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=hidden, transient=True) as progress:
        task = progress.add_task("", total=len(listed))
        for name, thing in listed:
            progress.update(task, description=name)
            yield thing
            progress.advance(task)
