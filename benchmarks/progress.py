"""How far a long run is: a bar on standard error, with the time that is left."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

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
