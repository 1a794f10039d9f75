"""Report page: one HTML file about a run, which loads nothing from the network.

This module decides what each section shows; ``page.html``, ``page.css`` and ``page.js`` decide how it looks.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ellipack.errors import StreamError
from ellipack.report import interval_charts, model_charts, run_charts
from ellipack.report.chart import Chart
from ellipack.report.effect_charts import effect_charts
from ellipack.report.formatting import clean, format_count, format_number, format_percent
from ellipack.report.headline import (
    Name,
    Sentence,
    build_headline,
    build_key_figures,
    build_warnings,
    compare_errors,
    format_share,
)
from ellipack.report.record import ColumnShare, Record
from ellipack.serialization.atomic_file import write_file

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"the report page needs jinja2 and plotly ({error}): pip install 'ellipack[report]'", name=error.name
    ) from error

_MAX_PAST_FEATURES, _MAX_COLUMNS = 12, 20
_DIGITS = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%.()*+-;,=:?@^_`{|}~"  # as in page.js
_GZIP_LEVEL = 6  # level 9 takes a quarter longer, for a page that is 0.2% smaller


@dataclass(frozen=True)
class Table:
    """A table of a section: texts by row, and the positions of the columns that hold numbers."""

    caption: str
    headings: list[str]
    rows: list[list[str]]
    numeric: tuple[int, ...] = ()


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Attributes
    ----------
    anchor : str
        Identifier that links lead to.
    heading : str
        Title of the section.
    lead : list of str or Name
        Introduction, above the charts.
    charts : list of Chart
        Charts of the section, may be empty.
    table : Table or None, default None
        Table below the charts.
    table_toggle : str, default ""
        Text to click on to show the table. If empty, the table is always shown.
    """

    anchor: str
    heading: str
    lead: Sentence
    charts: list[Chart] = field(default_factory=list)
    table: Table | None = None
    table_toggle: str = ""


def render_page(record: Record) -> str:
    """Return a report about a run as one HTML document.

    Parameters
    ----------
    record : Record
        Results of the run.

    Returns
    -------
    str
        HTML document. Write it to a file in UTF-8; it needs no other file and no network.
    """
    sections = build_sections(record)
    charts = {f"{section.anchor}-{i}": chart for section in sections for i, chart in enumerate(section.charts)}
    scripts = [_resource("page.js")] if charts else []
    return (
        page_environment()
        .get_template("page.html")
        .render(
            record=record,
            headline=build_headline(record),
            warnings=build_warnings(record),
            key_figures=build_key_figures(record),
            sections=sections,
            charts={id: _plotly_figure(chart) for id, chart in charts.items()},
            style_sheet=_resource("page.css"),
            scripts=scripts,
            packed_plotly=_pack(_plotly_script()) if charts else "",
            script_digests=[_digest(script) for script in [*scripts, _plotly_script()]] if charts else [],
        )
    )


def write_page(record: Record, path: str | PathLike[str]) -> None:
    """Write the report page of a record to a file. An existing file is replaced.

    Parameters
    ----------
    record : Record
        Results of the run.
    path : str or path-like
        Path of the file.

    Raises
    ------
    StreamError
        If the file can't be written.
    """
    try:
        write_file(Path(path), render_page(record).encode())
    except OSError as error:
        raise StreamError(f"{path} can't be written: {error.strerror or error}") from error


def build_sections(record: Record) -> list[Section]:
    """Return the sections that have something to show."""
    sections = [build(record) for build in _SECTION_BUILDERS]
    return [section for section in sections if section is not None]


def _draw(record: Record, *builders: Callable[[Record], Chart | None]) -> list[Chart]:
    """Return the charts that have something to show."""
    charts = [build(record) for build in builders]
    return [chart for chart in charts if chart is not None]


def _error_section(record: Record) -> Section | None:
    charts = _draw(record, run_charts.error_chart)
    if not charts:
        return None
    bins = len(record.progress.end)
    size = format_count(max(1, round(record.progress.end[-1] / bins)), "row")
    lead = (
        f"The RMSE over bins of about {size}, compared with two baselines that learn nothing: the mean of all labels "
        "so far, and the last label. Each prediction was made before its label was revealed. Lower is better."
    )
    return Section("error", "Prediction error", [lead], charts)


def _interval_section(record: Record) -> Section | None:
    charts = _draw(record, interval_charts.band_chart, interval_charts.coverage_chart, interval_charts.width_chart)
    if not charts:
        return None
    lead = (
        "Each prediction comes with an interval that is to contain a given fraction of the labels, made before the "
        "label was revealed. A label outside of its interval widens the next ones, so that the fraction is kept in the "
        "long run, on any stream. Intervals are narrow where errors of similar rows were small."
    )
    rows = [
        [format_percent(each.coverage), *map(_interval_number, (each.covered, each.mean_width, each.score))]
        for each in record.intervals
    ]
    table = Table(
        "Prediction intervals", ["Coverage", "Labels inside", "Mean width", "Interval score"], rows, (0, 1, 2, 3)
    )
    return Section("intervals", "Prediction intervals", [lead], charts, table, "Intervals as a table")


def _interval_number(value: float | None) -> str:
    return "-" if value is None else format_number(value)


def _metric_section(record: Record) -> Section | None:
    charts = _draw(record, model_charts.spectrum_chart, model_charts.effective_rank_chart, model_charts.loading_chart)
    if not charts:
        return None
    heading = "Learned metric"
    lead = (
        "The metric measures how near rows are, along its directions in feature space. An eigenvalue is the weight of "
        f"a direction relative to the strongest one. The effective rank, {record.effective_rank:,} of "
        f"{len(record.features):,} at the end, is the number of directions that matter."
    )
    if not record.phases:
        lead += " No phase has ended yet, so this is the initial metric."
        return Section("metric", heading, [lead], charts)
    rows = [
        [f"{phase.end:,}", f"{phase.effective_rank:,}", f"{phase.n_centers:,}", phase.choice] for phase in record.phases
    ]
    headings = ["After row", "Effective rank", "Centers", "Metric chosen"]
    table = Table(format_count(len(rows), "phase"), headings, rows, numeric=(0, 1, 2))
    return Section("metric", heading, [lead], charts, table, "Phases as a table")


def _feature_section(record: Record) -> Section | None:
    charts = [*_draw(record, model_charts.importance_chart), *effect_charts(record)]
    measured = record.importance
    if measured is None:
        return None
    lead: Sentence = [
        "The importance of a column is the rise in squared error when its values are taken from random earlier rows, "
        "as a share of the sum over all columns, with its standard error. All features of a column move together. "
    ]
    if measured.time is not None:
        time = measured.time
        lead.append(
            f"Recent values (the past of the label, and columns that only grow) explain {format_percent(time.time)}, "
            f"the features {format_percent(time.features)}, and {format_percent(time.both)} is of both "
            f"(\N{PLUS-MINUS SIGN} {100 * time.std:.0f} percentage points)."
        )
    if measured.effects:
        lead.append(
            " An effect is the mean prediction over recent rows if the column had a certain value, with the spread "
            "over these rows."
        )
    together = [each for each in measured.groups if len(each.columns) > 1]
    if together:
        lead.append(
            " Strongly correlated columns carry the same information. They count as one and share its importance."
        )
    rows = [
        [
            " with ".join(each.columns),
            format_share(each),
            _recent_share(each),
            format_number(each.rmse_rise),
            each.effect,
        ]
        for each in measured.groups[:_MAX_COLUMNS]
    ]
    rows += [[name, "time", "", "", ""] for name in measured.time_columns]
    table = Table(
        format_count(len(measured.columns), "column"),
        ["Column", "Importance", "Recently", "Rise in RMSE", "Effect"],
        rows,
        numeric=(1, 2, 3),
    )
    return Section("features", "What drives it", lead, charts, table, "Columns as a table, with full names")


def _recent_share(column: ColumnShare) -> str:
    return format_share(replace(column, share=column.recent_share, share_std=column.recent_share_std))


def _past_section(record: Record) -> Section | None:
    past = record.past
    if past is None:
        return None
    gain = 1 - past.rmse_with / past.rmse_without if past.rmse_without else 0.0
    lead = (
        "Predictions of the next row use the features and the past: earlier labels, and errors of earlier predictions. "
        f"With the past, the RMSE is {format_number(past.rmse_with)}, {compare_errors(gain)} than with the features "
        f"alone, {format_number(past.rmse_without)}. The table shows the metric of the learner that sees the past."
    )
    ranked = sorted(zip(past.metric_weights, past.features, strict=True), key=lambda pair: (-pair[0], pair[1]))
    rows = [[name, format_percent(share)] for share, name in ranked[:_MAX_PAST_FEATURES]]
    caption = f"{format_count(len(rows), 'feature')} of {len(ranked):,}"
    return Section("past", "The past", [lead], table=Table(caption, ["Feature", "Share"], rows, numeric=(1,)))


def _key_section(record: Record) -> Section | None:
    keys = record.keys
    if keys is None:
        return None
    gain = 1 - keys.rmse / keys.pooled_rmse if keys.pooled_rmse else 0.0
    lead = (
        f"Each of {format_count(keys.count, 'key')} ({clean(keys.name)}) has a learner of its own beside the learner "
        f"of all keys; {keys.on_disk:,} of them are on disk. The RMSE is {format_number(keys.rmse)}, "
        f"{compare_errors(gain)} than that of the learner of all keys alone, {format_number(keys.pooled_rmse)}."
    )
    columns = zip(keys.names, keys.rows, keys.key_rmse, keys.key_pooled_rmse, strict=True)
    rows = [[name, f"{n:,}", format_number(own), format_number(pooled)] for name, n, own, pooled in columns]
    caption = f"{format_count(len(rows), 'key')} of {keys.count:,}, those with most rows"
    headings = [keys.name, "Rows", "RMSE", "All keys"]
    return Section("keys", "Keys", [lead], table=Table(caption, headings, rows, numeric=(1, 2, 3)))


def _expert_section(record: Record) -> Section | None:
    lead = (
        "A prediction combines those of many simple models, called experts. Experts with small errors gain weight, "
        "so the combination is nearly as good as the best of them."
    )
    charts = _draw(record, model_charts.expert_weight_chart)
    return Section("experts", "Expert weights", [lead], charts) if charts else None


def _residual_section(record: Record) -> Section | None:
    charts = _draw(
        record,
        run_charts.time_chart,
        run_charts.prediction_chart,
        run_charts.residual_histogram,
        run_charts.residual_chart,
    )
    if not charts:
        return None
    lead = (
        f"A sample of {format_count(len(record.residuals.rows), 'row')}. A residual is the prediction minus the label: "
        "positive if the prediction was too high, negative if it was too low."
    )
    return Section("residuals", "Residuals", [lead], charts)


def _resource_section(record: Record) -> Section | None:
    lead = (
        "Centers are the rows kept in memory. max_centers is the number of centers at which a quarter of them is "
        "evicted; there are always fewer. Speed depends on the machine and its load."
    )
    charts = _draw(record, run_charts.center_chart, run_charts.speed_chart)
    return Section("resources", "Memory and speed", [lead], charts) if charts else None


def _column_section(record: Record) -> Section | None:
    if not record.columns:
        return None
    rows = [[column.name, column.kind, f"{column.missing:,}", column.note] for column in record.columns]
    table = Table(format_count(len(rows), "column"), ["Column", "Kind", "Missing", "Note"], rows, numeric=(2,))
    lead = "The kind of each column of the table, and the number of rows in which it is missing."
    return Section("columns", "Columns", [lead], table=table)


def _settings_section(record: Record) -> Section:
    lead: Sentence = [
        "Learner ",
        Name(record.learner, is_code=True),
        f" of ellipack {clean(record.version)}, on data from ",
        Name(record.source, is_code=True),
        ".",
    ]
    if not record.parameters:
        return Section("settings", "Settings", lead)
    rows = [[name, json.dumps(value, ensure_ascii=False)] for name, value in record.parameters.items()]
    return Section("settings", "Settings", lead, table=Table("Parameters", ["Parameter", "Value"], rows))


_SECTION_BUILDERS = (
    _error_section,
    _interval_section,
    _feature_section,
    _key_section,
    _past_section,
    _metric_section,
    _expert_section,
    _residual_section,
    _resource_section,
    _column_section,
    _settings_section,
)


@cache
def page_environment() -> Environment:
    """Return the Jinja environment of the page, which escapes and cleans every value."""
    environment = Environment(
        loader=PackageLoader("ellipack.report", ""),
        autoescape=True,
        finalize=_clean_text,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    # Chart data is ASCII without NaN, which JSON does not allow.
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _clean_text(value: Any) -> Any:
    """Clean a text before it is escaped. Markup is escaped already and stays as it is."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _plotly_figure(chart: Chart) -> dict[str, Any]:
    return {"data": _round_numbers(chart.data), "layout": chart.layout, "narrow": chart.narrow_layout}


def _round_numbers(value: Any) -> Any:
    """Return chart data with five significant digits, more than a screen shows, which keeps the page small."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, list):
        return [_round_numbers(each) for each in value]
    return {name: _round_numbers(each) for name, each in value.items()} if isinstance(value, dict) else value


@cache
def _plotly_script() -> Markup:
    return Markup(get_plotlyjs())


@cache
def _pack(script: str) -> Markup:
    """Return a script compressed with gzip, as text in base 85 without characters that HTML treats in a special way.

    ``page.js`` unpacks it. The browser runs it only if its hash is that of the content security policy.
    """
    return Markup(_base85(gzip.compress(script.encode(), _GZIP_LEVEL, mtime=0)))


def _base85(data: bytes) -> str:
    """Return bytes as text: five digits for four bytes. `base64.b85encode` takes nine times as long."""
    missing = -len(data) % 4
    words = np.frombuffer(data + bytes(missing), ">u4").astype(np.uint32)
    digits = words[:, None] // 85 ** np.arange(4, -1, -1, dtype=np.uint32) % 85
    text: str = np.frombuffer(_DIGITS, np.uint8)[digits].tobytes().decode()
    return text[: len(text) - missing]


@cache
def _resource(name: str) -> Markup:
    """Return a file of this package, which is trusted and must not be escaped."""
    return Markup((files("ellipack.report") / name).read_text(encoding="utf-8"))


@cache
def _digest(script: str) -> str:
    """Return the hash by which the content security policy allows a script."""
    return b64encode(sha256(script.encode()).digest()).decode()
