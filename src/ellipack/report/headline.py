"""Headline, warnings and key figures of the report page."""

from dataclasses import dataclass

from ellipack.report.formatting import MISSING, clean, format_count, format_number, format_percent, truncate
from ellipack.report.record import ColumnShare, ImportanceRecord, Record

_VERDICTS = (
    (0.6, "is predicted very well"),
    (0.35, "is predicted well"),
    (0.1, "is predicted fairly well"),
    (0.01, "is predicted only slightly better than by its mean"),
)
_NO_BETTER = "is predicted no better than by its mean"
_BEATEN = "is predicted no better than by its last label"
_MAX_NAMED_COLUMNS = 3
_MAX_NAME_LENGTH = 60
_MIN_TIME_SHARE = 0.05  # of recent values, to be mentioned
_MIN_BOTH = 0.01


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
    """Return how good the predictions are and what they depend on."""
    summary, target = record.summary, emphasize(record.target)
    if summary.rows == 0 or summary.rmse is None:
        return ["There are no predictions of ", target, " yet."]
    rows = format_count(summary.rows, "row")
    if summary.skill is None:
        return [target, f" is predicted over {rows} with an RMSE of {format_number(summary.rmse)}.", *_drivers(record)]
    verdict = next((words for skill, words in _VERDICTS if summary.skill >= skill), _NO_BETTER)
    error = f"the error over {rows} is {compare_errors(summary.skill)} than that of the running mean."
    if summary.last_rmse is not None and 0 < summary.last_rmse < min(summary.rmse, summary.mean_rmse or summary.rmse):
        difference = compare_errors(1 - summary.rmse / summary.last_rmse)
        verdict, error = _BEATEN, f"the error over {rows} is {difference} than if the last label is repeated."
    return [target, f" {verdict}: {error}", *_drivers(record)]


def _drivers(record: Record) -> Sentence:
    """Return what the predictions depend on, as far as the standard errors allow."""
    measured = record.importance
    if measured is None:
        return []
    if all(each.share is None for each in measured.groups):
        return [" It is too early to say what drives it."]
    return [*_time_and_features(measured), *_named_drivers(measured)]


def _time_and_features(measured: ImportanceRecord) -> Sentence:
    """Return what comes from recent values and what from features, if recent values matter."""
    time = measured.time
    if time is None or time.time + time.both < max(_MIN_TIME_SHARE, 2 * time.std):
        return []
    both = f", {format_percent(time.both)} both" if time.both >= _MIN_BOTH else ""
    return [f" Recent values explain {format_percent(time.time)}, features {format_percent(time.features)}{both}."]


def _named_drivers(measured: ImportanceRecord) -> Sentence:
    """Return the columns that matter beyond doubt, no more than cover most of the importance."""
    drivers = [each for each in measured.groups if each.is_driver]
    if not drivers:
        return [" No column matters beyond doubt."]
    covered, named = 0.0, []
    for each in drivers[:_MAX_NAMED_COLUMNS]:
        named.append(each)
        covered += each.share or 0.0
        if covered > 0.8:
            break
    count = len(measured.columns)
    beginning = " It depends mostly on " if covered > 0.5 else f" The most important of {count:,} columns are "
    return [beginning, *_enumerate_columns(named), "."]


def _enumerate_columns(named: list[ColumnShare]) -> Sentence:
    """Return columns with their shares and effects, as in "a (50%, rises with it) and b (20%)"."""
    parts: Sentence = []
    for k, each in enumerate(named):
        if k > 0:
            parts.append(" and " if k == len(named) - 1 else ", ")
        effect = f"; {each.effect}" if each.effect else ""
        parts += [*_join_names(each.columns), f" ({format_share(each)}{effect})"]
    return parts


def _join_names(columns: list[str]) -> Sentence:
    """Return correlated columns as one, as in "a with b"; only the first two if there are more."""
    parts: Sentence = [emphasize(columns[0])]
    if len(columns) > 1:
        parts += [" with ", emphasize(columns[1])]
    if len(columns) > 2:
        parts.append(f" and {len(columns) - 2:,} more")
    return parts


def format_share(column: ColumnShare) -> str:
    """Return a share with its standard error, or that it is too early to say."""
    if column.share is None or column.share_std is None:
        return "too early to say"
    return f"{format_percent(column.share)} \N{PLUS-MINUS SIGN} {format_percent(column.share_std)}"


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
    warnings = build_baseline_warnings(record)
    if record.summary.rows > 0 and len(record.progress.end) < 2:
        warnings.append("There are too few rows to show the error over time.")
    return warnings


def build_baseline_warnings(record: Record) -> list[str]:
    """Return which baselines are better than the predictions, a sentence each."""
    summary, warnings = record.summary, []
    if summary.rmse is not None and summary.last_rmse is not None and summary.last_rmse < summary.rmse:
        error = format_number(summary.last_rmse)
        warnings.append(f"Repeating the last label would be better: its RMSE is {error}.")
    if summary.rmse is not None and summary.mean_rmse is not None and summary.mean_rmse < summary.rmse:
        error = format_number(summary.mean_rmse)
        warnings.append(f"The mean of the earlier labels would be better: its RMSE is {error}.")
    return warnings


def build_key_figures(record: Record) -> list[KeyFigure]:
    """Return the key figures that are defined."""
    summary, d = record.summary, len(record.features)
    skipped = f"{summary.skipped:,} skipped" if summary.skipped else "none skipped"
    warm_up = f"; errors leave out the first {summary.warm_up:,}" if summary.warm_up else ""
    unlabeled = f", {summary.unlabeled:,} without a label" if summary.unlabeled else ""
    last = None
    if summary.rmse is not None and summary.last_rmse:
        last = 1 - summary.rmse / summary.last_rmse
    mean, deviation = format_number(summary.label_mean), format_number(summary.label_std)
    rank = f"{record.effective_rank:,}" if d else MISSING
    figures = [
        KeyFigure("RMSE", format_number(summary.rmse), f"label standard deviation: {deviation}"),
        KeyFigure("RMSE, last quarter", format_number(summary.late_rmse), _late_baselines(record)),
        KeyFigure("Mean absolute error", format_number(summary.mae), f"label mean: {mean}"),
        KeyFigure("R\N{SUPERSCRIPT TWO}", format_number(summary.r2), "1 is perfect, 0 is the mean"),
        _baseline_figure("running mean", summary.skill, summary.mean_rmse),
        _baseline_figure("last value", last, summary.last_rmse),
        *_past_figures(record),
        KeyFigure("Effective rank", rank, f"of {format_count(d, 'feature')}"),
        KeyFigure("Centers", f"{record.n_centers:,}", "kept in memory"),
        KeyFigure("Rows", f"{summary.rows:,}", skipped + unlabeled + warm_up),
    ]
    return [figure for figure in figures if figure.value != MISSING]


def _late_baselines(record: Record) -> str:
    summary = record.summary
    return f"mean: {format_number(summary.late_mean_rmse)}, last value: {format_number(summary.late_last_rmse)}"


def _past_figures(record: Record) -> list[KeyFigure]:
    past = record.past
    if past is None or past.rmse_without == 0:
        return []
    note = f"{format_number(past.rmse_with)} and {format_number(past.rmse_without)}, without outliers"
    return [KeyFigure("RMSE vs. features alone", compare_errors(1 - past.rmse_with / past.rmse_without), note)]


def _baseline_figure(baseline: str, skill: float | None, rmse: float | None) -> KeyFigure:
    value = MISSING if skill is None else compare_errors(skill)
    return KeyFigure(f"RMSE vs. {baseline}", value, f"{baseline}: {format_number(rmse)}")
