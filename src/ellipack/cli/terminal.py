"""What the commands print: tables and small bars for people, on standard output or standard error."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, JustifyMethod
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ellipack.evaluation.run import Run
from ellipack.report.formatting import clean, format_count
from ellipack.report.record import Direction, Record, Summary

_FEATURES, _PHASES, _LOADINGS, _BAR = 10, 10, 4, 24
_LEAST_SHARE, _LEAST_LOADING = 0.0005, 0.05  # below, nothing would be seen of it
_EIGHTHS = " ▏▎▍▌▋▊▉"


def make_console(*, to_error: bool = False) -> Console:
    """Return where tables go."""
    return Console(stderr=to_error, highlight=False, markup=False, emoji=False)


def print_record(record: Record, console: Console) -> None:
    """Print what came of a run: how good it was, and what drives the target."""
    console.print(Text(clean(f"{record.learner} on {record.source}, target {record.target}"), style="bold"))
    console.print(_score_table(record))
    console.print(_feature_table(record, console))
    console.print(_direction_table(record))


def print_model(record: Record, console: Console) -> None:
    """Print what a model has learned, all of it."""
    print_record(record, console)
    if record.experts.names:
        console.print(_expert_table(record, console))
    if record.phases:
        console.print(_phase_table(record))
    if record.columns:
        console.print(_column_table(record))
    console.print(_parameter_table(record))


def _table(title: str | None, *headings: str) -> Table:
    """Return a table; a heading that begins with > is that of numbers, and only the first column may break lines."""
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    for i, heading in enumerate(headings):
        justify: JustifyMethod = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, no_wrap=i > 0)
    return table


def _score_table(record: Record) -> Table:
    table = _table(None, "", ">")
    table.show_header = False
    for name, value in _score_rows(record.summary) if record.summary.rows else []:
        table.add_row(name, value)
    table.add_row("effective rank", f"{record.effective_rank} of {len(record.features)}")
    table.add_row("centres", f"{record.n_centers:,}")
    return table


def _score_rows(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("rows", f"{summary.rows:,}"),
        ("rows skipped", f"{summary.skipped:,}"),
        ("RMSE", _number(summary.rmse)),
        ("RMSE of the running mean", _number(summary.mean_rmse)),
        ("RMSE of the last value", _number(summary.last_rmse)),
        ("MAE", _number(summary.mae)),
        ("R2", "-" if summary.r2 is None else f"{summary.r2:.4f}"),
        ("skill over the running mean", "-" if summary.skill is None else f"{summary.skill:.1%}"),
    ]


def _feature_table(record: Record, console: Console) -> Table:
    table = _table("What drives it: features", "feature", ">share", "")
    ranked = sorted(zip(record.importances, record.features, strict=True), key=lambda pair: (-pair[0], pair[1]))
    shown = [pair for pair in ranked[:_FEATURES] if pair[0] >= _LEAST_SHARE] or ranked[:1]
    for share, name in shown:
        table.add_row(Text(clean(name)), f"{share:.1%}", bar(share / max(ranked[0][0], 1e-300), console))
    rest = ranked[len(shown) :]
    if rest:
        table.caption = f"and {len(rest):,} more, with {sum(share for share, _ in rest):.1%} in all"
    return table


def _direction_table(record: Record) -> Table:
    table = _table("What drives it: directions", ">weight", "made of (features in standard units)")
    table.columns[0].no_wrap, table.columns[1].no_wrap = True, False
    for direction in record.directions[: max(1, record.effective_rank)]:
        table.add_row(f"{direction.eigenvalue:.3g}", Text(_describe_direction(direction, record.features)))
    return table


def _describe_direction(direction: Direction, features: list[str]) -> str:
    """Return the features that a direction is made of; which of its two ends is the positive one means nothing."""
    ranked = sorted(zip(direction.loadings, features, strict=True), key=lambda pair: -abs(pair[0]))
    seen = [pair for pair in ranked[:_LOADINGS] if abs(pair[0]) >= _LEAST_LOADING] or ranked[:1]
    sign = -1.0 if seen[0][0] < 0 else 1.0
    return "  ".join(f"{sign * loading:+.2f} {clean(name)}" for loading, name in seen)


def _expert_table(record: Record, console: Console) -> Table:
    table = _table("Who predicts: experts", "expert", ">weight", "")
    pairs = zip(record.experts.weights, record.experts.names, strict=True)
    for weight, name in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        table.add_row(Text(clean(name)), f"{weight:.1%}", bar(weight, console))
    return table


def _phase_table(record: Record) -> Table:
    has_choice = any(phase.choice for phase in record.phases)
    table = _table("Phases", ">last row", ">centres", ">effective rank", *["metric chosen"] * has_choice)
    for phase in record.phases[-_PHASES:]:
        numbers = f"{phase.end:,}", f"{phase.n_centers:,}", str(phase.effective_rank)
        table.add_row(*numbers, *[Text(clean(phase.choice))] * has_choice)
    if len(record.phases) > _PHASES:
        table.caption = f"after {format_count(len(record.phases) - _PHASES, 'earlier one')}"
    return table


def _column_table(record: Record) -> Table:
    has_note = any(column.note for column in record.columns)
    table = _table("Columns", "column", "taken for", ">missing", *["note"] * has_note)
    for each in record.columns:
        table.add_row(Text(clean(each.name)), each.kind, f"{each.missing:,}", *[Text(clean(each.note))] * has_note)
    return table


def _parameter_table(record: Record) -> Table:
    table = _table("Settings", "parameter", "value")
    for name, value in record.parameters.items():
        table.add_row(Text(clean(name)), Text(clean(str(value))))
    return table


def bar(share: float, console: Console) -> str:
    """Return a bar as long as a share of its full length, to an eighth of a character where there are such.

    >>> bar(0.5, make_console())
    '████████████'
    """
    eighths = round(max(0.0, min(1.0, share)) * _BAR * 8)
    if console.options.ascii_only:
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


_INTERVAL = 0.5  # seconds that a speed is measured over
_KEPT = 256


class ProgressLine:
    """A line on a terminal's standard error that is rewritten as a run goes on, and vanishes at its end.

    Where standard error is no terminal, nothing is shown. `speed` has pairs of a row's number and rows per second.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._console = run, make_console(to_error=True)
        self.speed: list[tuple[int, float]] = []
        self._rows, self._since, self._every = run.scores.n_rows, monotonic(), 1
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
        self._task = self._progress.add_task("", total=None, completed=run.scores.n_rows)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def update(self) -> None:
        """Show how things stand, if that was not done just now."""
        now, rows = monotonic(), self._run.scores.n_rows
        if now - self._since < _INTERVAL:
            return
        speed = (rows - self._rows) / (now - self._since)
        self._rows, self._since = rows, now
        if rows > (self.speed[-1][0] if self.speed else 0):
            self.speed.append((rows, speed))
        if len(self.speed) > _KEPT:
            self.speed = self.speed[1::2]
        error, skill = self._run.scores.rmse or 0.0, self._run.scores.skill or 0.0
        self._progress.update(
            self._task, completed=rows, description=f"{speed:,.0f} rows/s  RMSE {error:.4g}  skill {skill:.1%}"
        )
