"""The sections of the page: a heading, a sentence in plain words, charts, and the figures behind them."""

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ellipack.report import model_charts, run_charts
from ellipack.report.chart import Chart, style_sheet
from ellipack.report.formatting import format_count, format_percent, in_html, in_script
from ellipack.report.headline import KeyFigure, cautions, headline, key_figures, strong
from ellipack.report.markup import Cell, details, figure, table
from ellipack.report.record import Record

try:
    from plotly.offline import get_plotlyjs
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"the page needs plotly ({missing}): pip install 'ellipack[report]'", name=missing.name
    ) from missing


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
    charts = _drawn(record, run_charts.error_chart)
    if not charts:
        return None
    bins = len(record.progress.end)
    size = format_count(max(1, round(record.progress.end[-1] / bins)), "row")
    lead = (
        f"The error over stretches of about {size}, beside two guesses that need no learning: the mean of all labels "
        "so far, and the last label again. Every prediction was made before its label was seen. Lower is better."
    )
    return Section("error", "How the error fell", lead, charts)


def _metric(record: Record) -> Section | None:
    charts = _drawn(record, model_charts.spectrum_chart, model_charts.effective_rank_chart)
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
    after = details("Phase by phase, as a table", table(format_count(len(rows), "phase"), heads, rows))
    return Section("metric", "What it learned about directions", lead, charts, after)


def _features(record: Record) -> Section | None:
    charts = _drawn(record, model_charts.importance_chart, model_charts.loading_chart)
    if not charts:
        return None
    leading = model_charts.top_features(record)
    share = in_html(format_percent(record.importances[leading[0]]))
    lead = (
        "A feature counts as much as the prediction may change along it, all features in standard units. "
        f"{strong(record.features[leading[0]])} counts most, {share} of the whole."
    )
    rows = [[Cell(record.features[i]), Cell(format_percent(record.importances[i]), True)] for i in leading]
    heads = [Cell("Feature"), Cell("Importance", True)]
    shown = table(f"{format_count(len(leading), 'feature')} of {len(record.features):,}", heads, rows)
    return Section("features", "What drives it", lead, charts, details("Features with full names, as a table", shown))


def _experts(record: Record) -> Section | None:
    lead = (
        "A prediction is a mixture of many simple ones. Experts that were right gain weight, so the mixture is nearly "
        "as good as the best of them."
    )
    charts = _drawn(record, model_charts.expert_weight_chart)
    return Section("experts", "Whom it trusts", lead, charts) if charts else None


def _residuals(record: Record) -> Section | None:
    charts = _drawn(record, run_charts.prediction_chart, run_charts.error_histogram, run_charts.residual_chart)
    if not charts:
        return None
    shown = format_count(len(record.residuals.rows), "row")
    lead = f"A sample of {shown}. An error is the prediction minus the label: above 0 it was too high, below 0 too low."
    return Section("residuals", "Where it is off", lead, charts)


def _machine(record: Record) -> Section | None:
    lead = (
        "Centres are the rows it remembers; when memory is full, those go that newer ones close by can stand for. "
        "Speed depends on the machine, and on whatever else ran on it."
    )
    charts = _drawn(record, run_charts.center_chart, run_charts.speed_chart)
    return Section("machine", "What it took", lead, charts) if charts else None


def _columns(record: Record) -> Section | None:
    if not record.columns:
        return None
    heads = [Cell("Column"), Cell("Taken for"), Cell("Note"), Cell("Missing", True)]
    rows = [[Cell(c.name), Cell(c.kind), Cell(c.note), Cell(f"{c.missing:,}", True)] for c in record.columns]
    lead = "What each column of the table was taken for, and in how many rows it held nothing."
    return Section("columns", "The columns", lead, [], table(format_count(len(rows), "column"), heads, rows))


def _small_print(record: Record) -> Section:
    lead = f"Learner <code>{in_html(record.learner)}</code> of ellipack {in_html(record.version)}, fed from "
    lead += f"<code>{in_html(record.source)}</code>."
    if not record.parameters:
        return Section("small-print", "Small print", lead, [])
    rows = [[Cell(name), Cell(json.dumps(value, ensure_ascii=False))] for name, value in record.parameters.items()]
    after = table("Parameters", [Cell("Parameter"), Cell("Value")], rows)
    return Section("small-print", "Small print", lead, [], after)


_SECTIONS = (_error, _metric, _features, _experts, _residuals, _machine, _columns, _small_print)


def page(record: Record) -> str:
    """Return a page about a run, to be written to one file in UTF-8: it loads nothing else."""
    shown = sections(record)
    charts = {f"{part.anchor}-{i}": chart for part in shown for i, chart in enumerate(part.charts)}
    drawn = {
        name: {"data": chart.data, "layout": chart.layout, "narrow": chart.narrow_layout}
        for name, chart in charts.items()
    }
    scripts = [_plotly(), _script()] if charts else []
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">',
            _head(record, scripts),
            '<body>\n<div class="page">',
            _header(record, shown),
            "<main>",
            *(_section(part) for part in shown),
            "</main>\n</div>",
            f'<script type="application/json" id="charts">{in_script(drawn)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


def _head(record: Record, scripts: list[str]) -> str:
    # By their hashes, these scripts run and no other, whatever may have got into the page.
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="ellipack {in_html(record.version)}">
<link rel="icon" href="data:,">
<title>{in_html(record.target)} from {in_html(record.source)}</title>
<style>{style_sheet()}</style>
</head>"""


def _header(record: Record, shown: list[Section]) -> str:
    figures = "".join(_key_figure(each) for each in key_figures(record))
    warned = "".join(f'<p class="caution">{in_html(caution)}</p>' for caution in cautions(record))
    links = "".join(f'<li><a href="#{part.anchor}">{in_html(part.heading)}</a></li>' for part in shown)
    contents = f'<nav aria-label="Sections"><ul>{links}</ul></nav>' if len(shown) > 1 else ""
    return f"""<header>
<p class="eyebrow"><bdi>{in_html(record.learner)}</bdi> on <bdi>{in_html(record.source)}</bdi></p>
<h1>{headline(record)}</h1>
{warned}
<dl class="figures">{figures}</dl>
{contents}
<noscript><p class="lead">Scripts draw the charts, and are switched off here; the tables need none.</p></noscript>
</header>"""


def _key_figure(shown: KeyFigure) -> str:
    return (
        f'<div><dt>{in_html(shown.name)}</dt><dd class="value">{in_html(shown.value)}</dd>'
        f'<dd class="note">{in_html(shown.note)}</dd></div>'
    )


def _section(part: Section) -> str:
    figures = "".join(figure(f"{part.anchor}-{i}", chart) for i, chart in enumerate(part.charts))
    charts = f'<div class="charts">{figures}</div>' if figures else ""
    return (
        f'<section id="{part.anchor}" aria-labelledby="{part.anchor}-heading">'
        f'<h2 id="{part.anchor}-heading">{in_html(part.heading)}</h2>'
        f'<p class="lead">{part.lead}</p>{charts}{part.after}</section>'
    )


@cache
def _plotly() -> str:
    return str(get_plotlyjs())


def _script() -> str:
    return (files("ellipack.report") / "page.js").read_text(encoding="utf-8")


@cache
def _digest(script: str) -> str:
    return b64encode(sha256(script.encode()).digest()).decode()
