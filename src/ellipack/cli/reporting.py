"""``ellipack report``: a page to look at."""

from pathlib import Path

import click

from ellipack.cli.models import record_at
from ellipack.cli.options import check_apart, check_writable
from ellipack.cli.saying import say
from ellipack.errors import StreamError
from ellipack.report.page import page
from ellipack.report.record import Record


def report(model: str, output: str | None) -> None:
    """Write a page about a model or a run's JSON."""
    target = output or ("-" if model == "-" else f"{model}.html")
    check_apart({"MODEL": model, "--output": target})
    if target != "-":
        check_writable(target)
    write_page(record_at(model), target)
    if target != "-":
        say(f"report: {target}")


def write_page(record: Record, target: str) -> None:
    """Write the page about a record to a file, or to standard output."""
    text = page(record)
    if target == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StreamError(f"{target} can't be written: {error.strerror or error}") from error
