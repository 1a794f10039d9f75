"""``ellipack inspect``: what a model has learned."""

import click

from ellipack.cli.models import record_at
from ellipack.cli.terminal import screen, show_model


def inspect(model: str, as_json: bool) -> None:
    """Show what a model has learned."""
    record = record_at(model)
    if as_json:
        click.echo(record.to_json())
    else:
        show_model(record, screen())
