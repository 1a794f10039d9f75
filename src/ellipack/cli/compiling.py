"""``ellipack compile``: all kernels, ahead of use."""

from time import monotonic

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ellipack.cli.saying import say
from ellipack.cli.terminal import screen
from ellipack.compiling.workers import TASKS, compile_kernels


def compile_all(jobs: int | None) -> None:
    """Compile every kernel by so many processes, or one for each core, and show how far it is."""
    console, start = screen(to_error=True), monotonic()
    columns = TextColumn("compiling"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        bar = progress.add_task("", total=len(TASKS))
        for task in compile_kernels(-1 if jobs is None else jobs):
            progress.update(bar, advance=1, description=f"{task.replace('_', ' ')} done")
    say(f"all kernels are compiled, in {monotonic() - start:.0f} s")
