"""``ellipack predict``: predictions for the rows of a file, by a saved run."""

from ellipack.cli.messages import Skipped, say
from ellipack.cli.options import check_apart, check_writable
from ellipack.errors import CheckpointError
from ellipack.evaluation.prediction_writer import UNLABELLED, open_predictions
from ellipack.evaluation.prefetch import prefetched
from ellipack.evaluation.run import load_run
from ellipack.tabular import open_source


def predict(model: str, file: str, output: str, format: str | None, on_error: str) -> None:
    """Predict the rows of a file with the run saved in a model."""
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
