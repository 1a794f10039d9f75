"""Pieces of HTML."""

from collections.abc import Sequence
from dataclasses import dataclass

from ellipack.report.chart import Chart, LegendEntry
from ellipack.report.formatting import in_html


@dataclass(frozen=True)
class Cell:
    """A cell of a table; what is a count stands to the right."""

    text: str
    count: bool = False


def figure(identity: str, chart: Chart) -> str:
    """Return a chart's place in the page, with all that is said of it."""
    # All four parts even if empty, so that charts side by side line up part by part.
    return (
        f"<figure{' class=wide' if chart.wide else ''}><h3>{in_html(chart.title)}</h3>"
        f'<div class="legend">{_legend(chart.legend)}</div>'
        f'<div class="chart" id="{identity}" style="height:{chart.height}px" role="img"'
        f' aria-label="{in_html(chart.description)}"></div>'
        f"<figcaption>{in_html(chart.note)}</figcaption></figure>"
    )


def _legend(keys: Sequence[LegendEntry]) -> str:
    if not keys:
        return ""
    entries = "".join(
        f'<li><i class="{key.mark}" style="border-color:var({key.color});opacity:{key.opacity:.2f}"></i>'
        f"<span>{in_html(key.name)}{f' <b>{in_html(key.value)}</b>' if key.value else ''}</span></li>"
        for key in keys
    )
    return f"<ul>{entries}</ul>"


def table(caption: str, heads: Sequence[Cell], rows: Sequence[Sequence[Cell]]) -> str:
    """Return a table whose rows are headed by their first cell."""
    head = "".join(f'<th scope="col"{_class(cell)}>{in_html(cell.text)}</th>' for cell in heads)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><caption>{in_html(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(cells: Sequence[Cell]) -> str:
    first, *others = cells
    data = "".join(f"<td{_class(cell)}><bdi>{in_html(cell.text)}</bdi></td>" for cell in others)
    return f'<th scope="row"{_class(first)}><bdi>{in_html(first.text)}</bdi></th>{data}'


def _class(cell: Cell) -> str:
    return ' class="count"' if cell.count else ""


def details(summary: str, body: str) -> str:
    """Return what is shown when asked for."""
    return f"<details><summary>{in_html(summary)}</summary>{body}</details>"
