"""How a run is getting on: rows per second, the error so far, and the skill over the running mean."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ellipack.cli.terminal import screen
from ellipack.evaluation.run import Run
from ellipack.evaluation.scores import SQUARED

_INTERVAL = 0.5  # seconds that a speed is measured over
_KEPT = 256


class Ticker:
    """A line on a terminal's standard error that is rewritten as a run goes on, and vanishes at its end.

    Where standard error is no terminal, nothing is shown. `speed` has pairs of a row's number and rows per second.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._console = run, screen(to_error=True)
        self.speed: list[tuple[int, float]] = []
        self._rows, self._since, self._every = run.scores.rows, monotonic(), 1
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:,} rows"),
            BarColumn(bar_width=16),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, completed=run.scores.rows)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def tick(self) -> None:
        """Show how things stand, if that was not done just now."""
        now, rows = monotonic(), self._run.scores.rows
        if now - self._since < _INTERVAL:
            return
        speed = (rows - self._rows) / (now - self._since)
        self._rows, self._since = rows, now
        if rows > (self.speed[-1][0] if self.speed else 0):
            self.speed.append((rows, speed))
        if len(self.speed) > _KEPT:
            self.speed = self.speed[1::2]
        error, skill = self._run.scores.root_mean(SQUARED) or 0.0, self._run.scores.skill or 0.0
        self._progress.update(
            self._task, completed=rows, description=f"{speed:,.0f} rows/s  RMSE {error:.4g}  skill {skill:.1%}"
        )
