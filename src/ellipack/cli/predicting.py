"""``ellipack predict``: predictions for the rows of a file, by a saved run."""

import click

from ellipack.cli.options import check_apart, check_writable
from ellipack.cli.skipping import Skipped
from ellipack.cli.terminal import say
from ellipack.errors import CheckpointError
from ellipack.stream.predictions import UNLABELLED, open_predictions
from ellipack.stream.prefetch import prefetched
from ellipack.stream.run import load_run
from ellipack.stream.sources import open_source
from ellipack.stream.sources.opening import FORMATS
from ellipack.stream.sources.source import ON_ERROR

_EXAMPLES = """\b
Examples:
  ellipack predict rides.model tomorrow.csv
  zcat tomorrow.csv.gz | ellipack predict rides.model - | head"""


@click.command(short_help="Predict the rows of a table with a saved run.", epilog=_EXAMPLES)
@click.argument("model", type=click.Path())
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="OUT",
    default="-",
    help="A .csv or .parquet file.  [default: standard output]",
)
@click.option("--format", type=click.Choice(FORMATS), help="What FILE is, if its name does not tell.")
@click.option(
    "--on-error", type=click.Choice(ON_ERROR), default="stop", show_default=True, help="What to do at a bad row."
)
def predict(model: str, file: str, output: str, format: str | None, on_error: str) -> None:
    """Predict the rows of FILE with the run saved in MODEL; learn nothing.

    FILE needs the columns that the run makes features of, in any order, and no target; - is standard input. The output
    has a line for each row: its number, counted from 1, and its prediction.
    """
    check_apart({"MODEL": model, "FILE": file, "--output": output})
    if output != "-":
        check_writable(output)
    run = load_run(model)
    if not run.scores.rows:
        raise CheckpointError(f"{model} has learned nothing yet: go on with its run first")
    source = open_source(file, format=format, on_error=on_error)
    unused = [name for name in run.encoding.unused(source.columns) if name != run.encoding.target]
    if unused:
        say(f"columns that the model does not use: {', '.join(unused)}")
    skipped, out = Skipped(source.name), open_predictions(output, UNLABELLED)
    try:
        for batch in prefetched(source):
            rows = run.encoding.read_unlabelled(batch, on_error)
            skipped.add(sorted((*batch.unreadable, *rows.bad), key=lambda row: row.number))
            if len(rows):
                out.add(rows.numbers, run.learner.predict(run.encoding.encode_only(rows)))
        out.finish()
    finally:
        out.close()
    skipped.sum_up()
