"""Lines for a person, on standard error."""

import click

from ellipack.report.text import clean


def say(message: str) -> None:
    """Print a line."""
    click.echo(f"ellipack: {clean(message)}", err=True)
