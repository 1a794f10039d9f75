"""``ellipack inspect``: what a model has learned."""

import click

from ellipack.cli.models import record_at
from ellipack.cli.terminal import screen, show_model


@click.command(short_help="Show what a model has learned.")
@click.argument("model", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, as `ellipack run --json` does.")
def inspect(model: str, as_json: bool) -> None:
    """Show what MODEL has learned: how good it was, what drives the target, which experts it trusts.

    MODEL is what `ellipack run` saved, or the JSON that it printed; - is such JSON on standard input.
    """
    record = record_at(model)
    if as_json:
        click.echo(record.to_json())
    else:
        show_model(record, screen())
