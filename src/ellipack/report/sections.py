"""The sections of the page: a heading, a sentence in plain words, charts, and the figures behind them."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from ellipack.report.charts import errors, experts, features, machine, residuals, spectrum
from ellipack.report.charts.chart import Chart
from ellipack.report.markup import Cell, details, table
from ellipack.report.record import Record
from ellipack.report.text import counted, in_html, percent
from ellipack.report.words import strong


@dataclass(frozen=True)
class Section:
    """A section: where links lead, heading, sentence (HTML), charts, and what comes after them (HTML)."""

    anchor: str
    heading: str
    lead: str
    charts: list[Chart]
    after: str = ""


def sections(record: Record) -> list[Section]:
    """Return the sections that have something to show."""
    made = [make(record) for make in _SECTIONS]
    return [section for section in made if section is not None]


def _drawn(record: Record, *makers: Callable[[Record], Chart | None]) -> list[Chart]:
    charts = [make(record) for make in makers]
    return [chart for chart in charts if chart is not None]


def _error(record: Record) -> Section | None:
    charts = _drawn(record, errors.errors_over_time)
    if not charts:
        return None
    bins = len(record.progress.end)
    size = counted(max(1, round(record.progress.end[-1] / bins)), "row")
    lead = (
        f"The error over stretches of about {size}, beside two guesses that need no learning: the mean of all labels "
        "so far, and the last label again. Every prediction was made before its label was seen. Lower is better."
    )
    return Section("error", "How the error fell", lead, charts)


def _metric(record: Record) -> Section | None:
    charts = _drawn(record, spectrum.spectrum, spectrum.effective_rank)
    if not charts:
        return None
    lead = (
        "The learner finds out which directions in the space of features change the label. An eigenvalue says how much "
        f"a direction counts beside the strongest; the effective rank, {record.effective_rank:,} of "
        f"{len(record.features):,} at the end, how many count at all."
    )
    if not record.phases:
        lead += " No phase was over yet, so this is the metric that the run began with."
        return Section("metric", "What it learned about directions", lead, charts)
    heads = [Cell("After row", True), Cell("Effective rank", True), Cell("Centres", True), Cell("Metric chosen")]
    counts = [(phase.end, phase.effective_rank, phase.n_centers) for phase in record.phases]
    rows = [
        [*(Cell(f"{count:,}", True) for count in three), Cell(phase.choice)]
        for three, phase in zip(counts, record.phases, strict=True)
    ]
    after = details("Phase by phase, as a table", table(counted(len(rows), "phase"), heads, rows))
    return Section("metric", "What it learned about directions", lead, charts, after)


def _features(record: Record) -> Section | None:
    charts = _drawn(record, features.importances, features.directions)
    if not charts:
        return None
    leading = features.leading_features(record)
    share = in_html(percent(record.importances[leading[0]]))
    lead = (
        "A feature counts as much as the prediction may change along it, all features in standard units. "
        f"{strong(record.features[leading[0]])} counts most, {share} of the whole."
    )
    rows = [[Cell(record.features[i]), Cell(percent(record.importances[i]), True)] for i in leading]
    heads = [Cell("Feature"), Cell("Importance", True)]
    shown = table(f"{counted(len(leading), 'feature')} of {len(record.features):,}", heads, rows)
    return Section("features", "What drives it", lead, charts, details("Features with full names, as a table", shown))


def _experts(record: Record) -> Section | None:
    lead = (
        "A prediction is a mixture of many simple ones. Experts that were right gain weight, so the mixture is nearly "
        "as good as the best of them."
    )
    charts = _drawn(record, experts.expert_weights)
    return Section("experts", "Whom it trusts", lead, charts) if charts else None


def _residuals(record: Record) -> Section | None:
    charts = _drawn(record, residuals.predictions_and_labels, residuals.error_histogram, residuals.errors_by_row)
    if not charts:
        return None
    shown = counted(len(record.residuals.rows), "row")
    lead = f"A sample of {shown}. An error is the prediction minus the label: above 0 it was too high, below 0 too low."
    return Section("residuals", "Where it is off", lead, charts)


def _machine(record: Record) -> Section | None:
    lead = (
        "Centres are the rows it remembers; when memory is full, those go that newer ones close by can stand for. "
        "Speed depends on the machine, and on whatever else ran on it."
    )
    charts = _drawn(record, machine.centers, machine.speed)
    return Section("machine", "What it took", lead, charts) if charts else None


def _columns(record: Record) -> Section | None:
    if not record.columns:
        return None
    heads = [Cell("Column"), Cell("Taken for"), Cell("Note"), Cell("Missing", True)]
    rows = [[Cell(c.name), Cell(c.kind), Cell(c.note), Cell(f"{c.missing:,}", True)] for c in record.columns]
    lead = "What each column of the table was taken for, and in how many rows it held nothing."
    return Section("columns", "The columns", lead, [], table(counted(len(rows), "column"), heads, rows))


def _small_print(record: Record) -> Section:
    lead = f"Learner <code>{in_html(record.learner)}</code> of ellipack {in_html(record.version)}, fed from "
    lead += f"<code>{in_html(record.source)}</code>."
    if not record.parameters:
        return Section("small-print", "Small print", lead, [])
    rows = [[Cell(name), Cell(json.dumps(value, ensure_ascii=False))] for name, value in record.parameters.items()]
    after = table("Parameters", [Cell("Parameter"), Cell("Value")], rows)
    return Section("small-print", "Small print", lead, [], after)


_SECTIONS = (_error, _metric, _features, _experts, _residuals, _machine, _columns, _small_print)
