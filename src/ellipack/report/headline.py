"""Headline, warnings and key figures of the report page."""

from dataclasses import dataclass

from ellipack.report.formatting import MISSING, clean, format_count, format_number, format_percent, truncate
from ellipack.report.record import Record

_VERDICTS = (
    (0.6, "is predicted very well"),
    (0.35, "is predicted well"),
    (0.1, "is predicted fairly well"),
    (0.01, "is predicted only slightly better than by its mean"),
)
_NO_BETTER = "is predicted no better than by its mean"
_MAX_NAMED_FEATURES = 3
_MAX_NAME_LENGTH = 60
_STANDS_OUT = 1.5  # times the average importance; below it no feature stands out


@dataclass(frozen=True)
class Name:
    """A name from the data inside a sentence, which the page sets apart from the text around it."""

    text: str
    is_code: bool = False


Sentence = list[str | Name]
"""Plain text and names, in order. The page escapes both."""


@dataclass(frozen=True)
class KeyFigure:
    """A number at the top of the page: its name, its value and a note to compare it with."""

    name: str
    value: str
    note: str


def emphasize(name: str) -> Name:
    """Return a name for a sentence, truncated if it is very long."""
    return Name(truncate(clean(name), _MAX_NAME_LENGTH))


def build_headline(record: Record) -> Sentence:
    """Return how good the predictions are and which features they depend on."""
    summary, target = record.summary, emphasize(record.target)
    if summary.rows == 0 or summary.rmse is None:
        return ["There are no predictions of ", target, " yet."]
    rows = format_count(summary.rows, "row")
    if summary.skill is None:
        return [target, f" is predicted over {rows} with an RMSE of {format_number(summary.rmse)}.", *_drivers(record)]
    verdict = next((words for skill, words in _VERDICTS if summary.skill >= skill), _NO_BETTER)
    error = f"the error over {rows} is {compare_errors(summary.skill)} than that of the running mean."
    return [target, f" {verdict}: {error}", *_drivers(record)]


def _drivers(record: Record) -> Sentence:
    """Return the second sentence of the headline, with no more features than cover most of the importance."""
    d = len(record.features)
    if d == 0:
        return []
    if d == 1:
        return [" The only feature is ", emphasize(record.features[0]), "."]
    leading = sorted(range(d), key=lambda i: -record.importances[i])[:_MAX_NAMED_FEATURES]
    if record.importances[leading[0]] < _STANDS_OUT / d:
        return [f" None of the {d:,} features stands out."]
    covered, named = 0.0, []
    for i in leading:
        named.append(i)
        covered += record.importances[i]
        if covered > 0.8:
            break
    beginning = " It depends mostly on " if covered > 0.5 else f" The most important of {d:,} features are "
    return [beginning, *_enumerate_features(record, named), "."]


def _enumerate_features(record: Record, positions: list[int]) -> Sentence:
    """Return features with their importances, as in "a (50%), b (20%) and c (10%)"."""
    parts: Sentence = []
    for k, i in enumerate(positions):
        if k > 0:
            parts.append(" and " if k == len(positions) - 1 else ", ")
        parts += [emphasize(record.features[i]), f" ({format_percent(record.importances[i])})"]
    return parts


def compare_errors(skill: float) -> str:
    """Return how an error compares with a reference error, given ``skill = 1 - error / reference``.

    Examples
    --------
    >>> compare_errors(0.68), compare_errors(-0.12)
    ('68% lower', '12% higher')
    """
    return f"{format_percent(abs(skill))} {'lower' if skill >= 0 else 'higher'}"


def build_warnings(record: Record) -> list[str]:
    """Return warnings about the run, a sentence each."""
    summary, warnings = record.summary, []
    if summary.rmse is not None and summary.last_rmse is not None and summary.last_rmse < summary.rmse:
        error = format_number(summary.last_rmse)
        warnings.append(f"Repeating the last label would be better: its RMSE is {error}.")
    if summary.rows > 0 and len(record.progress.end) < 2:
        warnings.append("There are too few rows to show the error over time.")
    return warnings


def build_key_figures(record: Record) -> list[KeyFigure]:
    """Return the key figures that are defined."""
    summary, d = record.summary, len(record.features)
    skipped = f"{summary.skipped:,} skipped" if summary.skipped else "none skipped"
    unlabeled = f", {summary.unlabeled:,} without a label" if summary.unlabeled else ""
    last = None
    if summary.rmse is not None and summary.last_rmse:
        last = 1 - summary.rmse / summary.last_rmse
    mean, deviation = format_number(summary.label_mean), format_number(summary.label_std)
    rank = f"{record.effective_rank:,}" if d else MISSING
    figures = [
        KeyFigure("RMSE", format_number(summary.rmse), f"label standard deviation: {deviation}"),
        KeyFigure("Mean absolute error", format_number(summary.mae), f"label mean: {mean}"),
        KeyFigure("R\N{SUPERSCRIPT TWO}", format_number(summary.r2), "1 is perfect, 0 is the mean"),
        _baseline_figure("running mean", summary.skill, summary.mean_rmse),
        _baseline_figure("last value", last, summary.last_rmse),
        *_past_figures(record),
        KeyFigure("Effective rank", rank, f"of {format_count(d, 'feature')}"),
        KeyFigure("Centers", f"{record.n_centers:,}", "kept in memory"),
        KeyFigure("Rows", f"{summary.rows:,}", skipped + unlabeled),
    ]
    return [figure for figure in figures if figure.value != MISSING]


def _past_figures(record: Record) -> list[KeyFigure]:
    past = record.past
    if past is None or past.rmse_without == 0:
        return []
    return [_baseline_figure("features alone", 1 - past.rmse_with / past.rmse_without, past.rmse_without)]


def _baseline_figure(baseline: str, skill: float | None, rmse: float | None) -> KeyFigure:
    value = MISSING if skill is None else compare_errors(skill)
    return KeyFigure(f"RMSE vs. {baseline}", value, f"{baseline}: {format_number(rmse)}")
