"""The run in words: a headline, and the key figures."""

from dataclasses import dataclass

from ellipack.report.formatting import MISSING, clean, format_count, format_number, format_percent, in_html, truncate
from ellipack.report.record import Record

_VERDICTS = (
    (0.6, "is predicted very well"),
    (0.35, "is predicted well"),
    (0.1, "is predicted fairly well"),
    (0.01, "is predicted only a little better than by its mean"),
)
_NO_BETTER = "is predicted no better than by its mean"
_NAMED = 3
_LONGEST = 60  # characters of a name in a sentence
_FLAT = 1.5  # times the average importance: below it no feature stands out


@dataclass(frozen=True)
class KeyFigure:
    """A figure worth a glance: what it is, how much, and what to hold it against."""

    name: str
    value: str
    note: str


def strong(name: str) -> str:
    """Return a name that came from outside as HTML, cut if very long, kept apart from the text around it."""
    return f"<strong><bdi>{in_html(truncate(clean(name), _LONGEST))}</bdi></strong>"


def headline(record: Record) -> str:
    """Return how good the predictions were and what drives them, in one sentence of HTML."""
    summary, target = record.summary, strong(record.target)
    if summary.rows == 0 or summary.rmse is None:
        return f"Nothing was predicted of {target} yet."
    over = f"over {format_count(summary.rows, 'row')}"
    if summary.skill is None:
        said = f"{target} is predicted {over} with an error of {format_number(summary.rmse)}"
    else:
        verdict = next((words for skill, words in _VERDICTS if summary.skill >= skill), _NO_BETTER)
        said = f"{target} {verdict}: {over} the error is {in_html(compared(summary.skill))} than the running mean's"
    return f"{said}, {_drivers(record)}." if record.features else f"{said}."


def compared(skill: float) -> str:
    """Return how an error compares with one that it is 1 - `skill` times as large as.

    >>> compared(0.68), compared(-0.12)
    ('68% less', '12% more')
    """
    return f"{format_percent(abs(skill))} {'less' if skill >= 0 else 'more'}"


def cautions(record: Record) -> list[str]:
    """Return what a reader should be warned of, in sentences."""
    summary, said = record.summary, []
    if summary.rmse is not None and summary.last_rmse is not None and summary.last_rmse < summary.rmse:
        said.append(
            f"Repeating the last label would have done better: its error is {format_number(summary.last_rmse)}."
        )
    if summary.rows > 0 and len(record.progress.end) < 2:
        said.append("There were too few rows to draw how the error fell.")
    return said


def _drivers(record: Record) -> str:
    leading = sorted(range(len(record.features)), key=lambda i: -record.importances[i])[:_NAMED]
    if len(record.features) == 1:
        return f"from {strong(record.features[0])} alone"
    if record.importances[leading[0]] < _FLAT / len(record.features):
        return f"and none of the {len(record.features):,} features stands out"
    # No more names than tell most of it.
    told, names = 0.0, []
    for i in leading:
        names.append(f"{strong(record.features[i])} ({in_html(format_percent(record.importances[i]))})")
        told += record.importances[i]
        if told > 0.8:
            break
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f"driven mostly by {listed}" if told > 0.5 else f"with {listed} counting most"


def key_figures(record: Record) -> list[KeyFigure]:
    """Return the key figures, those that are defined."""
    summary, d = record.summary, len(record.features)
    skipped = f"{summary.skipped:,} skipped" if summary.skipped else "none skipped"
    last = None
    if summary.rmse is not None and summary.last_rmse:
        last = 1 - summary.rmse / summary.last_rmse
    figures = [
        KeyFigure(
            "Error (RMSE)",
            format_number(summary.rmse),
            f"labels' standard deviation {format_number(summary.label_std)}",
        ),
        KeyFigure(
            "Mean absolute error", format_number(summary.mae), f"labels' mean {format_number(summary.label_mean)}"
        ),
        KeyFigure("R\N{SUPERSCRIPT TWO}", format_number(summary.r2), "1 is perfect, 0 is the mean"),
        _comparison("Against the running mean", summary.skill, summary.mean_rmse),
        _comparison("Against the last value", last, summary.last_rmse),
        KeyFigure(
            "Effective rank",
            f"{record.effective_rank:,}" if d else format_number(None),
            f"of {format_count(d, 'feature')}",
        ),
        KeyFigure("Centres", f"{record.n_centers:,}", "kept in memory"),
        KeyFigure("Rows", f"{summary.rows:,}", skipped),
    ]
    return [figure for figure in figures if figure.value != MISSING]


def _comparison(name: str, skill: float | None, error: float | None) -> KeyFigure:
    value = MISSING if skill is None else compared(skill)
    return KeyFigure(name, value, f"error, where that has {format_number(error)}")
