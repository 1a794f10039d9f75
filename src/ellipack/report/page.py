"""One page about a run: a single HTML file that needs no network."""

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

from ellipack.report.markup import figure
from ellipack.report.record import Record
from ellipack.report.sections import Section, sections
from ellipack.report.style import style_sheet
from ellipack.report.text import in_html, in_script
from ellipack.report.words import KeyFigure, cautions, headline, key_figures

try:
    from plotly.offline import get_plotlyjs
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"the page needs plotly ({missing}): pip install 'ellipack[report]'", name=missing.name
    ) from missing


def page(record: Record) -> str:
    """Return a page about a run, to be written to one file in UTF-8: it loads nothing else."""
    shown = sections(record)
    charts = {f"{part.anchor}-{i}": chart for part in shown for i, chart in enumerate(part.charts)}
    drawn = {
        name: {"data": chart.data, "layout": chart.layout, "narrow": chart.narrow} for name, chart in charts.items()
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
