"""Output to the terminal: tables of results, and the progress of a run."""

from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from ellipack.evaluation.drivers import column_importances
from ellipack.evaluation.run import Run
from ellipack.report.formatting import clean, format_change, format_count, format_number, format_percent, truncate
from ellipack.report.headline import build_baseline_warnings, format_share
from ellipack.report.record import Direction, ImportanceRecord, KeysRecord, PastRecord, Record, Summary

_MIN_DRIVER_LENGTH, _MAX_DRIVER_LENGTH = 8, 24
_MAX_FEATURES, _MAX_KEYS, _MAX_PHASES, _MAX_LOADINGS, _MAX_AS_ONE = 10, 10, 10, 4, 8
_NAME_WIDTH = 20  # of a column, if the terminal is narrow
_MIN_WEIGHT, _MIN_LOADING = 0.0005, 0.05  # smaller values are not shown
_BAR_LENGTH = 16
_SPEED_WINDOW_SECONDS = 0.5
_MAX_SPEEDS = 256
_EIGHTHS = " ▏▎▍▌▋▊▉"


class _Console(Console):
    """Console that raises BrokenPipeError if its reader goes away. Rich would exit with code 1."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError


def make_console(*, to_error: bool = False) -> Console:
    """Return a console on standard output or standard error."""
    return _Console(stderr=to_error, highlight=False, markup=False, emoji=False)


def print_record(record: Record, console: Console) -> None:
    """Print the results of a run: errors, features and directions."""
    console.print(Text(clean(f"{record.learner} on {record.source}, target {record.target}"), style="bold"))
    console.print(_score_table(record))
    for warning in build_baseline_warnings(record):
        console.print(warning)
    if record.keys is not None:
        console.print(_key_table(record.keys))
    if record.importance is not None:
        console.print(_importance_table(record.importance, console))
    console.print(_direction_table(record))


def print_model(record: Record, console: Console) -> None:
    """Print everything that a model has learned."""
    print_record(record, console)
    if record.past is not None:
        console.print(_past_table(record.past, console))
    if record.experts.names:
        console.print(_expert_table(record, console))
    if record.phases:
        console.print(_phase_table(record))
    if record.columns:
        console.print(_column_table(record))
    console.print(_parameter_table(record))


def _table(title: str | None, *headings: str) -> Table:
    """Return a table. A heading that starts with > aligns its column right; only the first column wraps lines."""
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
    if record.past is not None and record.summary.rows and record.past.rmse_without > 0:
        saved = 1 - record.past.rmse_with / record.past.rmse_without
        table.add_row("RMSE saved by the past", format_change(saved))
    for each in record.intervals:
        share = "-" if each.covered is None else f"{each.covered:.1%} of labels"
        table.add_row(f"in intervals of {100 * each.coverage:g}%", f"{share}, mean width {_number(each.mean_width)}")
    table.add_row("effective rank", f"{record.effective_rank} of {len(record.features)}")
    table.add_row("centers", f"{record.n_centers:,}")
    return table


def _score_rows(summary: Summary) -> list[tuple[str, str]]:
    return [
        ("rows", f"{summary.rows:,}"),
        ("rows skipped", f"{summary.skipped:,}"),
        *[("rows without a label", f"{summary.unlabeled:,}")] * (summary.unlabeled > 0),
        *[("labels that came later", f"{summary.late_labels:,}")] * (summary.late_labels > 0),
        *[("rows left out of the errors", f"{summary.warm_up:,}")] * (summary.warm_up > 0),
        ("RMSE", _number(summary.rmse)),
        *[("RMSE of the last quarter", _number(summary.late_rmse))] * (summary.late_rmse is not None),
        ("RMSE of the running mean", _number(summary.mean_rmse)),
        ("RMSE of the last value", _number(summary.last_rmse)),
        ("MAE", _number(summary.mae)),
        ("R2", "-" if summary.r2 is None else f"{summary.r2:.4f}"),
        ("skill over the running mean", "-" if summary.skill is None else format_change(summary.skill)),
    ]


def _importance_table(measured: ImportanceRecord, console: Console) -> Table:
    """Return the importance of columns, the most important ones first, and of time."""
    table = _table("What drives it", "column", ">importance", ">recently", "")
    table.columns[-1].no_wrap = False  # effects may be long
    shown = measured.groups[:_MAX_FEATURES]
    largest = max((each.share or 0.0 for each in shown), default=0.0)
    for each in shown:
        recent = "-"
        if each.recent_share is not None and each.recent_share_std is not None:
            recent = f"{format_percent(each.recent_share)} \N{PLUS-MINUS SIGN} {format_percent(each.recent_share_std)}"
        length = min(1.0, (each.share or 0.0) / max(largest, 1e-300))
        note = f"  {each.effect}" if each.effect else ""
        more = f" and {len(each.columns) - 1:,} more" if len(each.columns) > 1 else ""
        table.add_row(Text(clean(each.columns[0]) + more), format_share(each), recent, bar(length, console) + note)
    table.columns[0].min_width = min(_NAME_WIDTH, max((len(each.columns[0]) for each in shown), default=0))
    rest = len(measured.groups) - len(shown)
    notes = [f"and {rest:,} more"] * (rest > 0)
    together = [each.columns for each in shown if 1 < len(each.columns) <= _MAX_AS_ONE]
    notes += [f"as one: {', '.join(map(clean, columns))}" for columns in together]
    if measured.time_columns:
        notes.append(f"time: {', '.join(map(clean, measured.time_columns))}")
    if measured.time is not None:
        time = measured.time
        parts = f"recent values {time.time:.0%}, features {time.features:.0%}, both {time.both:.0%}"
        notes.append(f"of what is explained, {parts} (\N{PLUS-MINUS SIGN} {100 * time.std:.0f} points)")
    if largest > 0 and not any(each.is_driver for each in shown):
        notes.append("no column matters beyond doubt")
    table.caption = "; ".join(notes) or None
    return table


def _past_table(past: PastRecord, console: Console) -> Table:
    table = _table("Metric of the learner that sees the past", "feature", ">weight", "")
    ranked = sorted(zip(past.metric_weights, past.features, strict=True), key=lambda pair: (-pair[0], pair[1]))
    shown = [pair for pair in ranked[:_MAX_FEATURES] if pair[0] >= _MIN_WEIGHT] or ranked[:1]
    for share, name in shown:
        table.add_row(Text(clean(name)), f"{share:.1%}", bar(share / max(ranked[0][0], 1e-300), console))
    rest = ranked[len(shown) :]
    if rest:
        table.caption = f"and {len(rest):,} more, {sum(share for share, _ in rest):.1%} in total"
    return table


def _key_table(keys: KeysRecord) -> Table:
    table = _table(f"Errors by {clean(keys.name)}", clean(keys.name), ">rows", ">RMSE", ">learner of all keys")
    columns = list(zip(keys.names, keys.rows, keys.key_rmse, keys.key_pooled_rmse, strict=True))[:_MAX_KEYS]
    for name, rows, own, pooled in columns:
        table.add_row(Text(clean(name)), f"{rows:,}", format_number(own), format_number(pooled))
    table.add_row(Text(f"all {keys.count:,}"), "", format_number(keys.rmse), format_number(keys.pooled_rmse))
    table.caption = f"{keys.count:,} learners, {keys.on_disk:,} of them on disk"
    return table


def _direction_table(record: Record) -> Table:
    table = _table("Leading directions", ">eigenvalue", "loadings (features in standard units)")
    table.columns[0].no_wrap, table.columns[1].no_wrap = True, False
    for direction in record.directions[: max(1, record.effective_rank)]:
        table.add_row(f"{direction.eigenvalue:.3g}", Text(_describe_direction(direction, record.features)))
    return table


def _describe_direction(direction: Direction, features: list[str]) -> str:
    """Return the largest loadings of a direction. Its overall sign is arbitrary: the largest is made positive."""
    ranked = sorted(zip(direction.loadings, features, strict=True), key=lambda pair: -abs(pair[0]))
    seen = [pair for pair in ranked[:_MAX_LOADINGS] if abs(pair[0]) >= _MIN_LOADING] or ranked[:1]
    sign = -1.0 if seen[0][0] < 0 else 1.0
    return "  ".join(f"{sign * loading:+.2f} {clean(name)}" for loading, name in seen)


def _expert_table(record: Record, console: Console) -> Table:
    table = _table("Expert weights", "expert", ">weight", "")
    pairs = zip(record.experts.weights, record.experts.names, strict=True)
    for weight, name in sorted(pairs, key=lambda pair: (-pair[0], pair[1])):
        table.add_row(Text(clean(name)), f"{weight:.1%}", bar(weight, console))
    return table


def _phase_table(record: Record) -> Table:
    has_choice = any(phase.choice for phase in record.phases)
    table = _table("Phases", ">last row", ">centers", ">effective rank", *["metric chosen"] * has_choice)
    for phase in record.phases[-_MAX_PHASES:]:
        numbers = f"{phase.end:,}", f"{phase.n_centers:,}", str(phase.effective_rank)
        table.add_row(*numbers, *[Text(clean(phase.choice))] * has_choice)
    if len(record.phases) > _MAX_PHASES:
        table.caption = f"{format_count(len(record.phases) - _MAX_PHASES, 'earlier phase')} not shown"
    return table


def _column_table(record: Record) -> Table:
    has_note = any(column.note for column in record.columns)
    table = _table("Columns", "column", "kind", ">missing", *["note"] * has_note)
    table.columns[0].min_width = min(_NAME_WIDTH, max((len(column.name) for column in record.columns), default=0))
    table.columns[-1].no_wrap = not has_note
    for each in record.columns:
        texts = Text(clean(each.name)), Text(clean(each.kind))
        table.add_row(*texts, f"{each.missing:,}", *[Text(clean(each.note))] * has_note)
    return table


def _parameter_table(record: Record) -> Table:
    table = _table("Parameters", "parameter", "value")
    for name, value in record.parameters.items():
        table.add_row(Text(clean(name)), Text(clean(str(value))))
    return table


def bar(share: float, console: Console) -> str:
    """Return a bar for a share of 1, to an eighth of a character if the terminal supports Unicode.

    Examples
    --------
    >>> bar(0.5, make_console())
    '████████'
    """
    eighths = round(max(0.0, min(1.0, share)) * _BAR_LENGTH * 8)
    if console.options.ascii_only:
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}"


class ProgressLine:
    """Progress of a run in one line on standard error, which disappears at the end.

    Nothing is shown if standard error is not a terminal.

    Parameters
    ----------
    run : Run
        Run to show.

    Attributes
    ----------
    speed : list of (int, float)
        Row number and rows per second.
    """

    def __init__(self, run: Run) -> None:
        self._run, self._console = run, make_console(to_error=True)
        self.speed: list[tuple[int, float]] = []
        self._rows, self._since = run.scores.n_rows, monotonic()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.completed:,} rows"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
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
        """Show the current state, unless it was shown less than half a second ago."""
        now, rows = monotonic(), self._run.scores.n_rows
        if now - self._since < _SPEED_WINDOW_SECONDS:
            return
        speed = (rows - self._rows) / (now - self._since)
        self._rows, self._since = rows, now
        if rows > (self.speed[-1][0] if self.speed else 0):
            self.speed.append((rows, speed))
        if len(self.speed) > _MAX_SPEEDS:
            self.speed = self.speed[1::2]
        if not self._progress.disable:
            error, skill = self._run.scores.rmse or 0.0, self._run.scores.skill or 0.0
            figures = f"{speed:,.0f} rows/s  RMSE {error:.4g}  skill {format_change(skill)}"
            room = self._console.width - len(f"* {rows:,} rows 0:00:00 {figures}")
            description = escape(figures + self._driver(room))
            self._progress.update(self._task, completed=rows, description=description)

    def _driver(self, room: int) -> str:
        """Return the most important column, if one matters beyond doubt, in at most `room` characters."""
        measured = column_importances(self._run)
        if measured is None or not measured.drivers:
            return ""
        first = measured.drivers[0]
        name, share = clean(first.columns[0]), f" ({first.share:.0%})"
        for words in ("  driven by ", "  "):
            length = min(len(name), _MAX_DRIVER_LENGTH, room - len(words + share))
            if length >= min(len(name), _MIN_DRIVER_LENGTH):
                return f"{words}{truncate(name, length)}{share}"
        return ""
